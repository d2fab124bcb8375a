import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.systems.fact_memory import PROMPTS
from experiments.systems.mem0.prompts import PROMPTS as MEM0
from optimizer.proposers.bank import INSTRUCTIONS, with_rules_replaced
from optimizer.proposers.structure import (
    FORMAT_LINES,
    instructions_last,
    numbered_rules,
    question_twice,
    with_format_line,
    without_one_sentence,
)
from optimizer.proposers.template import add_instruction, demonstration_text, take_apart
from tracing.systems.prompts import Contract, placeholders_of, render

VALUES = {"context": "CONTEXT {x}", "question": "QUESTION"}
CONTRACT = Contract(frozenset(VALUES), markers=('"facts"',))

sentence = st.sampled_from(
    [
        "List the facts.",
        "Be short. Name everyone.",
        "- Skip jokes.",
        "1. Read all of it.",
        "Rules:",
        "Give it: now",
        "",
        "Use {{curly}} signs.",
    ]
)
fixed = st.just('Reply as JSON: {{"facts": ["..."]}}')
block = st.lists(st.one_of(sentence, fixed), max_size=5)
label = st.sampled_from(["", "Memories:\n", "Read this:\n\n"])


@st.composite
def templates(draw: st.DrawFn) -> str:
    fields = draw(st.permutations(["{context}", "{question}"]))
    data = [draw(label) + draw(st.sampled_from(["", "Q: "])) + name for name in fields]
    parts = [
        *draw(block),
        *draw(fixed.map(lambda line: [line])),
        *draw(block),
        data[0],
        *draw(block),
        data[1],
        *draw(block),
    ]
    return "\n".join([*parts, *draw(st.sampled_from([[], ["Answer:"], ["", "Answer:", ""]]))])


PLAIN = [each for each in INSTRUCTIONS if not each.task][:2]
TASKS = [each for each in INSTRUCTIONS if each.task]


def test_an_instruction_that_says_the_task_takes_the_place_of_the_first_sentence() -> None:
    template = "List the facts. Be brief.\nReply as JSON: {{}}\n\n{conversation}"
    (rules, *data) = with_rules_replaced(template, [*PLAIN, *TASKS[:1]], ("JSON",)).partition("\n\n")
    assert rules.startswith(TASKS[0].text)
    assert "List the facts" not in rules
    assert "Be brief" not in rules
    assert all(each.text in rules for each in PLAIN)
    assert "List the facts" in with_rules_replaced(template, PLAIN, ("JSON",))
    assert data[1] == "{conversation}"


def edits(template: str) -> list[str]:
    markers = CONTRACT.markers
    made = [
        question_twice(template),
        instructions_last(template),
        numbered_rules(template, markers),
        *(with_format_line(template, line) for line in FORMAT_LINES["answer"]),
        *without_one_sentence(template, "List facts with names", markers),
        add_instruction(template, "Do it well."),
        with_rules_replaced(template, PLAIN, markers),
        with_rules_replaced(template, TASKS[:1], markers),
        take_apart(template)
        .with_demonstrations([demonstration_text(take_apart(template), VALUES, '{"facts": []}')])
        .text,
    ]
    return [text for text in made if text is not None]


@given(templates())
def test_a_template_taken_apart_joins_to_itself(template: str) -> None:
    assert take_apart(template).text == template


@given(templates())
def test_every_edit_keeps_placeholders_literal_braces_and_markers(template: str) -> None:
    assert not CONTRACT.violations(template)
    for text in edits(template):
        assert not CONTRACT.violations(text)
        rendered = render(text, VALUES)
        assert '{"facts": ["..."]}' in rendered
        assert "{{" not in rendered
        assert "CONTEXT {x}" in rendered
        assert "QUESTION" in rendered


@given(templates())
def test_edits_of_edits_still_hold(template: str) -> None:
    for text in edits(template):
        for again in edits(text):
            assert not CONTRACT.violations(again)


@given(templates())
def test_a_demonstration_stays_one_through_other_edits(template: str) -> None:
    parts = take_apart(template)
    with_one = parts.with_demonstrations([demonstration_text(parts, {"context": "A", "question": "B"}, "C")])
    assert take_apart(with_one.text).demonstrations == with_one.demonstrations
    longer = add_instruction(with_one.text, "Do it well.")
    assert take_apart(longer).demonstrations == with_one.demonstrations
    replaced = take_apart(longer).with_demonstrations(["Other"])
    assert "Other" in replaced.demonstrations
    assert "C" not in replaced.demonstrations


def test_a_prompts_own_example_is_an_instruction_beside_demonstrations() -> None:
    own = "Extract facts.\nExample:\nMara: I moved.\n- Mara moved.\nNever guess.\n\nMessages:\n{messages}\nFacts:"
    once = take_apart(own).with_filled([({"messages": "Bo: I sail."}, "- Bo sails.")])
    again = take_apart(once.text).with_filled([({"messages": "Ann: I row."}, "- Ann rows.")])
    assert ("Never guess." in again.head, "Bo sails" in again.text, "Ann rows" in again.text) == (True, False, True)
    before_it = "Now this one:\nis how I mark it.\nExample:\nx\n\nQ: {q}\nA:"
    assert take_apart(before_it).text == before_it


def test_the_question_stands_on_both_sides_of_the_context_once() -> None:
    text = question_twice(PROMPTS["answer"].text)
    assert text is not None
    assert text.index("{question}") < text.index("{context}") < text.rindex("{question}")
    assert question_twice(text) is None
    assert question_twice(PROMPTS["extract"].text) is None


INSTRUCTED = "Answer from the memories. Be brief.\n\nMemories:\n{context}\n\nQuestion: {question}\nAnswer:"


def test_moved_instructions_leave_the_cue_last() -> None:
    text = instructions_last(INSTRUCTED)
    assert text is not None
    assert text.startswith("Memories:")
    assert text.endswith("\nAnswer:")
    assert instructions_last(text) is None


def test_a_format_line_takes_the_place_of_the_cue() -> None:
    text = with_format_line(INSTRUCTED, "Answer in at most four words:")
    assert text == INSTRUCTED.removesuffix("Answer:") + "Answer in at most four words:"


def test_a_new_instruction_joins_the_list_and_stays_before_the_form_of_the_reply() -> None:
    assert "  2) Be kind.\n" in add_instruction("  1) Be brief.\n\n{context}", "Be kind.")
    assert add_instruction("- Be brief.\n{context}", "Be kind.").startswith("- Be brief.\n- Be kind.\n")
    text = add_instruction(PROMPTS["extract"].text, "Be kind.")
    assert text.index("Be kind.") < text.index("Reply as JSON")
    assert add_instruction("{context}", "Be kind.") == "Be kind.\n\n{context}"


@pytest.mark.parametrize("spec", PROMPTS.values(), ids=list(PROMPTS))
def test_the_bank_fits_every_baseline_prompt(spec: object) -> None:
    assert len({each.id for each in INSTRUCTIONS}) == len(INSTRUCTIONS)
    for each in INSTRUCTIONS:
        assert placeholders_of(each.text) == set()
        assert not set("{}") & set(each.text)
        assert len(each.text) <= 160
        assert not spec.contract.violations(add_instruction(spec.text, each.text))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["extract", "update"])
def test_a_prompt_to_which_the_system_adds_the_data_is_all_instructions(name: str) -> None:
    text, contract = MEM0[name].text, MEM0[name].contract
    parts = take_apart(text)
    assert (parts.text, parts.data, parts.cue) == (text, (), ())
    assert instructions_last(text) is None
    assert with_format_line(text, "All facts as JSON:") is None
    edited = [
        add_instruction(text, "Be kind."),
        with_rules_replaced(text, PLAIN[:1], contract.markers),
        *without_one_sentence(text, MEM0[name].purpose, contract.markers),
    ]
    assert all(not contract.violations(each) for each in edited)
    assert "Be kind." in edited[0]
    assert PLAIN[0].text in edited[1]


@pytest.mark.parametrize(
    ("template", "data"),
    [
        ("Rule.\n<all>\n<notes>\n{a}\n</notes>\n</all>\nRule.", ("<all>", "<notes>", "{a}", "</notes>", "</all>")),
        ("Rule.\nA:\n```\n{a}\n```\nB:\n```\n{b}\n```", ("A:", "```", "{a}", "```", "B:", "```", "{b}", "```")),
        ('Rule.\nQ: {a}\n"""\n{b}\n"""\nRule.', ("Q: {a}", '"""', "{b}", '"""')),
        ("Rule.\n```\nform\n```\n{a}\n```\nform\n```", ("{a}",)),
        ("Rule.\n<br/>\n{a}\n<form>\nx\n</form>", ("{a}",)),
    ],
    ids=["tags", "fences", "quotes", "code around", "other tags"],
)
def test_what_encloses_the_data_is_part_of_it(template: str, data: tuple[str, ...]) -> None:
    assert take_apart(template).data == data
    longer = add_instruction(template, "Be brief.")
    assert take_apart(longer).data == data
    assert "\n".join(data) in longer
