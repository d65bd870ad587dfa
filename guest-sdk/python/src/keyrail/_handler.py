"""A handler: what it declares, and which function takes which message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from ._context import Context, Incoming
from ._errors import EmitError, Reject, Retry, StateError
from ._host import Host
from ._message import MessageType, message_type

Role = Literal["event-handler", "command-handler", "process-manager"]
F = TypeVar("F", bound=Callable[[Any, Context], None])


@dataclass(frozen=True)
class Disposition:
    """What the host is told. Only ``done`` keeps the call's state writes and emits."""

    kind: Literal["done", "retry", "reject"]
    reason: str = ""
    after_ms: int | None = None


DONE = Disposition("done")


@dataclass(frozen=True)
class Correlation:
    """Which field of a message holds the value that a process manager correlates by."""

    category: str
    message: str
    field: str


class Handler:
    """Made as one of its three kinds; filled by ``on``."""

    role: Role

    def __init__(
        self,
        *,
        name: str,
        version: str,
        sequential_by: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        #: The consumer group, ``[a-z][a-z0-9_.-]{0,63}``. Another name starts from the beginning.
        self.name = name
        #: Free text; shown to operators.
        self.version = version
        #: The field that orders the events: required text or an integer in every handled message.
        self.sequential_by = sequential_by
        #: Later options. A host refuses unknown names that start with ``must-`` and ignores others.
        self.options = dict(options or {})
        self.correlations: list[Correlation] = []
        self._routes: dict[tuple[str, str, int], tuple[MessageType, Callable[[Any, Context], None]]] = {}

    @property
    def handles(self) -> list[MessageType]:
        """The types of message that have a function."""
        return [of for of, _ in self._routes.values()]

    def on(self, run: F) -> F:
        """Takes a type of message: the one that the function's first parameter is annotated with.

        The function must not be ``async``: an event is handled when it returns.
        """
        if inspect.iscoroutinefunction(run):
            raise TypeError(f"{run.__name__} is async: a handler's function must not be")
        parameters = list(inspect.signature(run).parameters)
        hints = get_type_hints(run)
        if len(parameters) != 2 or parameters[0] not in hints:
            raise TypeError(f"{run.__name__} takes (event: SomeMessage, ctx: Context)")
        of = message_type(hints[parameters[0]])
        if (of.category, of.name, of.version) in self._routes:
            raise TypeError(f"{self.name} takes {of} twice")
        if self.sequential_by is not None:
            fit = [one for one in of.fields if one.name == self.sequential_by and one.required]
            if not fit or fit[0].kind not in ("text", "integer"):
                raise TypeError(f"{of} needs a required text or integer field {self.sequential_by!r}: it is sequential_by")
        self._routes[(of.category, of.name, of.version)] = (of, run)
        return run

    def handle(self, event: Incoming, host: Host) -> Disposition:
        """Handles one event. An exception that is no disposition is raised on."""
        label = f"{event.category}/{event.name} version {event.version}"
        route = self._routes.get((event.category, event.name, event.version))
        if route is None:
            return Disposition("reject", f"{label} is not handled by this handler")
        of, run = route
        try:
            parsed = of.parse(event.data)
        except ValueError as error:
            # No later try can read it.
            return Disposition("reject", f"{label} does not parse: {error}")
        try:
            run(parsed, Context(event, host, self.name))
        except Reject as reject:
            return Disposition("reject", str(reject))
        except Retry as retry:
            return Disposition("retry", str(retry), retry.after_ms)
        except (StateError, EmitError) as refused:
            return Disposition("retry" if refused.may_pass else "reject", str(refused))
        return DONE


class EventHandler(Handler):
    """A handler that reacts to events."""

    role = "event-handler"


class CommandHandler(Handler):
    """A handler that carries out commands; a command type has one."""

    role = "command-handler"


class ProcessManager(Handler):
    """A handler that coordinates over categories. Say with ``correlates`` by what."""

    role = "process-manager"

    def __init__(self, *, name: str, version: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(name=name, version=version, options=options)

    def correlates(self, of: type, field: str) -> None:
        """The field of a message that holds the correlation value."""
        known = message_type(of)
        if field not in (one.name for one in known.fields):
            raise TypeError(f"{known} has no field {field!r}")
        self.correlations.append(Correlation(known.category, known.name, field))
