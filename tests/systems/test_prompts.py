"""A contract names everything a text breaks, and rendering puts in values and nothing else."""

from __future__ import annotations

import pytest

from tracing.errors import ContractError
from tracing.systems.prompts import Contract, PromptSpec, check_candidate, placeholders_of, render

CONTRACT = Contract(placeholders=frozenset({"fact", "memories"}), markers=('"event"', "ADD"), max_chars=120)
GOOD = '{memories}\n{fact}\nReply {{"event": "ADD"}}'


@pytest.mark.parametrize("text", [GOOD, f"{GOOD} {{fact}}", GOOD.replace(" ", "\t"), GOOD + "é" * (120 - len(GOOD))])
def test_a_text_that_keeps_the_contract_has_no_violations(text: str) -> None:
    assert CONTRACT.violations(text) == []


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("", ["empty"]),
        (" \n\t", ["empty"]),
        (GOOD + "x" * 121, ["at most 120"]),
        (GOOD.replace("{fact}", ""), ["{fact} is missing"]),
        (GOOD.replace("{fact}", "{{fact}}"), ["{fact} is missing"]),
        (GOOD + "{style}", ["{style} is unknown"]),
        (GOOD.replace("{fact}", "{facts}"), ["{fact} is missing", "{facts} is unknown"]),
        (GOOD.replace("ADD", "add"), ["'ADD' is missing"]),
        (GOOD.replace("{{", "{").replace("}}", "}"), ["literal braces"]),
        (GOOD + "{", ["literal braces"]),
        (GOOD + "}", ["literal braces"]),
        (GOOD + "{}", ["literal braces"]),
        (GOOD + "{0}", ["literal braces"]),
        (GOOD + "{fact.__class__}", ["literal braces"]),
        (GOOD + "{fact[0]}", ["literal braces"]),
        (GOOD + "{fact!r}", ["literal braces"]),
        (GOOD + "{fact:>10}", ["literal braces"]),
        (GOOD + "{ fact }", ["literal braces"]),
        ("x" * 121, ["at most 120", "{fact} is missing", "{memories} is missing", "'\"event\"'", "'ADD'"]),
    ],
)
def test_every_violation_is_named(text: str, complaints: list[str]) -> None:
    problems = CONTRACT.violations(text)
    assert len(problems) == len(complaints), problems
    for problem, complaint in zip(problems, complaints, strict=True):
        assert complaint in problem


def test_placeholders_are_the_single_braces() -> None:
    assert placeholders_of("{a} {{b}} {{{c}}} {a}") == {"a", "c"}


def test_values_are_put_in_as_they_are() -> None:
    awkward = "{fact} {{x}} $fact %s \\ {0} é\n"
    assert render('{fact}|{{"event"}}', {"fact": awkward, "unused": "-"}) == awkward + '|{"event"}'


@pytest.mark.parametrize(
    "template", ["{fact.__class__}", "{fact.__init__.__globals__}", "{fact[0]}", "{fact!r}", "{fact:9}"]
)
def test_rendering_reaches_no_attribute_index_or_conversion(template: str) -> None:
    with pytest.raises(ContractError, match="not a plain placeholder"):
        render(template, {"fact": "x"})


@pytest.mark.parametrize("template", ["{fact", "fact}", "{}"])
def test_broken_braces_are_a_contract_error(template: str) -> None:
    with pytest.raises(ContractError, match="cannot be rendered"):
        render(template, {"fact": "x"})


def test_a_placeholder_without_a_value_is_named() -> None:
    with pytest.raises(ContractError, match="style, tone"):
        render("{fact} {tone} {style}", {"fact": "x"})


def test_a_candidate_must_hold_every_prompt_and_no_other() -> None:
    spec = PromptSpec("decide", GOOD, "decide_update", CONTRACT, "Decide.", builds=True)
    specs = {"decide": spec, "answer": spec}
    check_candidate(specs, {"decide": GOOD, "answer": GOOD})
    with pytest.raises(ContractError) as caught:
        check_candidate(specs, {"decide": "{fact} ADD", "extra": GOOD})
    message = str(caught.value)
    assert "extra: no such prompt (known: decide, answer)" in message
    assert "answer: missing" in message
    assert "decide: the placeholder {memories} is missing" in message
    assert "decide: the marker '\"event\"' is missing" in message
