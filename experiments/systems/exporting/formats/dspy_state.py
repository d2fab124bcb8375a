"""A DSPy program: its state in a JSON file, and the module that asks by it as was measured."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.systems.exporting.formats.literal_templates import from_names, with_names
from experiments.systems.exporting.proving import ProvenLibrary, sent_by
from experiments.systems.exporting.written_files import as_json, json_object, write_text
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, placeholders_of, render

PROGRAM_FILE, MODULE_FILE = "program.json", "dspy_program.py"

DSPY = ProvenLibrary("dspy", "3.", "pip install 'memtune[optimize]'")

_DATA, _REPLY = "data", "reply"
_RESERVED = {_REPLY, "signature", "new_signature", "demos", "config", "lm", "prediction", "_trace"}
_PROBE = " {{{name}}} {{context}} $5 \\ «é»\r\n\tkestrel "


class DspyState:
    """What `program.load` reads, and `dspy_program.py`. The input fields of a predictor are the prompt's placeholders.

    In the instructions `{name}` stands for an input field, and literal braces are single. DSPy's own adapters send
    instructions as they are, and the fields after them; the module's adapter puts the fields in their places.
    """

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write both files.

        Raises:
            ContractError: DSPy would change a text when it loads it, or a literal text reads as a field.
        """
        state: dict[str, Any] = {}
        for name, template in candidate.items():
            if not name.isidentifier() or name == "metadata":
                raise ContractError(f"{name}: no predictor can have this name; rename the prompt")
            fields = placeholders_of(template)
            reserved = sorted(fields & _RESERVED)
            if reserved:
                raise ContractError(f"{name}: no input of a predictor can be called {reserved[0]!r}; rename it")
            try:
                text = with_names(template)
            except ContractError as error:
                raise ContractError(f"{name}: {error}") from None
            if not fields and f"{{{_DATA}}}" in text:
                raise ContractError(f"{name}: {{{_DATA}}} would read as its input there; reword it")
            if inspect.cleandoc(text) != text:
                raise ContractError(
                    f"{name}: DSPy strips instructions like a docstring, and so would change this text; leave out its "
                    "tabs, blank lines at its ends and blanks at its beginning"
                )
            state[name] = {
                "traces": [],
                "train": [],
                "demos": [],
                "signature": {
                    "instructions": text,
                    "fields": [
                        {"prefix": f"{_title(field)}:", "description": f"${{{field}}}"}
                        for field in [*(sorted(fields) or [_DATA]), _REPLY]
                    ],
                },
                "lm": None,
            }
        # Without versions, DSPy warns of no difference.
        state["metadata"] = {"dependency_versions": {}}
        write_text(folder / PROGRAM_FILE, as_json(state))
        (folder / MODULE_FILE).write_bytes(Path(__file__).with_name(MODULE_FILE).read_bytes())
        return dict.fromkeys(candidate, PROGRAM_FILE)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """The instructions with values in the places where they refer to fields."""
        return render(from_names(self.texts(str(folder / PROGRAM_FILE))[name], set(values)), values)

    def recognises(self, source: str) -> bool:
        """Whether it is a JSON file with predictors."""
        if not (Path(source).is_file() and source.endswith(".json")):
            return False
        try:
            return any(_is_predictor(state) for state in json_object(source).values())
        except RunError:
            return False

    def texts(self, source: str) -> dict[str, str]:
        """The instructions, by the path of the predictor in the program."""
        return {
            name: str(state["signature"]["instructions"])
            for name, state in json_object(source).items()
            if _is_predictor(state)
        }

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The instructions as a template, in which `{name}` stands for a placeholder of the prompt."""
        return from_names(text, placeholders)

    def warnings(self, texts: Mapping[str, str]) -> list[str]:
        """Which program asks as was measured."""
        return [
            f"load the program by {MODULE_FILE}: in one of your own, DSPy's adapters send the instructions of "
            f"{PROGRAM_FILE} with their {{placeholders}} as they are and the values after them, which was not measured."
        ]

    def prove(self, folder: Path) -> list[str]:
        """Run each predictor of the program, and find what was measured, and nothing else, in the requests."""
        file = folder / PROGRAM_FILE
        states, texts = json_object(str(file)), self.texts(str(file))
        inputs = {
            name: {field: _PROBE.format(name=field) for field in _inputs(states[name]["signature"])} for name in texts
        }
        reply = _PROBE.format(name=_REPLY)
        payload = {
            "program": str((folder / MODULE_FILE).resolve()),
            "file": str(file.resolve()),
            "inputs": inputs,
            "reply": reply,
        }
        sent = sent_by(DSPY, Path(__file__).with_name("dspy_proof.py"), payload, lambda body: {"content": reply})
        if sent.failure:
            raise ContractError(f"{sent.release}: {sent.failure}; the export is unusable")
        proofs = []
        for number, (name, text) in enumerate(texts.items(), start=1):
            expected = _measured(text, inputs[name])
            if list(sent.requests[number - 1]) != expected:
                raise ContractError(f"{name}: {sent.release} does not send it as it is; the export is unusable")
            proofs.append(
                f"{name}: the {expected[0]['role']} message of request {number} of {sent.release} is the prompt with "
                "its values, byte for byte"
            )
        return proofs


def _measured(text: str, inputs: Mapping[str, str]) -> list[dict[str, str]]:
    """The messages that a prompt was measured in."""
    if list(inputs) == [_DATA] and f"{{{_DATA}}}" not in text:
        return [{"role": "system", "content": text}, {"role": "user", "content": inputs[_DATA]}]
    return [{"role": "user", "content": render(from_names(text, set(inputs)), inputs)}]


def _inputs(signature: Mapping[str, Any]) -> list[str]:
    """The names of the input fields, as this exporter writes them."""
    return [field["description"].removeprefix("${").removesuffix("}") for field in signature["fields"][:-1]]


def _is_predictor(state: object) -> bool:
    signature = state.get("signature") if isinstance(state, dict) else None
    return isinstance(signature, dict) and isinstance(signature.get("instructions"), str)


def _title(field: str) -> str:
    return field.replace("_", " ").title()
