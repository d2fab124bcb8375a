"""The clauses of a text that tell of something, apart from those that tell of something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from attribution.text.content import content_of, time_words

_CAPTION = re.compile(r"\[[^\]]*\]")
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+|(?<=[。！？；])")
# Where a clause with a subject of its own begins within a sentence.
_SUBJECT = (
    r"(?:I|we|he|she|they|you|my|our|his|her|their|there|ich|wir|er|sie|mein\w*|unser\w*|yo|nosotr[oa]s|él|ella|ellos|mi"
    r"|nuestr[oa]s?|je|j['’]|nous|il|elle|ils|on|mon|ma|notre)\b"
)
_JOINT = re.compile(
    r"(?:,\s*|\s+[–—-]\s+|\s+)(?:and|but|while|whereas|und|aber|während|y|e|pero|mientras|et|mais|tandis que)\s+"
    rf"(?={_SUBJECT})|,\s+(?={_SUBJECT})",
    re.IGNORECASE,
)
_REFERS_BACK = re.compile(
    r"\b(?:it|its|this|that|these|those|there|then|he|him|his|she|her|they|them|their|es|das|dies\w*|dort|da|dann|er|ihn|ihm"
    r"|sie|ihnen|eso|esto|allí|ahí|entonces|lo|él|ella|ellos|ça|cela|là|y|alors|elle|elles|ils|il)\b|[这那它他她]|それ|そこ",
    re.IGNORECASE,
)


def telling(text: str, tells: Callable[[str], float]) -> str:
    """A text without the clauses that tell of something else than the others do; all of it where no clause tells.

    What refers back (`It was last May`) goes with the rest, a time alone with the clause beside it (`Last May, I …`).
    A question and the caption of a picture tell nothing.

    Args:
        text: what was said.
        tells: how much of a matter a clause tells, 0 for nothing.
    """
    clauses = _clauses_of(text)
    told = [0.0 if clause.rstrip().endswith(("?", "？")) else tells(clause) for clause in clauses]
    if not any(told):
        return text
    return " ".join(clause for clause, share in zip(clauses, told, strict=True) if share or _REFERS_BACK.search(clause))


@lru_cache(maxsize=4096)
def _clauses_of(text: str) -> tuple[str, ...]:
    clauses: list[str] = []
    for sentence in _SENTENCE.split(_CAPTION.sub(" ", text)):
        parts = list(_joined(_JOINT.split(sentence)))
        if clauses and parts and _is_only_a_time(parts[0]):
            clauses[-1] += f" {parts.pop(0)}"
        clauses += parts
    return tuple(clauses)


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
