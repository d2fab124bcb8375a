"""Scripted conversations: what is told in them is known statement by statement, in conversations-up values."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cached_property

from benchmarks.blame.rules import Statement, rules
from optimizer.evaluation.scores import Splits
from tracing.systems.conversations import Conversation, DialogueSession, Fact, Question, Turn

_NAME_LIST = """
    Mara Ilya Piers Gwen Tomas Anouk Bram Celia Dario Edda Femke Goran Hedda Imre Jonas Kalle Livia Milan Nadja Oskar
    Petra Quint Rosa Sven Tilda Ulla Vera Wim Xenia Yara Zoltan Agnes Bruno Cleo
"""
_TOPIC_LIST = """
    kettle canoe piano ladder parrot garden sledge camera bicycle blanket compass lantern teapot accordion hammock
    wardrobe tractor violin telescope umbrella saddle carpet clock mirror suitcase anvil barrel chimney
"""
_KINDS = {
    True: (
        "For the {topic} I like {value} best.",
        "{who} likes {value} best for the {topic}.",
        "What does {who} like best for the {topic}?",
    ),
    False: (
        "I keep the {topic} in {value}, by the way.",
        "{who} keeps the {topic} in {value}.",
        "Where does {who} keep the {topic}?",
    ),
}
"""For preferences and for all else: what is spoken, as a fact, and what is asked."""
_CHANGED = {True: "With the {topic} I like {value} best now.", False: "I keep the {topic} in {value} now."}
_IDLE = ("How was the week, then?", "Oh well, one thing after another.", "Quite so.", "Let us talk again soon.")
_SYLLABLE_LIST = "ba do fi gu ka le mo nu pa ri so tu ve wo xi za bri cla dro fle gri klo pra sti tro vla"
_NAMES, _TOPICS, _SYLLABLES = _NAME_LIST.split(), _TOPIC_LIST.split(), _SYLLABLE_LIST.split()


@dataclass(frozen=True, slots=True)
class Matter:
    """What one person tells about one thing: a statement, or two of which the later one holds."""

    who: str
    topic: str
    statements: tuple[Statement, ...]

    @property
    def fact(self) -> str:
        """What holds at last, as a fact."""
        return self.fact_of(self.statements[-1].value)

    def fact_of(self, value: str) -> str:
        """The fact with this value."""
        return _KINDS[self.statements[0].preference][1].format(who=self.who, topic=self.topic, value=value)

    @property
    def question(self) -> str:
        """What is asked about it."""
        return _KINDS[self.statements[0].preference][2].format(who=self.who, topic=self.topic)

    def statement_in(self, text: str) -> Statement | None:
        """The statement of which a text has the value; None where it has none of them."""
        return next((statement for statement in reversed(self.statements) if statement.value in text), None)


_WORD = re.compile(r"[A-Za-z]+")


class Stories:
    """Conversations drawn by a seed, split, and what every text in them is about.

    Attributes:
        splits: the conversations. Of the test there is one: what a candidate is worth is known without asking.
        matters: all that is told and asked, by who tells it and about which thing.
    """

    def __init__(self, seed: int) -> None:
        self._drawn = random.Random(f"stories {seed}")  # noqa: S311 (a draw, not a secret)
        self._values: set[str] = set()
        self.matters: dict[tuple[str, str], Matter] = {}
        scale = rules().conversations
        names = list(_NAMES)
        self._drawn.shuffle(names)
        numbers = range(scale.train + scale.validation + 1)
        conversations = [
            self._conversation(f"c{number}", names[2 * number], names[2 * number + 1]) for number in numbers
        ]
        self.splits = Splits(
            tuple(conversations[: scale.train]), tuple(conversations[scale.train : -1]), tuple(conversations[-1:])
        )

    @cached_property
    def _people(self) -> frozenset[str]:
        return frozenset(who for who, _ in self.matters)

    def matter_in(self, text: str) -> Matter | None:
        """The matter that a text is about: that of its person and its thing."""
        words = _WORD.findall(text)
        people = [word for word in words if word in self._people]
        pairs = ((who, word) for who in people for word in words)
        return next((self.matters[pair] for pair in pairs if pair in self.matters), None)

    def _conversation(self, name: str, user: str, other: str) -> Conversation:
        scale, drawn = rules().conversations, self._drawn
        topics = iter(drawn.sample(_TOPICS, sum(scale.new)))
        turns: list[list[Turn]] = []
        facts: list[Fact] = []
        matters: dict[tuple[str, str], tuple[list[Statement], Fact, Turn]] = {}
        for number, new in enumerate(scale.new, start=1):
            pairs = [(user if drawn.random() < scale.users else other, next(topics)) for _ in range(new)]
            again = drawn.sample(sorted(matters), scale.changed) if number == len(scale.new) else []
            spoken: list[Turn] = []
            for place, (who, topic) in enumerate([*again, *pairs], start=1):
                before = matters.get((who, topic))
                preference = before[0][0].preference if before else drawn.random() < scale.preferences
                value = self._value()
                statement = Statement(
                    key=f"{who} {topic} {number}",
                    value=value,
                    session=number,
                    preference=preference,
                    users=who == user,
                    first=place == 1,
                    earlier=before[0][-1].value if before else None,
                )
                template = _CHANGED[preference] if before else _KINDS[preference][0]
                turn = Turn(id=f"D{number}:{place}", speaker=who, text=template.format(topic=topic, value=value))
                matter = Matter(who, topic, (statement,))
                fact = Fact(
                    id=f"f{len(facts) + 1}",
                    turn=turn.id,
                    text=matter.fact,
                    action="update" if before else "add",
                    of=before[1].id if before else None,
                )
                matters[who, topic] = [*(before[0] if before else ()), statement], fact, turn
                facts.append(fact)
                spoken.append(turn)
            for place in range(scale.idle):
                speaker, text = (user, other)[place % 2], drawn.choice(_IDLE)
                spoken.append(Turn(id=f"D{number}:{len(spoken) + 1}", speaker=speaker, text=text))
            turns.append(spoken)
        questions: list[Question] = []
        for (who, topic), (statements, fact, turn) in matters.items():
            matter = self.matters[who, topic] = Matter(who, topic, tuple(statements))
            questions.append(
                Question(
                    id=f"q{len(questions) + 1}",
                    question=matter.question,
                    answers=(statements[-1].value,),
                    kind="updated" if len(statements) > 1 else "stable",
                    evidence=(turn.id,),
                    fact=fact.id,
                )
            )
        return Conversation(
            id=name,
            speakers=(user, other),
            sessions=tuple(
                DialogueSession(id=f"D{number}", time=f"2024-0{number}-10 10:00", turns=tuple(spoken))
                for number, spoken in enumerate(turns, start=1)
            ),
            facts=tuple(facts),
            questions=tuple(questions),
        )

    def _value(self) -> str:
        while True:
            value = "".join(self._drawn.choices(_SYLLABLES, k=3)).capitalize()
            if value not in self._values:
                self._values.add(value)
                return value
