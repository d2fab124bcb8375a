"""The rules of the bench: what a prompt asks for decides how well its step works, and what an author writes.

They are in `rules.toml`, and nothing of memtune is demanded: neither a matcher nor attribution nor an objective.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

Touches = Literal["all", "no-preference", "other-speaker", "not-first", "change"]
Harm = Literal["lost", "general", "example", "earlier", "long"]
Demand = Literal["right", "silent", "wrong"]
"""What a prompt asks for in a matter of one flaw."""

GENERAL, EXAMPLE_VALUE = "something or other", "Velmora"
"""What a value becomes in general terms, and the value of the wrong example."""

_WORDING = re.compile(r"^Draft [0-9a-f]+\.$", re.MULTILINE)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConversationRules(_Table):
    """How many conversations there are, and what they tell; see `rules.toml`."""

    train: int
    validation: int
    sessions: int
    new: tuple[int, ...]
    changed: int
    idle: int
    preferences: float
    users: float


class ModelRules(_Table):
    """How well steps work; see `rules.toml`."""

    least: float
    most: float
    shared: float
    silent: float
    found_first: float


class AuthorRules(_Table):
    """How often the author's texts mend and harm; see `rules.toml`."""

    mends: float
    drops: float


class Flaw(_Table):
    """One way to spoil a prompt; see `rules.toml`."""

    name: str
    asks: str
    spoils: str
    touches: Touches
    harm: Harm
    cost: float


class Rules(_Table):
    """All rules."""

    conversations: ConversationRules
    model: ModelRules
    author: AuthorRules
    flaws: tuple[Flaw, ...]

    def flaw(self, name: str) -> Flaw:
        """The flaw of this name."""
        return next(flaw for flaw in self.flaws if flaw.name == name)


@cache
def rules() -> Rules:
    """The rules of `rules.toml`."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return Rules.model_validate(data)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a conversation tells on a matter at one place.

    Attributes:
        key: unique among all conversations.
        value: what it tells.
        session: number of the session in which it is told, from 1.
        preference, users, first: whether it is a preference, the user says it, it is the first of its session.
        earlier: the value that was told before on the matter; None where nothing was.
    """

    key: str
    value: str
    session: int
    preference: bool
    users: bool
    first: bool
    earlier: str | None = None

    def touched(self, touches: Touches) -> bool:
        """Whether a flaw that touches these statements touches this one."""
        return {
            "all": True,
            "no-preference": not self.preference,
            "other-speaker": not self.users,
            "not-first": not self.first,
            "change": self.earlier is not None,
        }[touches]


def faultless() -> str:
    """The instruction of a prompt that asks for all it should."""
    return "\n".join(flaw.asks for flaw in rules().flaws)


def spoiled(instruction: str, flaw: Flaw) -> str:
    """An instruction with a flaw in place of what it demanded for."""
    return instruction.replace(flaw.asks, flaw.spoils)


@cache
def demands(instruction: str) -> tuple[Demand, ...]:
    """What an instruction asks for in the matter of each flaw, in their order."""
    lines = set(instruction.splitlines())
    return tuple(
        "wrong" if flaw.spoils in lines else "right" if flaw.asks in lines else "silent" for flaw in rules().flaws
    )


def failing(demanded: Sequence[Demand], statement: Statement) -> list[tuple[Harm, float]]:
    """The flaws of a prompt that touch a statement: what each does to it, and how often."""
    silent = rules().model.silent
    return [
        (flaw.harm, flaw.cost * (1.0 if demand == "wrong" else silent))
        for flaw, demand in zip(rules().flaws, demanded, strict=True)
        if demand != "right" and statement.touched(flaw.touches)
    ]


def ceiling(seed: int, operation: str) -> float:
    """How often the operation does its work on a statement if its prompt is faultless."""
    model = rules().model
    return model.least + (model.most - model.least) * drawn(str(seed), "ceiling", operation)


def chance(seed: int, operation: str, demanded: Sequence[Demand], statement: Statement) -> float:
    """How often the operation does its work on a statement with a prompt that asks for this."""
    result = ceiling(seed, operation)
    for _, cost in failing(demanded, statement):
        result *= 1 - cost
    return result


def harm(seed: int, operation: str, instruction: str, statement: Statement) -> Harm | None:
    """What the operation does to a statement with this instruction; None if it does its work.

    Equal requests get equal replies. Another wording fails elsewhere, except for the shared part of the chance.
    """

    def fails(what: str, often: float) -> bool:
        shared = str(seed), operation, what, statement.key
        own = drawn(*shared, instruction, "whose") >= rules().model.shared
        return drawn(*shared, *((instruction,) if own else ())) < often

    if fails("ceiling", 1 - ceiling(seed, operation)):
        return "lost"
    return next((kind for kind, cost in failing(demands(instruction), statement) if fails(kind, cost)), None)


def written(seed: int, instruction: str, sample: str) -> str:
    """What the author makes of an instruction. It knows what is missing no better or worse for whoever asks."""
    author, flaws, lot = rules().author, rules().flaws, (str(seed), "author", instruction, sample)
    kind, which = drawn(*lot, "kind"), drawn(*lot, "which")
    demanded = demands(instruction)
    lines = [line for line in instruction.splitlines() if not _WORDING.match(line)]
    lacking = [flaw for flaw, demand in zip(flaws, demanded, strict=True) if demand != "right"]
    sound = [flaw for flaw, demand in zip(flaws, demanded, strict=True) if demand == "right"]
    if kind < author.mends and lacking:
        flaw = lacking[int(which * len(lacking))]
        lines = [*(line for line in lines if line != flaw.spoils), flaw.asks]
    elif author.mends <= kind < author.mends + author.drops and sound:
        dropped = sound[int(which * len(sound))].asks
        lines = [line for line in lines if line != dropped]
    draft = int(drawn(*lot, "draft") * 2**32)
    return "\n".join([*lines, f"Draft {draft:08x}."])


def drawn(*parts: str) -> float:
    """A number from 0 up to 1 that is always the same for the same texts."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=6).digest(), "big") / 2**48
