"""The clauses of a text that tell of something, apart from those that tell of something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from attribution.text.content import content_of, time_words

_CAPTION = re.compile(r"\[[^\]]*\]")
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+|(?<=[。！？；，、])|\s*[()（）]\s*")
# Where a clause with a subject of its own begins within a sentence.
_SUBJECT = (
    r"(?:I|we|he|she|they|you|my|our|his|her|their|there|ich|wir|er|sie|mein\w*|unser\w*|yo|nosotr[oa]s|él|ella|ellos|mi"
    r"|nuestr[oa]s?|je|j['’]|nous|il|elle|ils|on|mon|ma|notre)\b"
)
_WORDS = (
    r"(?:and|but|while|whereas|plus|because|before|after|until|und|aber|während|weil|bevor|nachdem|y|e|pero|mientras"
    r"|porque|antes de(?: que)?|después de(?: que)?|et|mais|tandis que|pendant que|parce que|avant(?: que)?"
    r"|après(?: que)?)"
)
_JOINT = re.compile(rf"(?:,\s*|\s+[–—-]\s+|\s+){_WORDS}\s+(?={_SUBJECT})|,\s+(?={_SUBJECT})", re.IGNORECASE)
# Where one begins if what follows says enough to be one: Tom flies to Rome, the wedding is next month.
_MAYBE = re.compile(rf"((?:,\s*|\s+[–—-]\s+|\s+){_WORDS}\s+|,\s+|\s+[–—-]\s+)", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|had|will|ist|sind|war|waren|hat|hatte|wird|es|son|fue|era|tiene|será|est|sont|était|sera)\b"
    r"|['’](?:s|re|ll)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\W*(?:before|until|bevor|antes de|avant)\b", re.IGNORECASE)
_ENOUGH = 2
_REFERS_BACK = re.compile(
    r"\b(?:it|its|this|that|these|those|there(?!['’]s| (?:is|are|was|were|will))|then"
    r"|he|him|his|she|her|they|them|their|es|das|dies\w*|dort|da|dann|er|ihn|ihm"
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
    shares = [0.0 if clause.rstrip().endswith(("?", "？")) else tells(clause) for clause in clauses]
    if not any(shares):
        return text
    return " ".join(
        clause for clause, share in zip(clauses, shares, strict=True) if share or _REFERS_BACK.search(clause)
    )


@lru_cache(maxsize=4096)
def _clauses_of(text: str) -> tuple[str, ...]:
    clauses: list[str] = []
    for sentence in _SENTENCE.split(_CAPTION.sub(" ", text)):
        parts = list(_joined([part for joint in _JOINT.split(sentence) for part in _apart(joint)]))
        if clauses and parts and _is_only_a_time(parts[0]):
            clauses[-1] += f" {parts.pop(0)}"
        clauses += parts
    return tuple(clauses)


def _apart(joint: str) -> list[str]:
    """A clause, cut where what follows a comma or a conjunction says enough to be one of its own."""
    first, *rest = _MAYBE.split(joint)
    parts = [first]
    for between, part in zip(rest[::2], rest[1::2], strict=True):
        own = content_of(part) - time_words(part)
        # The time of what comes after is not that of what comes before it.
        if len(own) >= _ENOUGH or (own and (_VERB.search(part) or _BEFORE.match(between))):
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
