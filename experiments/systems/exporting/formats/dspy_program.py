"""A DSPy program that asks as memtune measured: the prompt with its values is the message, and the reply is the text.

    import dspy
    import dspy_program

    program = dspy_program.load()
    with dspy.context(lm=dspy.LM("openai/…")):
        print(program.answer(context="…", question="…").reply)

The prompts are in `program.json` beside this file: a predictor of its name for each, whose inputs are its placeholders.
A prompt without placeholders is the system message, and its input `data` the user's message. What the endpoint was set
to while it was measured (temperature, length and form of the reply) is for your `dspy.LM`.
"""

import json
import re
from pathlib import Path
from typing import Any

import dspy

PROGRAM_FILE = "program.json"
DATA, REPLY = "data", "reply"


class Verbatim(dspy.Adapter):  # type: ignore[misc]
    """Puts the inputs into the instructions, in one pass, and adds nothing; demonstrations, if any, go before."""

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """The messages of a request."""
        messages: list[dict[str, Any]] = []
        for demo in demos:
            messages += [*_messages(signature, demo), {"role": "assistant", "content": str(demo[REPLY])}]
        return messages + _messages(signature, inputs)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """The reply as it is."""
        return {REPLY: completion}


class VerbatimPredict(dspy.Predict):  # type: ignore[misc]
    """A predictor that asks by `Verbatim`, whatever adapter is set."""

    def forward(self, **inputs: Any) -> Any:
        """Ask."""
        with dspy.context(adapter=Verbatim()):
            return super().forward(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        """The same without waiting in the thread."""
        with dspy.context(adapter=Verbatim()):
            return await super().aforward(**inputs)


def load(file: str | Path | None = None) -> Any:
    """The program with the prompts of `file`, by default the one beside this module."""
    file, program = file or Path(__file__).with_name(PROGRAM_FILE), dspy.Module()
    for name, state in json.loads(Path(file).read_bytes()).items():
        if name != "metadata":
            setattr(program, name, VerbatimPredict(f"{', '.join(inputs_of(state))} -> {REPLY}"))
    program.load(str(file))
    return program


def inputs_of(state: dict[str, Any]) -> list[str]:
    """The names of the input fields of a predictor, from its state."""
    fields = state["signature"]["fields"][:-1]
    return [field["description"].removeprefix("${").removesuffix("}") for field in fields]


def _messages(signature: type[dspy.Signature], inputs: dict[str, Any]) -> list[dict[str, Any]]:
    text, names = signature.instructions, list(signature.input_fields)
    if names == [DATA] and f"{{{DATA}}}" not in text:
        return [{"role": "system", "content": text}, {"role": "user", "content": str(inputs[DATA])}]
    fields = "|".join(map(re.escape, names))
    filled = re.sub(rf"\{{({fields})\}}", lambda match: str(inputs[match[1]]), text)
    return [{"role": "user", "content": filled}]
