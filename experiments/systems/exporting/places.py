"""The places that a target has for prompts, which prompt of a system goes to which, and whether it fits there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracing.errors import ContractError, RunError
from tracing.suggestions import unknown_names
from tracing.systems.prompts import PromptSpec, placeholders_of
from tracing.systems.protocol import MemorySystem, Stage, stage_of


@dataclass(frozen=True, slots=True)
class Place:
    """A place for one prompt in a target.

    Attributes:
        name: as the target calls it, such as `custom_fact_extraction_prompt`; with a `*` wherever the user chooses a
            name, such as `custom_categories.*`, and then only `--map` gives prompts to it.
        stage: of the prompt that goes there by default; None if a prompt goes there by `--map` alone.
        needs: placeholders that a text must have there, since the target would otherwise leave out the data.
        may: further placeholders that it may have.
        reply: the keys of the JSON object that the target reads from the reply; empty for free text, and for a library
            that asks for the form of the reply itself, by tools or a schema.
        markers: strings that a text must contain there.
        words: words that it must contain in small letters or capitals.
        strips: whether the target takes off white space around the text.
        longest: most characters that it takes; 0 for no limit.
        losses: what the user loses without a part of the text, by that part: a placeholder as `{name}`, or a string.

    Example:
        >>> Place("system_prompt", "answer", losses={"{notes}": "the memories are not sent"}).lost("Answer briefly.")
        ['lacks {notes}: the memories are not sent']
    """

    name: str
    stage: Stage | None
    needs: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    reply: frozenset[str] = frozenset()
    markers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    strips: bool = False
    longest: int = 0
    losses: Mapping[str, str] = field(default_factory=dict)

    def chosen(self, name: str) -> tuple[str, ...] | None:
        """What a name has in place of each `*`; None if it is not of this place. Only the last may have dots.

        Example:
            >>> Place("custom_categories.*", None).chosen("custom_categories.hobbies")
            ('hobbies',)
        """
        pattern = re.escape(self.name).replace(r"\*\.", r"([^.]+)\.").replace(r"\*", "(.+)")
        found = re.fullmatch(pattern, name)
        return found.groups() if found is not None and "*" not in found.groups() else None

    def problems(self, spec: PromptSpec, text: str) -> list[str]:
        """Why a prompt of a system does not fit here, in plain words; empty if it does."""
        present, allowed = placeholders_of(text), self.needs | self.may
        has = f"its placeholders are {_listed(allowed)}" if allowed else "it fills no placeholders"
        problems = [f"{{{name}}} would be sent as it is written: {has}" for name in sorted(present - allowed)]
        problems += [f"the placeholder {{{name}}} is missing" for name in sorted(self.needs - present)]
        reply_keys = _reply_keys(spec.contract.reply_schema)
        if reply_keys != self.reply:
            reads = f"a JSON object with {_listed(self.reply)}" if self.reply else "no JSON that a prompt describes"
            wants = f"a JSON object with {_listed(reply_keys)}" if reply_keys else "free text"
            problems.append(f"the prompt asks for {wants} as reply, but {reads} is read there")
        problems += [f"the text lacks {marker!r}" for marker in self.markers if marker not in text]
        problems += [f"the text lacks the word {word!r}" for word in self.words if word not in text.lower()]
        if self.strips and text != text.strip():
            problems.append("white space around the text would be taken off: leave it out")
        if self.longest and len(text) > self.longest:
            problems.append(f"the text has {len(text)} characters, at most {self.longest} are taken there")
        return problems

    def lost(self, text: str) -> list[str]:
        """What the user loses with this text, in plain words."""
        there = {f"{{{name}}}" for name in placeholders_of(text)}
        return [
            f"lacks {part}: {loss}"
            for part, loss in self.losses.items()
            if part not in (there if part.startswith("{") else text)
        ]


def place_named(places: Sequence[Place], name: str) -> Place | None:
    """The place that a name is of, under that name; None if there is none."""
    return next((replace(place, name=name) for place in places if place.chosen(name) is not None), None)


def placed(
    target: str, places: Sequence[Place], system_name: str, system: MemorySystem, mapping: Mapping[str, str]
) -> dict[str, str]:
    """Prompt → its place in the target.

    A prompt goes to the place of its own name, otherwise to that of its stage. A `mapping` replaces these defaults: a
    prompt that it does not name has no place.

    Raises:
        RunError: the mapping names an unknown prompt or place, or a place twice; several prompts could go to one
            place; or none has a place.
    """
    if mapping:
        for prompt, name in mapping.items():
            if prompt not in system.prompts:
                called = unknown_names([prompt], system.prompts)
                raise RunError(f"--map {prompt}={name}: {system_name} has no prompt {called}; {_has(system)}")
            if place_named(places, name) is None:
                names = [place.name for place in places]
                called = unknown_names([name], names)
                raise RunError(f"--map {prompt}={name}: {target} has no place {called}; it has {', '.join(names)}")
        twice = [name for name in mapping.values() if list(mapping.values()).count(name) > 1]
        if twice:
            raise RunError(f"--map: {twice[0]} is given twice, but holds one prompt; leave one out")
        return dict(mapping)
    chosen = {name: name for name in system.prompts if place_named(places, name) is not None}
    for place in places:
        if place.stage is None or place.name in chosen.values():
            continue
        fitting = [
            name
            for name in of_stage(system, place.stage)
            if name not in chosen and place in likeliest(places, system.prompts[name], place.stage)
        ]
        if len(fitting) > 1:
            raise RunError(
                f"--to {target}: {place.name} holds one prompt, but {system_name} has {_listed(fitting)} for it; "
                f"choose with --map {fitting[0]}={place.name}"
            )
        chosen.update(dict.fromkeys(fitting, place.name))
    if not chosen:
        listing = ", ".join(f"{place.name} ({place.stage or 'by --map alone'})" for place in places)
        raise RunError(
            f"--to {target}: it has places for {listing}, but {_has(system)}; choose with --map PROMPT=PLACE, or take "
            "--to text"
        )
    return {name: chosen[name] for name in system.prompts if name in chosen}


def likeliest(places: Sequence[Place], spec: PromptSpec, stage: Stage | None) -> list[Place]:
    """The places of a stage that read the reply which a prompt asks for; all of the stage if none does."""
    candidates = [place for place in places if place.stage == stage]
    return [place for place in candidates if place.reply == _reply_keys(spec.contract.reply_schema)] or candidates


def check_fit(
    target: str,
    places: Sequence[Place],
    specs: Mapping[str, PromptSpec],
    texts: Mapping[str, str],
    at: Mapping[str, str],
) -> None:
    """Refuse texts that do not fit the places they go to; `at` maps a prompt to its place."""
    problems = [
        f"{prompt} does not fit {name} of {target}: {problem}"
        for prompt, name in at.items()
        if (place := place_named(places, name)) is not None
        for problem in place.problems(specs[prompt], texts[prompt])
    ]
    if problems:
        raise ContractError("; ".join(problems))


def losses(target: str, places: Sequence[Place], texts: Mapping[str, str], at: Mapping[str, str]) -> list[str]:
    """What the user loses with texts that fit the places they go to: a sentence each."""
    return [
        f"{prompt}, at {name} of {target}, {loss}."
        for prompt, name in at.items()
        if (place := place_named(places, name)) is not None
        for loss in place.lost(texts[prompt])
    ]


def of_stage(system: MemorySystem, stage: Stage) -> list[str]:
    """The prompts of a system whose operation is in this stage."""
    steered = {operation.prompt for operation in system.operations}
    return [name for name in system.prompts if name in steered and stage_of(system.operations, name) == stage]


def _has(system: MemorySystem) -> str:
    return f"the system has {_listed(list(system.prompts))}"


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names) if isinstance(names, frozenset) else names)


def _reply_keys(schema: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(schema.get("properties", ())) if schema is not None else frozenset()
