"""Handlers tested natively, in an ordinary test: no wasm, no host, no broker.

``Harness`` is the inline broker: single-threaded, in submission order, so ``sequential_by`` has nothing to do. State is kept
per key, and a call's effects only when it is done, as on a real host. ::

    harness = Harness(handler)
    delivery = harness.deliver(OrderPlaced(order_id="o-1", amount_cents=500)).assert_done()
    assert delivery.emitted(PaymentRequested)[0].amount_cents == 500
    assert harness.state("o-1", "orders") == 1

An exception that is no disposition is raised out of ``deliver``; on a host it would end the instance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ._context import Incoming
from ._errors import Refused
from ._handler import Disposition, Handler
from ._host import Level, RawMessage
from ._message import MessageType, message_type, to_json

__all__ = ["Delivery", "Disposition", "Emitted", "Harness", "LogLine"]

T = TypeVar("T")

#: 2026-01-01T00:00:00Z: the harness has a clock of its own, one second an event.
_FIRST_RECORDED_AT_MS = 1_767_225_600_000
_STATE_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)


@dataclass(frozen=True)
class Emitted:
    """A message that was emitted."""

    id: str
    message: RawMessage


@dataclass(frozen=True)
class LogLine:
    """A line that a handler logged."""

    level: Level
    context: str
    message: str


@dataclass(frozen=True)
class Delivery:
    """What became of one event."""

    id: str
    disposition: Disposition
    #: What it emitted; nothing unless it is done.
    emits: list[Emitted]
    #: What it logged, also when it failed.
    logs: list[LogLine]

    def assert_done(self) -> Delivery:
        """Raises with the reason unless the event was handled."""
        assert self.disposition.kind == "done", f"event {self.id} is not done: {self.disposition}"
        return self

    def emitted(self, of: type[T]) -> list[T]:
        """The emitted messages of one type, in order."""
        wanted = message_type(of)
        names = (wanted.category, wanted.name, wanted.version)
        raw = [one.message for one in self.emits]
        return [wanted.parse(one.data) for one in raw if (one.category, one.name, one.version) == names]


@dataclass
class _Failed:
    """What stays the same, and what grows, when an event is delivered again."""

    sequence: int
    tries: int = 0


@dataclass
class _Recorder:
    """The host of one call: its key's state with its writes, what it emitted and logged. Refuses what a host refuses."""

    event_id: str
    values: dict[str, bytes]
    emits: list[Emitted] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    #: The first refusal of an emit.
    refusal: str | None = None

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        _check_name(name)
        self.values[name] = value

    def remove(self, name: str) -> None:
        _check_name(name)
        self.values.pop(name, None)

    def emit(self, message: RawMessage) -> str:
        try:
            fits = isinstance(json.loads(message.data), dict)
        except ValueError:
            fits = False
        if not fits:
            self.refusal = self.refusal or "the data is not a JSON object"
            raise Refused("invalid-data", "the data is not a JSON object")
        id = f"{self.event_id}.{len(self.emits) + 1}"
        self.emits.append(Emitted(id, message))
        return id

    def log(self, level: Level, context: str, message: str) -> None:
        self.logs.append(LogLine(level, context, message))


class Harness:
    """Runs one handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._states: dict[str, dict[str, bytes]] = {}
        self._sequences: dict[tuple[str, str | None], int] = {}
        #: Events that failed and were not done since, by id.
        self._failed: dict[str, _Failed] = {}
        self._submitted = 0

    def deliver(
        self,
        message: Any,
        *,
        id: str | None = None,
        key: str | None = None,
        attempt: int | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> Delivery:
        """Delivers one event. Raises ``TypeError`` if it does not fit its type: publishing would refuse it.

        Otherwise the id is ``event-1``, ``event-2``, …; the key is the value of the field that the handler is sequential by;
        the attempt is 1, or one more than the last try of this id that failed.
        """
        of = message_type(message)
        wrong = of.misfit(message)
        if wrong is not None:
            raise TypeError(f"{of} would not be published: {wrong}")
        return self.deliver_bytes(type(message), to_json(message), id=id, key=key, attempt=attempt, headers=headers)

    def deliver_bytes(
        self,
        message_class: type,
        data: bytes,
        *,
        id: str | None = None,
        key: str | None = None,
        attempt: int | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> Delivery:
        """Delivers any bytes, also what is not JSON. Raises ``TypeError`` if the handler does not handle the type."""
        of = message_type(message_class)
        if of not in self._handler.handles:
            raise TypeError(f"{of} is not handled by {self._handler.name}")
        key = key if key is not None else self._key_of(of, data)
        event = self._incoming(of, data, id, key, attempt, headers)
        state_key = event.key or ""
        host = _Recorder(event.id, dict(self._states.get(state_key, {})))
        disposition = self._handler.handle(event, host)
        if disposition.kind == "done" and host.refusal is not None:
            # A refused emit fails the event whatever the handler answered.
            disposition = Disposition("reject", f"an emit was refused: {host.refusal}")
        if disposition.kind != "done":
            self._failed.setdefault(event.id, _Failed(event.sequence)).tries += 1
            return Delivery(event.id, disposition, [], host.logs)
        self._failed.pop(event.id, None)
        self._states[state_key] = host.values
        return Delivery(event.id, disposition, host.emits, host.logs)

    def state(self, key: str, name: str) -> Any:
        """A value of a key's state, from JSON; None if there is none. For events without a key, the key is empty."""
        value = self.state_bytes(key, name)
        return None if value is None else json.loads(value)

    def state_text(self, key: str, name: str) -> str | None:
        """A value as text."""
        value = self.state_bytes(key, name)
        return None if value is None else value.decode()

    def state_bytes(self, key: str, name: str) -> bytes | None:
        """A value's bytes."""
        return self._states.get(key, {}).get(name)

    def keys(self) -> list[str]:
        """The keys that have been handled."""
        return list(self._states)

    def _incoming(
        self,
        of: MessageType,
        data: bytes,
        id: str | None,
        key: str | None,
        attempt: int | None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
    ) -> Incoming:
        self._submitted += 1
        id = id or f"event-{self._submitted}"
        failed = self._failed.get(id)
        if failed is None:
            sequence = self._sequences.get((of.category, key), 0)
            self._sequences[(of.category, key)] = sequence + 1
        else:
            sequence = failed.sequence
        return Incoming(
            id=id,
            category=of.category,
            name=of.name,
            version=of.version,
            key=key,
            epoch=1,
            sequence=sequence,
            generation=1,
            attempt=attempt or (failed.tries if failed else 0) + 1,
            recorded_at_ms=_FIRST_RECORDED_AT_MS + 1000 * self._submitted,
            headers=tuple(headers.items() if isinstance(headers, Mapping) else headers),
            data=data,
        )

    def _key_of(self, of: MessageType, data: bytes) -> str | None:
        by = self._handler.sequential_by
        for one in self._handler.correlations:
            if (one.category, one.message) == (of.category, of.name):
                by = one.field
        try:
            members = json.loads(data)
        except ValueError:
            return None
        value = members.get(by) if isinstance(members, dict) and by is not None else None
        return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _check_name(name: str) -> None:
    if not _STATE_NAME.fullmatch(name):
        raise Refused("invalid-name", "names are 1 to 128 bytes of [A-Za-z0-9_.:-]")
