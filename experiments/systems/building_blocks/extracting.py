"""The extraction that systems of facts share: a model makes short statements of messages."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.systems.building_blocks.facts import facts_told
from experiments.systems.building_blocks.structured_replies import parsed_reply
from tracing.graph.execution_graph import Variable
from tracing.llm.models import ChatModel
from tracing.recording.recorder import operation
from tracing.systems.interventions import Step, intervening
from tracing.systems.prompts import PromptSpec, render
from tracing.systems.texts import Text, variables_of

MAX_EXTRACT_TOKENS = 512


def extract(
    spec: PromptSpec, template: str, prompt: Variable, messages: Sequence[Text], model: ChatModel, *, fact_count: int
) -> list[Text]:
    """Record and return the facts that a model tells of messages.

    Args:
        spec: of the prompt, whose one placeholder the messages fill as its layout says.
        template: the prompt's text.
        prompt: its variable.
        messages: to read.
        model: to ask.
        fact_count: how many facts were made before, for their names.
    """
    (placeholder,) = spec.contract.placeholders
    request = render(template, {placeholder: spec.layout.fill(placeholder, [message.text for message in messages])})
    read = variables_of(messages)
    facts: list[Text] = []
    with operation(spec.operation, kind="llm", inputs={"messages": read, "prompt": prompt}) as op:
        texts = parsed_reply(facts_told, model, request, spec.contract.reply_schema, MAX_EXTRACT_TOKENS, op) or []
        items = list(dict.fromkeys(text.strip() for text in texts))
        for item in intervening().extracted(Step(spec.operation, op.id), read, items):
            if item:
                fact = op.output("facts", item, name=f"fact{fact_count + len(facts) + 1}", kind="fact")
                facts.append(Text(item, fact))
    return facts
