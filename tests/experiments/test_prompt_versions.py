"""A prompt in the registry reads as its users expect, whatever its text."""

import pytest

from experiments.mlflow_tracking.prompt_versions import prompt_name, registry_form
from experiments.systems.fact_memory import FactMemory


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Say {name}.", "Say {{name}}."),
        ('Reply {{"facts": []}} to {text}', 'Reply {"facts": []} to {{text}}'),
        # Read by the registry, these literal braces would be a variable.
        ("Keep {{{{x}}}} and {y}", "Keep {{{{x}}}} and {y}"),
        ("Keep {{{{name}}}} and {name}", "Keep {{{{name}}}} and {name}"),
    ],
)
def test_variables_are_the_registrys_and_literal_braces_are_single(ours: str, theirs: str) -> None:
    assert registry_form(ours) == theirs


@pytest.mark.parametrize("name", sorted(FactMemory().prompts))
def test_a_registered_prompt_formats_to_what_memtune_sends(name: str) -> None:
    from mlflow.entities.model_registry import PromptVersion

    text = FactMemory().prompts[name].text
    theirs = PromptVersion("p", 1, registry_form(text))
    values = {variable: f"<{variable}>" for variable in theirs.variables}
    assert theirs.format(**values) == text.format(**values)


def test_names_keep_to_the_registrys_letters() -> None:
    assert prompt_name("my system/1", "answer") == "memtune.my-system-1.answer"
