"""What two people tell an agent, what one of them then asks, and what goes wrong on the way to the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Fault = Literal["none", "left_out", "cut", "wrong_update", "missed", "ignored", "leak"]
"""What is planted: the model leaves the fact out of what it saves; the saving tool cuts the fact off; the update hits
the entry that is needed; the search finds another entry; the reply ignores what was found; the search gives what
another person said."""

FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass(frozen=True)
class Said:
    """A turn of a person, and what a sound model saves of it.

    Attributes:
        by: the person.
        session: the conversation that it is part of.
        text: what is said.
        fact: what there is to save; cut: what is left of it where the tool cuts it off.
        changes: whether the fact changes an earlier one of the same subject.
    """

    by: str
    session: str
    text: str
    fact: str
    cut: str = ""
    changes: bool = False


@dataclass(frozen=True)
class Story:
    """What is told, in order, and the question.

    Attributes:
        name: of the story.
        told: the turns; some of them change what an earlier one said.
        question: asked by who told what it needs.
        answer: the accepted one.
        wrong: the reply of a model that ignores what was found.
        foreign: what another person said that has no place in the context.
        at: the place of the turn that the question needs.
    """

    name: str
    told: tuple[Said, ...]
    question: str
    answer: str
    wrong: str
    foreign: str
    at: int = 0

    @property
    def needed(self) -> Said:
        """The turn that the question needs."""
        return self.told[self.at]


PETS = Story(
    "pets",
    (
        Said(
            "mara",
            "mara-1",
            "My tortoise Brisket only eats radicchio.",
            "Tortoise Brisket only eats radicchio.",
            "Tortoise Brisket",
        ),
        Said(
            "mara",
            "mara-1",
            "My sister Agata works as a farrier in Bergen.",
            "Sister Agata works as a farrier in Bergen.",
        ),
        Said("theo", "theo-1", "My parrot Ludo lives on papaya.", "Parrot Ludo lives on papaya."),
        Said(
            "mara",
            "mara-2",
            "Agata moved her forge to Trondheim last week.",
            "Sister Agata works as a farrier in Trondheim.",
            changes=True,
        ),
    ),
    "What does my tortoise Brisket eat?",
    "radicchio",
    "lettuce",
    "papaya",
)

MUSIC = Story(
    "music",
    (
        Said(
            "ines",
            "ines-a",
            "On Thursdays I rehearse with the harbour orchestra; I sit third chair bassoon there.",
            "Third chair bassoon in the harbour orchestra, rehearsals on Thursdays.",
            "harbour orchestra, rehearsals on Thursdays.",
        ),
        Said(
            "ines",
            "ines-a",
            "Otto from downstairs mends accordions for a living.",
            "Neighbour Otto mends accordions.",
        ),
        Said("raul", "raul-a", "I joined a pipe band and carry the bagpipes.", "Carries the bagpipes in a pipe band."),
        Said(
            "ines",
            "ines-b",
            "Otto has given up accordions, he builds violins now.",
            "Neighbour Otto builds violins.",
            changes=True,
        ),
    ),
    "Which instrument do I play in the harbour orchestra?",
    "bassoon",
    "the cello",
    "bagpipes",
)

KEYS = Story(
    "keys",
    (
        Said(
            "noor",
            "noor-monday",
            "In case you ever need it: the spare key lies under the third flowerpot by the cellar door.",
            "Spare key lies under the third flowerpot by the cellar door.",
            "Spare key lies by the cellar door.",
        ),
        Said("noor", "noor-monday", "Pavel runs the bakery on Mill Street.", "Pavel runs the bakery on Mill Street."),
        Said("jan", "jan-monday", "My bicycle lock is a yellow one.", "Bicycle lock: yellow."),
        Said(
            "noor",
            "noor-friday",
            "Pavel sold the bakery, these days he drives a night bus.",
            "Pavel drives a night bus.",
            changes=True,
        ),
    ),
    "Under what does my spare key lie?",
    "third flowerpot",
    "a doormat",
    "yellow",
)

ALLERGY = Story(
    "allergy",
    (
        Said("obi", "obi-may", "The boiler man comes on the ninth of May.", "Boiler man comes on the ninth of May."),
        Said(
            "linnea",
            "linnea-spring",
            "I keep three beehives behind the chapel.",
            "Keeps three beehives, behind the chapel.",
        ),
        Said(
            "tuva",
            "tuva-plot",
            "For my allotment I ordered seed potatoes called Sharpe's Express.",
            "Seed potatoes ordered: Sharpe's Express.",
        ),
        Said(
            "linnea",
            "linnea-summer",
            "My godson Kaspar is badly allergic to sesame, so please no tahini when he visits.",
            "Godson Kaspar is allergic to sesame.",
            "Godson Kaspar is allergic.",
        ),
        Said(
            "linnea",
            "linnea-summer",
            "One swarm has left: there are only two beehives behind the chapel now.",
            "Keeps two beehives, behind the chapel.",
            changes=True,
        ),
        Said("tuva", "tuva-class", "I signed up for a welding course on Saturdays.", "Welding course on Saturdays."),
        Said("linnea", "linnea-autumn", "The parish choir meets in my barn.", "Parish choir meets in the barn."),
    ),
    "What is my godson Kaspar allergic to?",
    "sesame",
    "peanuts",
    "Sharpe's Express",
    at=3,
)
"""Written when all that is read of frameworks had been mended, and then run once on each."""

STORIES = (PETS, MUSIC, KEYS)
"""Of the traces that the frameworks export."""

TOLD: tuple[Story, ...] = (*STORIES, ALLERGY)
