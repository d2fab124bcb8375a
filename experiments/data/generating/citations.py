"""The turns that the author is shown for a draft, by the kind of question that they may answer. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from attribution.text.content import content_of, time_words
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import compiled_of_language
from attribution.text.languages.reading_language import in_its_language
from attribution.text.names import names_in, short_for
from attribution.text.phrases import says_retracted, without_courtesies
from attribution.text.stems import is_number
from tracing.systems.conversations import DialogueSession, Turn

if TYPE_CHECKING:
    from experiments.data.generating.dialogue import Dialogue

Kind = Literal["fact", "change", "taken_back", "time", "several_turns", "who", "never_said"]
KINDS: tuple[Kind, ...] = get_args(Kind)

PER_SESSION = 4
"""Turns of a session of which facts are asked, by default; of the other kinds there are fewer."""

_PATTERNS = compiled_of_language("common", "clauses")
_TELLING_WORDS, _FEWEST_WORDS = 6, 3


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
        taken_back = [
            Citation("taken_back", pair) for turn in back[:few] if (pair := self._with_earlier(turn, apart=False))
        ]
        return [*facts, *times, *who, *self._pairs(telling), *taken_back]

    def _pairs(self, telling: list[Turn]) -> Iterator[Citation]:
        """Of a session the turn that is most about the matter of an earlier session: a change of it, or more of it."""
        pairs = [pair for turn in telling if (pair := self._with_earlier(turn, apart=True))]
        best = sorted(pairs, key=self._likeness, reverse=True)[:1]
        yield from (Citation("change", pair) for pair in best)
        yield from (Citation("several_turns", pair) for pair in best)

    def _with_earlier(self, turn: Turn, *, apart: bool) -> tuple[str, str] | None:
        """A turn with the one before it that the same speaker said on most of its matter, in an earlier session.

        What is taken back may have been said in the same one, unless they are to be `apart`.
        """
        dialogue, pairs = self._dialogue, list[tuple[str, str]]()
        for earlier in dialogue.turns.values():
            if earlier.id == turn.id or (apart and dialogue.session[earlier.id] == dialogue.session[turn.id]):
                break
            if earlier.speaker == turn.speaker and _tells(earlier):
                pairs.append((earlier.id, turn.id))
        likeness = partial(self._likeness, fewest=2 if apart else 1)
        best = max(pairs, key=likeness, default=None)
        return best if best is not None and likeness(best) > 0 else None

    def _likeness(self, pair: tuple[str, str], *, fewest: int = 2) -> float:
        """How much two turns are about the same matter: by the words of both that few turns have."""
        earlier, later = (content_of(stated(self._dialogue.turns[turn])) for turn in pair)
        common = list(filter(self._dialogue.is_rare, (earlier & later) - self._dialogue.talk.names))
        return sum(map(self._dialogue.vocabulary.weight, common)) if len(common) >= fewest else 0.0

    def _weight(self, turn: Turn) -> float:
        """How much a turn tells that can be asked for: names and numbers most."""
        text = stated(turn)
        called = self._dialogue.talk.names | short_for(text, self._dialogue.conversation.speakers)
        words, weigh = content_of(text) - called, self._dialogue.vocabulary.weight
        particular = {word for word in words if is_number(word)} | (names_in(text) & words)
        return sum(sorted(map(weigh, words), reverse=True)[:_TELLING_WORDS]) + 2 * sum(map(weigh, particular))


def stated(turn: Turn) -> str:
    """What a turn states: no question, no courtesy, no caption of a picture."""
    sentences = _PATTERNS["sentence"].split(_PATTERNS["caption"].sub(" ", turn.text))
    text = " ".join(sentence for sentence in sentences if not sentence.rstrip().endswith(("?", "？")))
    return without_courtesies(text)


def _tells(turn: Turn) -> bool:
    return len(content_of(stated(turn))) >= _FEWEST_WORDS
