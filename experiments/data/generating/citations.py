"""What questions are drafted of: turns with the answer in them, by the kind of question. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from attribution.text.content import content_of
from attribution.text.languages.reading_language import in_its_language, language
from attribution.text.phrases import says_retracted
from experiments.data.generating.statements import stated
from experiments.data.generating.values import Value, Values, conjunction, dates_for
from experiments.data.generating.word_sorts import has
from tracing.interchange.speech import ASSISTANT, SPEAKERS
from tracing.systems.conversations import DialogueSession, Turn

if TYPE_CHECKING:
    from experiments.data.generating.dialogue import Dialogue

Kind = Literal["fact", "change", "taken_back", "time", "several_turns", "who", "never_said"]
KINDS: tuple[Kind, ...] = get_args(Kind)

PER_SESSION = 4
"""Turns of a session of which facts are asked, by default; of the other kinds there are fewer."""

_FEWEST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Citation:
    """What a draft of one kind rests on.

    Attributes:
        kind: of the question.
        turns: their ids, in the order in which they were said.
        sentences: of these turns, those that tell the answer.
        answer: in the words of the turns.
    """

    kind: Kind
    turns: tuple[str, ...]
    sentences: tuple[str, ...]
    answer: str


def is_assistant(speaker: str) -> bool:
    """Whether a speaker is called as assistants are: `AI`. A memory is of the people who talk to it."""
    return SPEAKERS.get(speaker.casefold()) == ASSISTANT


class Citations:
    """Chooses what of a conversation is worth a question."""

    def __init__(self, dialogue: Dialogue, per_session: int = PER_SESSION) -> None:
        self._dialogue, self._per_session, self._values = dialogue, per_session, Values(dialogue)
        self.language = dialogue.language
        """The language in which texts are read."""

    @in_its_language
    def of(self, session: DialogueSession) -> list[Citation]:
        """What of a session is cited: values that turns tell, alone or with an earlier one on the same matter."""
        turns = [turn for turn in session.turns if not is_assistant(turn.speaker)]
        stating = [(turn, value) for turn in turns for value in self._values.of(turn)]
        stating.sort(key=lambda pair: pair[1].weight)
        clauses = list({value.sentence: (turn, value) for turn, value in stating}.values())[::-1]
        few = max(1, self._per_session // 2)
        facts = [_single("fact", *pair) for pair in clauses[: self._per_session]]
        rest = [*clauses[self._per_session :], *clauses]
        of_people = not any(map(is_assistant, self._dialogue.conversation.speakers))
        own = [(turn, value) for turn, value in rest if of_people and has("self", value.sentence)][:few]
        who = [Citation("who", (turn.id,), (value.sentence,), turn.speaker) for turn, value in own]
        telling = list({turn.id: turn for turn, _ in clauses}.values())
        return [*facts, *self._times(turns)[:few], *who, *self._pairs(telling), *self._taken_back(turns, few)]

    def _times(self, turns: Sequence[Turn]) -> list[Citation]:
        times = [(turn, value) for turn in turns if (value := self._values.time_of(turn))]
        days = self._dialogue.days
        return [_single("time", turn, value) for turn, value in times if dates_for(value.text, days[turn.id])]

    def _pairs(self, telling: list[Turn]) -> Iterator[Citation]:
        """Of a session the turns most on the matter of an earlier one: a change of it, and more of it."""
        pairs = [pair for turn in telling if (pair := self._with_earlier(turn, apart=True))]
        alike = sorted(filter(None, map(self._alike, pairs)), key=lambda two: -two[0])
        changed = [two for two in alike if has("changed", two[3].sentence)]
        yield from (Citation("change", pair, (later.sentence,), later.text) for _, pair, _, later in changed[:1])
        for _, pair, earlier, later in [two for two in alike if two not in changed][:1]:
            both = f"{earlier.text} {conjunction(language())} {later.text}"
            yield Citation("several_turns", pair, (earlier.sentence, later.sentence), both)

    def _alike(self, pair: tuple[str, str]) -> tuple[float, tuple[str, str], Value, Value] | None:
        """Of two turns the values whose sentences have most in common, with how much; None if too little."""
        first, second = (self._values.of(self._dialogue.turns[turn]) for turn in pair)
        alike = [(self._common(earlier, later), pair, earlier, later) for earlier in first for later in second]
        best = max(alike, key=lambda two: two[0], default=None)
        return best if best is not None and best[0] > 0 else None

    def _common(self, first: Value, second: Value) -> float:
        values, weigh = content_of(first.text) | content_of(second.text), self._dialogue.vocabulary.weight
        common = (content_of(first.sentence) & content_of(second.sentence)) - values - self._dialogue.talk.names
        told_apart = content_of(first.text).isdisjoint(content_of(second.text))
        return sum(map(weigh, common)) if told_apart and any(map(self._dialogue.is_rare, common)) else 0.0

    def _taken_back(self, turns: Sequence[Turn], few: int) -> Iterator[Citation]:
        for turn in [turn for turn in turns if says_retracted(turn.text)][:few]:
            pair = self._with_earlier(turn, apart=False)
            values = self._values.of(self._dialogue.turns[pair[0]], supposed=True) if pair else []
            matter = content_of(turn.text) - self._dialogue.talk.names
            about = [value for value in values if content_of(value.sentence) & matter - content_of(value.text)]
            if pair and about:
                yield Citation("taken_back", pair, (about[0].sentence,), about[0].text)

    def _with_earlier(self, turn: Turn, *, apart: bool) -> tuple[str, str] | None:
        """A turn with the one before it that the same speaker said on most of its matter, in an earlier session.

        What is taken back may have been said in the same one, unless they are to be `apart`.
        """
        dialogue, pairs = self._dialogue, list[tuple[str, str]]()
        for earlier in dialogue.turns.values():
            if earlier.id == turn.id or (apart and dialogue.session[earlier.id] == dialogue.session[turn.id]):
                break
            if earlier.speaker == turn.speaker and len(content_of(stated(earlier))) >= _FEWEST_WORDS:
                pairs.append((earlier.id, turn.id))
        likeness = partial(self._likeness, fewest=2 if apart else 1)
        best = max(pairs, key=likeness, default=None)
        return best if best is not None and likeness(best) > 0 else None

    def _likeness(self, pair: tuple[str, str], *, fewest: int = 2) -> float:
        """How much two turns are about the same matter: by the words of both that few turns have."""
        earlier, later = (content_of(stated(self._dialogue.turns[turn])) for turn in pair)
        common = list(filter(self._dialogue.is_rare, (earlier & later) - self._dialogue.talk.names))
        return sum(map(self._dialogue.vocabulary.weight, common)) if len(common) >= fewest else 0.0


def _single(kind: Kind, turn: Turn, value: Value) -> Citation:
    return Citation(kind, (turn.id,), (value.sentence,), value.text)
