"""64-bit FNV-1a over the ids of all events in the order applied, not reset between ids, kept as 16 hex digits."""

_PRIME = 0x0000_0100_0000_01B3
_MASK = (1 << 64) - 1

#: The digest of nothing: the offset basis.
EMPTY = "cbf29ce484222325"


def add(digest: str, id: str) -> str:
    """The digest with an event's id added."""
    hash = int(digest, 16)
    for byte in id.encode():
        hash = (hash ^ byte) * _PRIME & _MASK
    return f"{hash:016x}"
