"""What a handler needs of its host: the component's imports, or the recorder of native tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Level = Literal["trace", "debug", "info", "warn", "error", "critical"]


@dataclass(frozen=True)
class RawMessage:
    """A message on its way to the outbox, its data still text: a JSON object in UTF-8."""

    category: str
    name: str
    version: int
    headers: list[tuple[str, str]]
    data: bytes


class Host(Protocol):
    """The imports. ``put``, ``remove`` and ``emit`` raise ``Refused``."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, value: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def emit(self, message: RawMessage) -> str: ...
    def log(self, level: Level, context: str, message: str) -> None: ...
