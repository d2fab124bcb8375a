"""Mem0's own forms of its prompts and reply schemas, by generation, and the proof that the library sends them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.systems.exporting.formats.constants import literal, python_constants
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import ProvenLibrary, proven_in, sent_by
from experiments.systems.exporting.written_files import as_json, json_or_yaml, write_text
from experiments.systems.mem0 import reply_schemas as replies
from experiments.systems.mem0.library import FACTS, INSTRUCTIONS, UPDATE, WHOLE
from experiments.systems.mem0.prompts import ATTRIBUTED, PROOF, shipped_texts
from experiments.systems.mem0.system import AnyMem0, Mem0First, Mem0One, Mem0Two
from experiments.systems.worker.isolated import own_environment
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, escaped, render

CONFIG_FILE, MODULE_FILE, REPLIES_FILE = "mem0.json", "mem0_prompts.py", "mem0_replies.py"

_MODULE = Path(__file__).with_name("mem0_prompts.template")


def _two_prompts(*, json_told: bool) -> tuple[Place, ...]:
    # From 1.0.6 on, Mem0 itself adds that the reply is JSON; an endpoint that is asked for a JSON object and finds the
    # word in no message refuses the request.
    words = ("json",) if json_told else ()
    return (
        Place(FACTS, "extract", reply=frozenset({"facts"}), markers=("facts",), words=words),
        # A preamble: Mem0 adds what may be decided and how to reply.
        Place(UPDATE, "update", reply=frozenset({"memory"})),
    )


_REPLIES: tuple[dict[str, Any], ...] = (
    {"facts": ["Ada likes tea"], "memory": [{"id": "0", "text": "Ada likes tea"}]},
    {"memory": [{"id": "0", "text": "Ada likes tea", "event": "ADD"}]},
)


class Mem0Settings:
    """Configuration keys in a JSON file; a whole system prompt of Mem0 2.x is a constant of a module.

    For generations that ask for any JSON object there is a module that holds replies to a schema, to be used or not.
    """

    system: type[AnyMem0]
    """The memory system of the generation."""

    places: tuple[Place, ...]
    """Those of this generation; another one's keys would be ignored without a word."""

    @property
    def library(self) -> ProvenLibrary:
        """The library, in the environment that the memory system runs in."""
        generation = self.system.generation
        return proven_in(own_environment(self.system), generation.package, generation.generation)

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the rendered texts: for Mem0 they are no templates, and braces are plain."""
        texts = {place: render(template, {}) for place, template in candidate.items()}
        keys = {place: text for place, text in texts.items() if place != WHOLE}
        if keys:
            write_text(folder / CONFIG_FILE, as_json(keys))
        if WHOLE in texts:
            module = _MODULE.read_text(encoding="utf-8")
            write_text(folder / MODULE_FILE, module.format(name=WHOLE, text=literal(texts[WHOLE])))
        if UPDATE in texts:
            (folder / REPLIES_FILE).write_bytes(Path(replies.__file__).read_bytes())
        return {place: MODULE_FILE if place == WHOLE else CONFIG_FILE for place in candidate}

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One prompt as Mem0 gets it."""
        return self._written(folder)[name]

    def recognises(self, source: str) -> bool:
        """Whether it is a configuration of Mem0 with a key for a prompt, of whatever generation."""
        try:
            return bool(_placed_texts(source)) if Path(source).is_file() else False
        except RunError:
            return False

    def texts(self, source: str) -> dict[str, str]:
        """The prompts of a configuration (JSON, YAML, or Python source with its keys), by key."""
        texts, own = _placed_texts(source), {place.name for place in self.places}
        others = sorted(set(texts) - own)
        if others:
            others_of = next(form.system.name for form in FORMS if others[0] in {place.name for place in form.places})
            raise RunError(
                f"{source}: {others[0]} is a prompt of {others_of}, which {self.system.name} ignores; "
                f"import it for {others_of}, or use {' or '.join(sorted(own))}"
            )
        return texts

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text as a template without placeholders."""
        return escaped(text)

    def defaults(self) -> dict[str, str]:
        """The prompts that the installed library uses by itself, as a custom prompt can have them."""
        return dict(shipped_texts(self.system.generation, own_environment(self.system)))

    def prove(self, folder: Path) -> list[str]:
        """Load the export in the real library, let it add a message, and find each prompt in the requests it sends."""
        texts = self._written(folder)
        payload = {
            "settings": {place: text for place, text in texts.items() if place != WHOLE},
            "module": str((folder / MODULE_FILE).resolve()) if WHOLE in texts else None,
            "replies": str((folder / REPLIES_FILE).resolve()) if UPDATE in texts else None,
        }
        replies_left, forms = iter(_REPLIES), list[str]()

        def reply(body: Mapping[str, Any]) -> Mapping[str, Any]:
            forms.append(body.get("response_format", {}).get("type", "text"))
            return {"content": json.dumps(next(replies_left, _REPLIES[-1]))}

        sent = sent_by(self.library, PROOF, payload, reply)
        proofs = sent.proofs({place: [text] for place, text in texts.items()})
        if UPDATE in texts:
            if set(forms) != {"json_schema"}:
                raise ContractError(f"{REPLIES_FILE}: {sent.release} asked for replies as {', '.join(forms)}")
            proofs.append(f"{REPLIES_FILE}: {sent.release} asks for the replies in its schemas")
        return proofs

    def _written(self, folder: Path) -> dict[str, str]:
        files = [folder / name for name in (CONFIG_FILE, MODULE_FILE)]
        return {place: text for file in files if file.is_file() for place, text in _placed_texts(str(file)).items()}


def _placed_texts(source: str) -> dict[str, str]:
    """The texts of a file that belong to places of any generation."""
    places = {place.name for form in FORMS for place in form.places}
    return {name: text for name, text in _texts(source).items() if name in places}


def _texts(source: str) -> dict[str, str]:
    path = Path(source)
    if path.suffix == ".py":
        return python_constants(source)
    return dict(_strings(json_or_yaml(path)))


def _strings(value: object) -> list[tuple[str, str]]:
    """Keys with texts, the outer ones last, so that they count."""
    if not isinstance(value, dict):
        return []
    inner = [pair for item in value.values() for pair in _strings(item)]
    return inner + [(str(key), text) for key, text in value.items() if isinstance(text, str)]


class Mem0FirstSettings(Mem0Settings):
    """Mem0 0.1.x."""

    system, places = Mem0First, _two_prompts(json_told=True)


class Mem0OneSettings(Mem0Settings):
    """Mem0 1.0.x."""

    system, places = Mem0One, _two_prompts(json_told=False)


class Mem0TwoSettings(Mem0Settings):
    """Mem0 2.x."""

    system = Mem0Two
    places = (
        Place(INSTRUCTIONS, "extract"),
        Place(
            WHOLE,
            "extract",
            reply=frozenset({"memory"}),
            markers=('"memory"', '"text"'),
            words=("json",),
            losses={ATTRIBUTED: "Mem0's memories will not have it, as they have with its own prompt"},
        ),
    )


FORMS = (Mem0FirstSettings, Mem0OneSettings, Mem0TwoSettings)
