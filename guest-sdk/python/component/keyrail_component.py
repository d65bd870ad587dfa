"""The component's side of the WIT world: what `build.sh` gives to componentize-py. Runs in components only."""

from __future__ import annotations

import os
import sys
from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import logging, outbox, state, types

from handler import handler
from keyrail import Handler, Incoming, Level
from keyrail._errors import Refused
from keyrail._host import RawMessage

if not isinstance(handler, Handler):
    raise TypeError("the variable `handler` in handler.py must be a handler: handler = EventHandler(…)")

#: The module `random`, if the handler imports it.
_RANDOM = sys.modules.get("random")

_LEVELS = {level.name.lower(): level for level in logging.Level}
_ROLES = {role.name.lower().replace("_", "-"): role for role in types.Role}
_KINDS = {kind.name.lower(): kind for kind in types.FieldType}

_REFUSALS = {
    state.StateError_InvalidName: "invalid-name",
    state.StateError_TooLarge: "too-large",
    state.StateError_Other: "other",
    outbox.EmitError_UnknownCategory: "unknown-category",
    outbox.EmitError_UnknownMessage: "unknown-message",
    outbox.EmitError_InvalidKey: "invalid-key",
    outbox.EmitError_InvalidData: "invalid-data",
    outbox.EmitError_TooLarge: "too-large",
    outbox.EmitError_Other: "other",
}


def _refused(error: Err[Any]) -> Refused:
    return Refused(_REFUSALS[type(error.value)], error.value.value)


class _Imports:
    """The host of a component: the imports. They belong to the event that the host is waiting for."""

    def get(self, name: str) -> bytes | None:
        return state.get(name)

    def put(self, name: str, value: bytes) -> None:
        try:
            state.put(name, value)
        except Err as error:
            raise _refused(error) from None

    def remove(self, name: str) -> None:
        try:
            state.remove(name)
        except Err as error:
            raise _refused(error) from None

    def emit(self, message: RawMessage) -> str:
        try:
            return outbox.emit(
                outbox.Outgoing(message.category, message.name, message.version, message.headers, message.data)
            )
        except Err as error:
            raise _refused(error) from None

    def log(self, level: Level, context: str, message: str) -> None:
        logging.log(_LEVELS[level], context, message)


_IMPORTS = _Imports()


class Guest(exports.Guest):
    """The export."""

    def describe(self) -> types.Metadata:
        handles = [
            types.MessageType(
                of.category,
                of.name,
                of.version,
                [types.Field(one.name, _KINDS[one.kind], one.required) for one in of.fields],
            )
            for of in handler.handles
        ]
        return types.Metadata(
            handler.name, handler.version, _ROLES[handler.role], handles, _sequential_by(), list(handler.options.items())
        )

    def handle(self, event: types.Event) -> types.Disposition:
        if _RANDOM is not None:
            # The host seeds its chance per event; this makes what the handler draws as repeatable.
            _RANDOM.seed(os.urandom(16))
        incoming = Incoming(
            id=event.id,
            category=event.category,
            name=event.name,
            version=event.version,
            key=event.key,
            epoch=event.epoch,
            sequence=event.sequence,
            generation=event.generation,
            attempt=event.attempt,
            recorded_at_ms=event.recorded_at,
            headers=tuple(event.headers),
            data=event.data,
        )
        try:
            answer = handler.handle(incoming, _IMPORTS)
        except Exception as error:
            # The traceback has the message at its end; the host shows first what was written first.
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            raise
        if answer.kind == "done":
            return types.Disposition_Done()
        if answer.kind == "reject":
            return types.Disposition_Reject(answer.reason)
        return types.Disposition_Retry(types.Retry(answer.reason, answer.after_ms))


def _sequential_by() -> types.SequentialBy:
    if handler.correlations:
        return types.SequentialBy_Correlation(
            [types.Correlation(one.category, one.message, one.field) for one in handler.correlations]
        )
    if handler.sequential_by is not None:
        return types.SequentialBy_Field(handler.sequential_by)
    return types.SequentialBy_Unordered()
