"""What a handler has while it handles one event: the event, the key's state, the outbox, the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import EmitError, Refused, Reject, StateError
from ._host import Host, Level, RawMessage
from ._message import message_type, to_json


@dataclass(frozen=True)
class Incoming:
    """One event with everything that the host says about it."""

    #: The event's own id, the same in every delivery: what to use for idempotency.
    id: str
    category: str
    name: str
    version: int
    #: The validated key, for a partitioned category.
    key: str | None
    #: Writer epoch: with ``sequence`` the place in the stream. They order, and only that.
    epoch: int
    sequence: int
    #: Grows each time the partition changes hands: what to fence external calls with.
    generation: int
    #: 1 for the first try.
    attempt: int
    #: Milliseconds since 1970, by the broker's clock.
    recorded_at_ms: int
    #: Names that start with ``keyrail-`` are the host's.
    headers: tuple[tuple[str, str], ...]
    #: A JSON object in UTF-8.
    data: bytes


class State:
    """The state of the event's key. Its writes are kept only when the handler's function returns."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, name: str, default: Any = None) -> Any:
        """A value that ``put`` wrote, or the default. Sees the call's own writes."""
        value = self._host.get(name)
        if value is None:
            return default
        try:
            return json.loads(value)
        except ValueError as error:
            raise Reject(f"state {name} does not parse: {error}") from error

    def put(self, name: str, value: Any) -> None:
        """Writes a value as JSON. Names are 1 to 128 bytes of ``[A-Za-z0-9_.:-]``. Raises ``StateError``."""
        try:
            data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise Reject(f"state {name} cannot be written as JSON: {error}") from error
        self.put_bytes(name, data)

    def remove(self, name: str) -> None:
        """Removes a value; no error if there is none."""
        try:
            self._host.remove(name)
        except Refused as refused:
            raise StateError(name, refused) from None

    def get_text(self, name: str) -> str | None:
        """A value as text."""
        value = self._host.get(name)
        return None if value is None else value.decode()

    def put_text(self, name: str, value: str) -> None:
        """Writes text as it is, without JSON's quotes."""
        self.put_bytes(name, value.encode())

    def get_bytes(self, name: str) -> bytes | None:
        """A value's bytes."""
        return self._host.get(name)

    def put_bytes(self, name: str, value: bytes) -> None:
        """Writes bytes that need be neither JSON nor text."""
        try:
            self._host.put(name, bytes(value))
        except Refused as refused:
            raise StateError(name, refused) from None


class Log:
    """The host's log. Outside the commit: an event that is tried again logs again."""

    def __init__(self, host: Host, context: str) -> None:
        self._host = host
        self._context = context

    def trace(self, message: str) -> None:
        self.write("trace", message)

    def debug(self, message: str) -> None:
        self.write("debug", message)

    def info(self, message: str) -> None:
        self.write("info", message)

    def warn(self, message: str) -> None:
        self.write("warn", message)

    def error(self, message: str) -> None:
        self.write("error", message)

    def critical(self, message: str) -> None:
        self.write("critical", message)

    def write(self, level: Level, message: str, context: str | None = None) -> None:
        """Writes one line. ``context`` groups lines; it is the handler's name otherwise."""
        self._host.log(level, self._context if context is None else context, message)


class Context:
    """The event in hand, the state of its key, the outbox and the log."""

    def __init__(self, event: Incoming, host: Host, handler_name: str) -> None:
        self.event = event
        self.state = State(host)
        self.log = Log(host, handler_name)
        self._host = host

    @property
    def key(self) -> str | None:
        """The validated key; None in a category that is not partitioned."""
        return self.event.key

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for known, value in self.event.headers if known == name), None)

    def emit(self, message: Any, *, headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> str:
        """Emits a message: recorded in the same step as this event's acknowledgement, published after it, in order.

        Returns its id, which is the same in every try. Raises ``EmitError``; a refused emit fails this event even if the
        error is caught.
        """
        of = message_type(message)
        try:
            data = to_json(message)
        except (TypeError, ValueError) as error:
            raise Reject(f"event {of.name} cannot be written as JSON: {error}") from error
        return self.emit_raw(of.category, of.name, data, version=of.version, headers=headers)

    def emit_raw(
        self,
        category: str,
        name: str,
        data: bytes,
        *,
        version: int = 1,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> str:
        """``emit`` for a message that has no class. ``data`` is a JSON object in UTF-8."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        try:
            return self._host.emit(RawMessage(category, name, version, list(pairs), data))
        except Refused as refused:
            raise EmitError(category, name, refused) from None
