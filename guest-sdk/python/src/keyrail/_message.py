"""Message types: dataclasses, whose annotations say what an event's JSON object holds."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: A string of RFC 3339, such as ``2013-01-01T10:17:00Z``.
Timestamp = Annotated[str, "timestamp"]
#: A string of base64.
Binary = Annotated[str, "binary"]

_KINDS: dict[Any, str] = {str: "text", int: "integer", float: "number", bool: "boolean", list: "list", dict: "object"}


@dataclasses.dataclass(frozen=True)
class Field:
    """One member of an event's JSON object."""

    name: str
    #: ``text``, ``integer``, ``number``, ``boolean``, ``timestamp``, ``list``, ``object`` or ``binary``.
    kind: str
    required: bool

    def fits(self, value: Any) -> bool:
        """Whether a value of the JSON object is of this kind, as the host checks it."""
        match self.kind:
            case "integer":
                return isinstance(value, int) and not isinstance(value, bool)
            case "number":
                return isinstance(value, (int, float)) and not isinstance(value, bool)
            case "boolean":
                return isinstance(value, bool)
            case "list":
                return isinstance(value, list)
            case "object":
                return isinstance(value, dict)
            case _:
                return isinstance(value, str)


@dataclasses.dataclass(frozen=True)
class MessageType:
    """A type of message as the host knows it, and the class that stands for it."""

    category: str
    name: str
    version: int
    fields: tuple[Field, ...]
    #: The classes of fields that are dataclasses themselves, by field name.
    nested: dict[str, type]
    of: type

    def __str__(self) -> str:
        return f"{self.category}/{self.name} version {self.version}"

    def parse(self, data: bytes) -> Any:
        """An instance of the class. Raises ``ValueError``. Members that it does not declare are dropped."""
        members = json.loads(data)
        if not isinstance(members, dict):
            raise ValueError("it is not a JSON object")
        values: dict[str, Any] = {}
        for field in self.fields:
            value = members.get(field.name)
            if value is None:
                if field.required:
                    raise ValueError(f"the field {field.name!r} is missing")
                continue
            if not field.fits(value):
                raise ValueError(f"the field {field.name!r} is not of type {field.kind}")
            nested = self.nested.get(field.name)
            try:
                values[field.name] = value if nested is None else nested(**value)
            except TypeError as error:
                raise ValueError(f"the field {field.name!r} does not fit {nested}: {error}") from error
        return self.of(**values)

    def misfit(self, message: Any) -> str | None:
        """Why an instance would be refused when it is published, or None."""
        members = dataclasses.asdict(message)
        for field in self.fields:
            value = members[field.name]
            if value is None:
                if field.required:
                    return f"the field {field.name!r} is missing"
            elif not field.fits(value):
                return f"the field {field.name!r} is not of type {field.kind}"
        return None


@dataclass_transform()
def message(*, category: str, name: str | None = None, version: int = 1) -> Callable[[type[T]], type[T]]:
    """Makes a class a dataclass and a message type; its name is the class's unless ``name`` says otherwise.

    ``str`` is text, ``int`` an integer, ``float`` a number, ``bool`` a boolean, ``list`` a list, ``dict`` or a dataclass an
    object; ``Timestamp`` and ``Binary`` are texts with a meaning. A field that may be None, or has a default, is optional.
    """

    def declare(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(cls)
        hints = get_type_hints(made, include_extras=True)
        fields: list[Field] = []
        nested: dict[str, type] = {}
        for field in dataclasses.fields(made):  # type: ignore[arg-type]
            kind, may_be_none, inner = _kind(hints[field.name], f"{cls.__name__}.{field.name}")
            defaulted = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            if may_be_none and not defaulted:
                raise TypeError(f"{cls.__name__}.{field.name} may be None: give it a default, such as `= None`")
            fields.append(Field(field.name, kind, required=not defaulted))
            if inner is not None:
                nested[field.name] = inner
        made.__keyrail__ = MessageType(category, name or cls.__name__, version, tuple(fields), nested, made)  # type: ignore[attr-defined]
        return made

    return declare


def message_type(of: Any) -> MessageType:
    """What ``message`` kept at a class or an instance of it."""
    kept = getattr(of, "__keyrail__", None)
    if not isinstance(kept, MessageType):
        raise TypeError(f"{of!r} is not a message type: decorate its class with @message(category=…)")
    return kept


def to_json(message: Any) -> bytes:
    """The message's data. Optional fields without a value are left out."""
    members = dataclasses.asdict(message)
    required = {field.name for field in message_type(message).fields if field.required}
    kept = {name: value for name, value in members.items() if value is not None or name in required}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _kind(hint: Any, where: str) -> tuple[str, bool, type | None]:
    """The kind of an annotation, whether it may be None, and the dataclass that it is."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [one for one in get_args(hint) if one is not type(None)]
        if len(inner) == 1 and len(get_args(hint)) == 2:
            kind, _, nested = _kind(inner[0], where)
            return kind, True, nested
    elif get_origin(hint) is Annotated:
        said = [note for note in hint.__metadata__ if note in ("timestamp", "binary")]
        return (said[0], False, None) if said else _kind(hint.__origin__, where)
    elif (plain := get_origin(hint) or hint) in _KINDS:
        return _KINDS[plain], False, None
    elif isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return "object", False, hint
    raise TypeError(f"{where} is {hint}: a field is str, int, float, bool, list, dict, a dataclass, Timestamp or Binary")
