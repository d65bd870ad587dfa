"""Errors and what they become. An exception that is none of these ends the instance; the host tries the event again."""

from __future__ import annotations

from typing import Literal

StateRefusal = Literal["invalid-name", "too-large", "other"]
EmitRefusal = Literal["unknown-category", "unknown-message", "invalid-key", "invalid-data", "too-large", "other"]

_MAY_PASS = {"unknown-category", "unknown-message", "other"}


class Reject(Exception):
    """Gives up: the key halts on this event until an operator decides."""


class Retry(Exception):
    """Asks for another try. Nothing else of this key runs before.

    ``after_ms`` is a wish: the host's own back-off is the least, its cap the most.
    """

    def __init__(self, reason: str, *, after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.after_ms = after_ms


class Refused(Exception):
    """What the host's side raises; the context turns it into the error that a handler sees.

    ``detail`` is the limit in bytes of ``too-large``, otherwise the reason.
    """

    def __init__(self, kind: str, detail: str | int) -> None:
        super().__init__(f"larger than {detail} bytes" if kind == "too-large" else str(detail))
        self.kind = kind
        self.detail = detail


class _RefusedWrite(Exception):
    """A refusal as a handler sees it. Not caught, it rejects the event, or asks for another try where that may help."""

    def __init__(self, what: str, refused: Refused) -> None:
        super().__init__(f"{what} was refused: {refused}")
        #: The limit, for ``too-large``.
        self.limit_bytes = refused.detail if isinstance(refused.detail, int) else None

    @property
    def may_pass(self) -> bool:
        """Whether another try can help: the catalog may learn a type, and what is ``other`` may pass."""
        return getattr(self, "kind") in _MAY_PASS


class StateError(_RefusedWrite):
    """A refused state write."""

    def __init__(self, name: str, refused: Refused) -> None:
        super().__init__(f"state {name}", refused)
        self.name = name
        self.kind: StateRefusal = refused.kind  # type: ignore[assignment]


class EmitError(_RefusedWrite):
    """A refused emit. It fails the event even if it is caught."""

    def __init__(self, category: str, message_name: str, refused: Refused) -> None:
        super().__init__(f"emit of {category}/{message_name}", refused)
        self.category = category
        self.message_name = message_name
        self.kind: EmitRefusal = refused.kind  # type: ignore[assignment]
