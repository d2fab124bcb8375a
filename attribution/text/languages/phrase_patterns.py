"""Patterns of each language: denying, not knowing, taking back, courtesies, frames of an answer, and lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from attribution.text.languages.language_data import Language, compiled_of_language, patterns_of_language

_BEGINS = r"(?:(?<=^)|(?<=[.!?;:,(\n¿¡–—-])|(?<=[.!?;:,(\n¿¡–—-]\s))"
"""The beginning of a clause: elsewhere `remember` and `note` tell what somebody does."""

SEPARATING_COMMA = r"(?:(?<!\d),|,(?!\d))"
"""Pattern of a comma between items, which is none within a number."""


@dataclass(frozen=True, slots=True)
class DenialPatterns:
    """How a language denies something, and how it says that something is unknown.

    Attributes:
        denied: words that deny what is said beside them.
        affirmed: phrases with such a word that deny nothing: can't wait, not only, no doubt, isn't it?
        unknown: phrases that say that something is not known.
        untold: phrases that say so only where nothing else is said: she never told.
        beside: words that may stand beside such a phrase without saying more: by what, or for how long.
    """

    denied: re.Pattern[str]
    affirmed: re.Pattern[str]
    unknown: re.Pattern[str]
    untold: re.Pattern[str]
    beside: re.Pattern[str]


@cache
def denials(language: Language) -> DenialPatterns:
    """The patterns of a language."""
    return DenialPatterns(**compiled_of_language(language, "denials"))


@dataclass(frozen=True, slots=True)
class WithdrawalPatterns:
    """How a language takes something back: what no longer holds, and orders to forget what was said.

    Attributes:
        ended: phrases that always say that something no longer holds.
        order: imperatives of the verbs of removal, where a clause begins or after words of request.
        statement: objects that mean what was said: that, what I told you.
        removal: all forms of the verbs of removal, without those that only report: forgot, ignored.
        facts: what can be said and taken back: an address, a statement, a plan.
        keeping: verbs with which something is kept.
        hidden: how it is kept.
    """

    ended: re.Pattern[str]
    order: re.Pattern[str]
    statement: re.Pattern[str]
    removal: re.Pattern[str]
    facts: re.Pattern[str]
    keeping: re.Pattern[str]
    hidden: re.Pattern[str]

    def take_back(self, clause: str, *, denied: bool) -> bool:
        """Whether a clause takes something back. What it denies (don't forget my address!) is not taken back."""
        if self.ended.search(clause):
            return True
        ordered = self.order.search(clause) is not None and self.statement.search(clause) is not None
        removed = self.removal.search(clause) is not None and self.facts.search(clause) is not None
        about = self.keeping.search(clause) is not None or self.facts.search(clause) is not None
        return not denied and (ordered or removed or (about and self.hidden.search(clause) is not None))


@cache
def withdrawals(language: Language) -> WithdrawalPatterns:
    """The patterns of a language."""
    table = patterns_of_language(language, "withdrawals")
    order = rf"(?:^\W*|[,:]\s*|\b(?:{table['request']}),?\s+)(?:{table['order']})\b"
    patterns = {key: rf"\b(?:{table[key]})\b" for key in ("ended", "removal", "facts", "keeping")}
    patterns |= {"order": order, "removal": f"{patterns['removal']}|{order}"}
    patterns |= {key: rf"\b(?:{table[key]})" for key in ("statement", "hidden")}
    return WithdrawalPatterns(**{key: re.compile(pattern, re.I) for key, pattern in patterns.items()})


@cache
def courtesies(language: Language) -> re.Pattern[str]:
    """What asks to remember what is said, and what is said for courtesy: nothing that must be kept.

    Of the language's table, `request` has words before what is requested (please, could you), `remember` imperatives
    and infinitives that ask to remember, `keep` those that do so only of `that` (save it), `that` objects that mean
    what is said, `ends` words after these (in mind, for me), and `asides` phrases that say nothing (by the way).
    """
    table = patterns_of_language(language, "courtesies")
    objects, ends = rf"(?:\s+(?:{table['that']})\b)", rf"(?:,?\s+(?:{table['ends']})(?!\w))*"
    requested = rf"(?:{table['remember']})(?!\w){objects}*{ends}|(?:{table['keep']})(?!\w){objects}+{ends}"
    # A verb is a request where a clause begins, or after words of request wherever they stand.
    orders = rf"(?:{_BEGINS}|\b(?:(?:{table['request']}),?\s+)+)(?:{requested})"
    return re.compile(rf"{orders}|(?<!\w)(?:{table['asides']})(?!\w)", re.IGNORECASE)


@cache
def frames(language: Language) -> re.Pattern[str]:
    """What people put before and after an answer without saying more: that they think so, where they have it from."""
    table = patterns_of_language(language, "frames")
    before = rf"^\W*(?:(?:{table['begin']})\b[\s,:]*)+(?=\w)"
    return re.compile(rf"{before}|[\s,(–—-]+(?:{table['end']})\)?[\s.!]*$", re.IGNORECASE)


@cache
def possessive(language: Language) -> re.Pattern[str]:
    """Words that stand for the owner's name: her uncle, Nora's uncle."""
    return compiled_of_language(language, "frames")["possessive"]


@dataclass(frozen=True, slots=True)
class ListPatterns:
    """Patterns of one language.

    Attributes:
        between: what stands between the items of a list.
        clause: how a clause begins that is no item of a list.
        pointing: words with which a speaker shows something.
    """

    between: re.Pattern[str]
    clause: re.Pattern[str]
    pointing: re.Pattern[str]


@cache
def list_patterns(language: Language) -> ListPatterns:
    """The patterns of a language, from its conjunctions and its words that begin a clause or point."""
    patterns = patterns_of_language(language, "lists")
    conjunction = patterns["conjunction"]
    return ListPatterns(
        re.compile(rf"(?:{SEPARATING_COMMA}|;)\s*(?:(?:{conjunction})\b)?|\s(?:{conjunction}|&)\s", re.I),
        re.compile(rf"(?:{patterns['clause']})\b", re.I),
        re.compile(rf"\b(?:{patterns['pointing']})\b|这|看|これ|写真", re.I),
    )
