import pytest

from optimizer.proposers.line_changes import LineChange, all_applied, changes_between, free_instructions

PLAIN = 'List the facts. Be polite.\nReply as JSON: {{"facts": []}}\n\nTurns:\n{turns}\nFacts:'
BULLETS = "Rules:\n- Be polite.\n- Name the person.\n\n{turns}"
LAST = "{turns}\n\nBe polite. Be brief."


@pytest.mark.parametrize(
    ("template", "change", "changed"),
    [
        (PLAIN, LineChange("Be polite.", ""), PLAIN.replace(" Be polite.", "")),
        (PLAIN, LineChange("Be polite.", "Be exact."), PLAIN.replace("polite", "exact")),
        (PLAIN, LineChange("", "Be exact."), PLAIN.replace("polite.\n", "polite.\nBe exact.\n")),
        (BULLETS, LineChange("Be polite.", ""), "Rules:\n- Name the person.\n\n{turns}"),
        (BULLETS, LineChange("", "Be exact."), BULLETS.replace("person.", "person.\n- Be exact.")),
        (LAST, LineChange("Be polite.", ""), "{turns}\n\nBe brief."),
        (LAST, LineChange("Be brief.", "One word."), "{turns}\n\nBe polite. One word."),
        ("Be polite.\n\nTurns: {turns}", LineChange("Be polite.", ""), "Turns: {turns}"),
        ("Be exact.\n\nBe polite.\n\n{turns}", LineChange("Be polite.", ""), "Be exact.\n\n{turns}"),
        ("Be exact.\nBe polite.\n\n{turns}", LineChange("Be polite.", ""), "Be exact.\n\n{turns}"),
        ("{turns}\n\nBe polite.\n\nReply:", LineChange("Be polite.", ""), "{turns}\n\nReply:"),
        (PLAIN, LineChange("Be rude.", ""), None),
        ("Be brief. Now be brief. Be brief.\n{turns}", LineChange("Be brief.", ""), None),
        ("Be brief.\n{turns}\nBe brief.", LineChange("Be brief.", ""), None),
    ],
)
def test_a_change_touches_its_line_alone(template: str, change: LineChange, changed: str | None) -> None:
    assert change.applied(template) == changed


def test_lines_that_the_contract_asks_for_cannot_be_changed() -> None:
    assert free_instructions(PLAIN) == ["List the facts.", "Be polite."]
    assert free_instructions(PLAIN, markers=["facts"]) == []


def test_changes_are_found_again_in_the_text_that_they_made() -> None:
    changes = [LineChange("Be polite.", "Be exact."), LineChange("", "Name the person.")]
    text = all_applied(changes, PLAIN)
    assert text is not None
    assert all_applied(changes_between(PLAIN, text), PLAIN) == text
    assert changes_between(PLAIN, PLAIN.replace("Facts:", "All facts:")) == []
    assert changes_between(PLAIN, PLAIN) == []
