"""The clauses of a text that tell of something, apart from those that tell of something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from attribution.text.content import content_of, time_words
from attribution.text.languages.language_data import compiled_of_language

_PATTERNS = compiled_of_language("common", "clauses")
_ENOUGH = 2


def telling(text: str, tells: Callable[[str], float]) -> str:
    """A text without the clauses that tell of something else than the others do; all of it where no clause tells.

    What refers back (`It was last May`) goes with the rest, a time alone with the clause beside it (`Last May, I …`).
    A question and the caption of a picture tell nothing.
    """
    clauses = statements_of(text)
    shares = [0.0 if clause.rstrip().endswith(("?", "？")) else tells(clause) for clause in clauses]
    if not any(shares):
        return text
    return " ".join(
        clause
        for clause, share in zip(clauses, shares, strict=True)
        if share or _PATTERNS["refers_back"].search(clause)
    )


@lru_cache(maxsize=4096)
def statements_of(text: str) -> tuple[str, ...]:
    """The clauses of a text, cut where one begins that has a subject of its own or says enough to be one."""
    clauses: list[str] = []
    for sentence in _PATTERNS["sentence"].split(_PATTERNS["caption"].sub(" ", text)):
        parts = list(_joined([part for joint in _PATTERNS["joint"].split(sentence) for part in _apart(joint)]))
        if clauses and parts and _is_only_a_time(parts[0]):
            clauses[-1] += f" {parts.pop(0)}"
        clauses += parts
    return tuple(clauses)


def _apart(joint: str) -> list[str]:
    """A clause, cut where what follows a comma or a conjunction says enough to be one of its own."""
    first, *rest = _PATTERNS["may_join"].split(joint)
    parts = [first]
    for between, part in zip(rest[::2], rest[1::2], strict=True):
        own = content_of(part) - time_words(part)
        # The time of what comes after is not that of what comes before it.
        if len(own) >= _ENOUGH or (own and (_PATTERNS["verb"].search(part) or _PATTERNS["before"].match(between))):
            parts.append(part)
        else:
            parts[-1] += between + part
    return parts


def _joined(parts: list[str]) -> Iterator[str]:
    """The parts of a sentence, a time alone with what follows it."""
    before = ""
    for at, part in enumerate(parts):
        if at < len(parts) - 1 and _is_only_a_time(part):
            before += f"{part}, "
        elif part.strip():
            yield before + part
            before = ""


def _is_only_a_time(clause: str) -> bool:
    return content_of(clause) <= time_words(clause)
