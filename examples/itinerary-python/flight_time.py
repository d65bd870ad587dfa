"""Just enough of RFC 3339 for these events: UTC, whole seconds."""

import re
from datetime import datetime

from keyrail import Reject

_FORM = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)


def unix_seconds(at: str) -> int:
    """Seconds since 1970 of `2013-01-01T10:17:00Z`."""
    try:
        if _FORM.fullmatch(at):
            return int(datetime.fromisoformat(at).timestamp())
    except ValueError:
        pass  # A month 13, for example.
    raise Reject(f"not a UTC time such as 2013-01-01T10:17:00Z: {at}")
