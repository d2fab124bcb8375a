"""Who says what in a conversation: every turn that says a word, in any form of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable

from attribution.text.content import content_of
from attribution.text.stems import is_number
from tracing.systems.conversations import Conversation, Turn

_SHORTEST = 4
_SAME_START = 0.6
_LONG_ENOUGH_FOR_SLIPS = 5


class Transcript:
    """The turns of one conversation, indexed by their words.

    A word counts as said where a turn has it, a word of the same beginning (`photographer` for `photography`), one
    that holds it or is held by it (`roadtrip` for `trip`), or one a slip of the pen away. A number has one form only.

    `whole` is the transcript of a conversation of which this one may be the past.
    """

    def __init__(self, conversation: Conversation, whole: Transcript | None = None) -> None:
        self.conversation = conversation
        self.turns: tuple[Turn, ...] = tuple(conversation.turns())
        self.place = {turn.id: at for at, turn in enumerate(self.turns)}
        self.session = {turn.id: session.id for session in conversation.sessions for turn in session.turns}
        self.names = frozenset().union(*map(content_of, conversation.speakers))
        self.everywhere = frozenset(range(len(self.turns)))
        self._forms: dict[str, frozenset[int]] = {}
        self._whole = whole if whole is not None and self.turns == whole.turns[: len(self.turns)] else None
        """That of more turns, if these are the first of them: its index serves."""
        self._postings: dict[str, set[int]] = defaultdict(set)
        self._by_letter: dict[str, list[str]] = defaultdict(list)
        for at, turn in enumerate(self.turns if self._whole is None else ()):
            for word in content_of(turn.text):
                self._postings[word].add(at)
        for word in self._postings:
            self._by_letter[word[0]].append(word)
        self._all = f" {' '.join(self._postings)} "

    def where(self, word: str) -> frozenset[int]:
        """The places of the turns that say a content word in any form."""
        places_of_word = self._forms.get(word)
        if places_of_word is None and self._whole is not None:
            places_of_word = self._forms[word] = self._whole.where(word) & self.everywhere
        elif places_of_word is None:
            places = (self._postings[form] for form in self._forms_of(word) if form in self._postings)
            places_of_word = self._forms[word] = frozenset().union(*places)
        return places_of_word

    def _forms_of(self, word: str) -> set[str]:
        """The forms of a word that are said. Those that begin otherwise hold it, or are held by it."""
        if is_number(word):
            return {word}
        forms = {other for other in self._by_letter.get(word[0], ()) if same_word(word, other)}
        if len(word) < _SHORTEST:
            return forms
        size = len(word)
        forms |= {
            word[first:last] for first in range(1, size - _SHORTEST + 1) for last in range(first + _SHORTEST, size + 1)
        }
        at = self._all.find(word)
        while at >= 0:
            forms.add(self._all[self._all.rfind(" ", 0, at) + 1 : self._all.find(" ", at)])
            at = self._all.find(word, at + 1)
        return forms

    def in_text(self, word: str, text: str) -> bool:
        """Whether a text says a content word in any form."""
        return any(same_word(word, other) for other in content_of(text))

    def weight(self, word: str) -> float:
        """How much a word tells: smoothed inverse frequency over the turns, greatest for what nobody says."""
        return math.log(1 + (len(self.turns) + 1) / (len(self.where(word)) + 0.5))

    def share(self, words: Collection[str], places: Iterable[int]) -> float:
        """The part of the words, by weight, that turns at these places say together; 0 if there are none."""
        chosen = frozenset(places)
        total = math.fsum(map(self.weight, words))
        return (
            math.fsum(self.weight(word) for word in words if not chosen.isdisjoint(self.where(word))) / total
            if words
            else 0.0
        )

    def best(self, words: Collection[str], among: Collection[int] | None = None) -> tuple[float, int | None]:
        """The greatest part of the words that a turn of `among` says together with the one before it, and its place."""
        counted: dict[int, float] = defaultdict(float)
        for word in sorted(words):
            places = self.where(word)
            weight = self.weight(word)
            for at in places | {place + 1 for place in places}:
                if at < len(self.turns) and (among is None or at in among):
                    counted[at] += weight
        if not counted:
            return 0.0, None
        # A turn that says the words itself comes before the next one.
        at = max(counted, key=lambda place: (counted[place], -place))
        return counted[at] / math.fsum(map(self.weight, words)), at

    def near(self, turns: Iterable[str], distance: int) -> frozenset[int]:
        """The places of these turns and of those up to so many turns away in the same session."""
        places: set[int] = set()
        for turn in turns:
            at = self.place.get(turn)
            if at is None:
                continue
            for place in range(max(0, at - distance), min(len(self.turns), at + distance + 1)):
                if self.session[self.turns[place].id] == self.session[turn]:
                    places.add(place)
        return frozenset(places)


def same_word(word: str, other: str) -> bool:
    """Whether two content words are forms of one: equal, of one beginning, one within the other, or a slip apart."""
    if word == other:
        return True
    short, long = (word, other) if len(word) <= len(other) else (other, word)
    if len(short) < _SHORTEST or is_number(word) or is_number(other):
        return False
    if short in long:
        return True
    alike = _common_start(short, long)
    if alike >= _SHORTEST and alike >= _SAME_START * len(long):
        return True
    if len(short) < _LONG_ENOUGH_FOR_SLIPS or len(long) - len(short) > 1:
        return False
    # One letter more, another one, or two in the wrong order: what follows is the same.
    rest, other_rest = short[alike:], long[alike:]
    return (
        rest == other_rest[1:]
        or rest[1:] == other_rest[1:]
        or (rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:])
    )


def _common_start(short: str, long: str) -> int:
    at = 0
    for short_letter, long_letter in zip(short, long, strict=False):
        if short_letter != long_letter:
            break
        at += 1
    return at
