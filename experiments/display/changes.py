"""What a run found and changed, on the last screen: blame, each accepted edit with its questions, the kind of gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from experiments.display.literal_console import styled
from experiments.runs.summary import Summary, SummaryCase, SummaryEdit

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_EXAMPLES = 2
"""Questions that are shown of those an edit fixed, and of those it broke."""

_LONGEST_REPLY = 60
"""Characters of a reply on the last screen; `report.html` has it whole."""

_MOST_DIFF_LINES = 24


def change_lines(summary: Summary) -> Iterator[Text]:
    """Whose fault the wrong answers were, and what each accepted edit changed, fixed and broke."""
    first = next((record for record in summary.iterations if record.blame), None)
    if first is not None:
        shares = sorted(first.blame.items(), key=lambda share_of_operation: -share_of_operation[1].share)
        text = ", ".join(f"{operation} {blame.share:.0%}" for operation, blame in shares if blame.share)
        yield styled(("blame", "bold"), f": {text or 'none'} of the wrong answers of train")
    for record in summary.iterations:
        if record.edit is not None:
            yield from _edit_lines(record.edit)


def _edit_lines(edit: SummaryEdit) -> Iterator[Text]:
    for prompt, diff in edit.diffs.items():
        yield styled(("accepted", "bold"), f": {prompt}")
        lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@"))]
        for line in lines[:_MOST_DIFF_LINES]:
            yield styled((f"  {line}", DIFF_STYLES.get(line[:1], "dim")))
        if len(lines) > _MOST_DIFF_LINES:
            yield styled((f"  … {len(lines) - _MOST_DIFF_LINES} more lines in the report", "dim"))
    yield styled(
        f"of {edit.compared} questions of the search it fixed {len(edit.fixed)} and broke {len(edit.broken)}:"
        if edit.fixed or edit.broken
        else f"of {edit.compared} questions of the search it changed the judgement of none"
    )
    yield from _case_lines("fixed", "green", edit.fixed)
    yield from _case_lines("broke", "red", edit.broken)


def _case_lines(word: str, style: str, cases: Sequence[SummaryCase]) -> Iterator[Text]:
    for case in cases[:_EXAMPLES]:
        yield styled(f"  {case.asked}")
        yield styled("    ", (word, style), f": {_reply(case.before)} → {_reply(case.after)}")


def _reply(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= _LONGEST_REPLY else line[: _LONGEST_REPLY - 1] + '…'}”"
