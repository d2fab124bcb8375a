"""The last screen of a run: blame, what was accepted with what it fixed and broke, and the kind of gain."""

from dataclasses import replace

import pytest
from run_shapes import summary

from experiments.display.tables import change_lines
from experiments.runs.summary import Summary
from optimizer.evaluation.scores import Score
from optimizer.tuning.round import AcceptedEdit, ChangedCase


def with_edit(edit: AcceptedEdit | None) -> Summary:
    done = summary()
    first, second = done.rounds
    return replace(done, rounds=(replace(first, edit=edit), second))


def case(question: str, before: str, after: str) -> ChangedCase:
    return ChangedCase(conversation="c", question="q", asked=question, before=before, after=after)


def test_blame_the_accepted_diff_and_what_it_fixed_and_broke_are_told() -> None:
    edit = AcceptedEdit(
        diffs={"answer": "--- before\n+++ after\n@@ -1 +1,2 @@\n Memories:\n+Reply with only the value."},
        compared=40,
        fixed=(case("What is the parrot called?", "It is called Zibbel.", "Zibbel"),),
        broken=(case("Where is the lorry?", "In Oslo", "unknown " * 20),),
    )
    lines = [line.plain for line in change_lines(with_edit(edit))]
    assert lines[0] == "blame: answer 70%, retrieve 30% of the wrong answers of train"
    assert lines[1:4] == ["accepted: answer", "   Memories:", "  +Reply with only the value."]
    assert lines[4] == "of 40 questions of the search it fixed 1 and broke 1:"
    assert lines[5:7] == ["  What is the parrot called?", "    fixed: “It is called Zibbel.” → “Zibbel”"]
    assert lines[8].startswith("    broke: “In Oslo” → “unknown unknown")
    assert lines[8].endswith("…”")


def test_where_nothing_was_accepted_blame_alone_is_told() -> None:
    assert [line.plain.partition(":")[0] for line in change_lines(with_edit(None))] == ["blame"]


@pytest.mark.parametrize(
    ("contained", "told"),
    [
        ((0.6, 0.7), "one of content"),
        ((0.6, 0.65), "more one of form than of content"),
        ((0.7, 0.7), "is one of form"),
        ((0.7, 0.5), "is one of form"),
    ],
)
def test_a_gain_of_form_is_called_one(contained: tuple[float, float], told: str) -> None:
    before, after = (
        Score(score=0.4 + step, em=0.1 + step, f1=0.4 + step, contains=contains, n=40, ci=(0.3, 0.7))
        for step, contains in zip((0.0, 0.2), contained, strict=True)
    )
    done = replace(summary(), metric="f1", baseline={"test": before}, champion={"test": after})
    assert told in str(done.gain_sentence)
    assert f"{contained[1]:.3f} of the replies, from {contained[0]:.3f}" in str(done.gain_sentence)
    assert replace(done, verdict="inconclusive").gain_sentence is None
    # Words do not tell what a judge goes by, nor what a reply in other words gains.
    assert replace(done, metric="llm_judge").gain_sentence is None
    nowhere = {
        side: {"test": replace(score, contains=0.0)} for side, score in (("baseline", before), ("champion", after))
    }
    assert replace(done, **nowhere).gain_sentence is None
