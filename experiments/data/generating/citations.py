"""The turns that the author is shown for a draft, by the kind of question that they may answer. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from attribution.text.content import content_of, time_words
from attribution.text.dates import spans_of
from attribution.text.languages.reading_language import in_its_language
from attribution.text.phrases import says_retracted, without_courtesies
from experiments.data.generating.dialogue import Dialogue
from tracing.systems.conversations import DialogueSession, Turn

Kind = Literal["fact", "change", "taken_back", "time", "several_turns", "who", "never_said"]
KINDS: tuple[Kind, ...] = get_args(Kind)

PER_SESSION = 4
"""Turns of a session of which facts are asked, by default; of the other kinds there are fewer."""

_TELLING_WORDS, _FEWEST_WORDS = 6, 4
_SAME_MATTER = 0.25
"""The least share of a turn's words, by weight, with which an earlier one may be about the same matter."""


@dataclass(frozen=True, slots=True)
class Citation:
    """What a draft of one kind rests on: ids of turns, in the order in which they were said."""

    kind: Kind
    turns: tuple[str, ...]


class Citations:
    """Chooses the turns of a conversation that are worth a question."""

    def __init__(self, dialogue: Dialogue, per_session: int = PER_SESSION) -> None:
        self._dialogue, self._per_session = dialogue, per_session
        self.language = dialogue.language
        """The language in which texts are read."""

    @in_its_language
    def of(self, session: DialogueSession) -> list[Citation]:
        """What of a session is cited: turns that tell much, alone or with an earlier one on the same matter."""
        telling = sorted(filter(_tells, session.turns), key=self._weight, reverse=True)
        facts = [Citation("fact", (turn.id,)) for turn in telling[: self._per_session]]
        few = max(1, self._per_session // 2)
        days = self._dialogue.days
        timed = [turn for turn in telling if spans_of(turn.text, days[turn.id]) and time_words(turn.text)]
        times = [Citation("time", (turn.id,)) for turn in timed[:few]]
        who = [Citation("who", (turn.id,)) for turn in telling[: max(1, few // 2)]]
        back = [turn for turn in session.turns if says_retracted(turn.text)]
        taken_back = [Citation("taken_back", pair) for turn in back[:few] if (pair := self._with_earlier(turn, 0.0))]
        return [*facts, *times, *who, *self._pairs(telling), *taken_back]

    def _pairs(self, telling: list[Turn]) -> Iterator[Citation]:
        """Of a session the turn that is most about the matter of an earlier session: a change of it, or more of it."""
        pairs = [pair for turn in telling if (pair := self._with_earlier(turn, _SAME_MATTER))]
        best = sorted(pairs, key=self._likeness, reverse=True)[:1]
        yield from (Citation("change", pair) for pair in best)
        yield from (Citation("several_turns", pair) for pair in best)

    def _with_earlier(self, turn: Turn, least: float) -> tuple[str, str] | None:
        """A turn with the one before it that the same speaker said on most of its matter, in an earlier session.

        What is taken back may have been said in the same one.
        """
        dialogue, pairs = self._dialogue, list[tuple[str, str]]()
        for earlier in dialogue.turns.values():
            if earlier.id == turn.id or (least and dialogue.session[earlier.id] == dialogue.session[turn.id]):
                break
            if earlier.speaker == turn.speaker and _tells(earlier):
                pairs.append((earlier.id, turn.id))
        best = max(pairs, key=self._likeness, default=None)
        return best if best is not None and self._likeness(best) > least else None

    def _likeness(self, pair: tuple[str, str]) -> float:
        earlier, later = (content_of(self._dialogue.turns[turn].text) - self._dialogue.talk.names for turn in pair)
        return self._dialogue.vocabulary.coverage(later, earlier)

    def _weight(self, turn: Turn) -> float:
        words = content_of(without_courtesies(turn.text)) - self._dialogue.talk.names
        return sum(sorted(map(self._dialogue.vocabulary.weight, words), reverse=True)[:_TELLING_WORDS])


def _tells(turn: Turn) -> bool:
    """Whether a turn may tell something: it is not only a question or a courtesy."""
    return not turn.text.rstrip().endswith(("?", "？")) and len(content_of(turn.text)) >= _FEWEST_WORDS
