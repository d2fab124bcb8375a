"""What a name that does not exist was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'NAME'?` with the known name that is closest, or nothing if none is close.

    Example:
        >>> did_you_mean("fact-memry", ["rag", "fact-memory"])
        "; did you mean 'fact-memory'?"
    """
    folded = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def unknown_names(names: Iterable[str], existing: Collection[str]) -> str:
    """Names that do not exist, quoted, and each known one that is close to one of them."""
    unknown = dict.fromkeys(names)
    return f"{', '.join(map(repr, unknown))}{near_names(unknown, existing)}"


def near_names(names: Iterable[str], existing: Collection[str]) -> str:
    """As `did_you_mean`, for several names; each suggestion once."""
    return "".join(dict.fromkeys(did_you_mean(name, existing) for name in names))
