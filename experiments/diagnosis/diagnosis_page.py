"""A diagnosis as one HTML file without scripts, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.diagnosis import diagnosis_charts
from experiments.diagnosis.findings import BY_PROMPT
from experiments.display.pages import template
from experiments.display.terminal import literal
from experiments.runs.intervals import interval_text

if TYPE_CHECKING:
    from experiments.diagnosis.case_slices import SliceOperation
    from experiments.diagnosis.findings import Diagnosis

MOST_CASES = 12
"""Links to cases shown beside a claim; the rest are folded."""

Slices = Mapping[str, "tuple[SliceOperation, ...]"]
"""Id of a case in the diagnosis → the part of its graph."""


def render_html(facts: Diagnosis, slices: Slices, pages: Mapping[str, str] | None = None) -> str:
    """The diagnosis as an HTML page; `pages` are addresses of trace pages by the id of a case."""
    from markupsafe import Markup

    drawn = {
        "flow": diagnosis_charts.flow(facts.flow),
        "loss": diagnosis_charts.loss(facts.operations, prompts_known=facts.prompts_known),
        "error_types": diagnosis_charts.error_types(facts.error_types),
        "ladder": diagnosis_charts.ladder(facts.ladder),
    }
    return template("diagnosis.html").render(
        facts=facts,
        slices=slices,
        pages=pages or {},
        replayed=any(loss.confirmed is not None for loss in facts.operations),
        shown=MOST_CASES,
        # Drawn by us from numbers and operation names, which matplotlib escapes.
        charts={name: Markup(picture) if picture else None for name, picture in drawn.items()},  # noqa: S704
        by_prompt=[action for action in facts.actions if action.by in BY_PROMPT],
        by_others=[action for action in facts.actions if action.by not in BY_PROMPT],
        titles={case.id: case.line.id for case in facts.cases},
    )


def render_markdown(facts: Diagnosis) -> str:
    """The facts as Markdown, without the graphs."""
    titles = {case.id: literal(case.line.id) for case in facts.cases}

    def cases(ids: tuple[str, ...]) -> str:
        listed = ", ".join(titles[case_id] for case_id in ids[:MOST_CASES])
        return f"{listed}, and {len(ids) - MOST_CASES} more" if len(ids) > MOST_CASES else listed

    counts = facts.counts
    judged = f" of {counts.judged}" if counts.judged is not None else ""
    lines = [f"# {literal(facts.title)}", "", literal(facts.subtitle), ""]
    if facts.prose is not None:
        lines += [*map(literal, facts.prose.splitlines()), ""]
    lines += [
        f"- wrong answers: {counts.failures}{judged}; traces: {counts.traces}, {counts.damaged} with a problem",
        f"- {counts.attributed} attributed, {counts.abstained} abstained from, {counts.undone} failed",
        *([] if facts.fixable is None else [f"- a prompt can fix {facts.fixable:.0%} of the loss"]),
        *(f"- {literal(note)}" for note in facts.notes),
        "",
        "## What to do",
        "",
    ]
    for rank, action in enumerate(facts.actions, start=1):
        gain = f" (score up to {action.gain:+.3f})" if action.gain is not None else ""
        lines += [f"{rank}. {literal(action.what)}{gain}: {literal(action.why)}. Cases: {cases(action.cases)}"]
    lines += ["", "## Loss by operation", "", "| operation | prompt | share | 95 % interval | failures | error types |"]
    lines += ["|---|---|---|---|---|---|"]
    for loss in facts.operations:
        kinds = ", ".join(f"{literal(name)} {number}" for name, number in loss.error_types.items())
        interval = f"{loss.share_ci[0]:.0%} – {loss.share_ci[1]:.0%}"
        cells = (
            literal(loss.operation),
            literal(loss.prompt) if loss.prompt else ("–" if facts.prompts_known else "not known"),
            f"{loss.share:.0%}",
            interval,
            str(loss.failures),
            kinds,
        )
        lines.append(f"| {' | '.join(cells)} |")
    replayed = [loss for loss in facts.operations if loss.confirmed is not None]
    if replayed:
        lines += ["", "## Confirmed by replay", ""]
        lines += [f"- {literal(loss.operation)}: {loss.confirmed:.0%} of its replayed blames" for loss in replayed]
    if facts.prompts:
        lines += ["", "## Loss by prompt", ""]
        lines += [
            f"- {literal(loss.prompt)}: {loss.loss:.3f} ({loss.loss_ci[0]:.3f} – {loss.loss_ci[1]:.3f}) of score"
            for loss in facts.prompts
        ]
    lines += ["", "## Where information was lost", ""]
    lines += [f"- {step.name}: {step.reached}" + (f" ({step.lost} lost)" if step.lost else "") for step in facts.flow]
    if facts.ladder:
        lines += ["", "## Oracle ladder", ""]
        lines += [f"- {literal(rung.name)}: {rung.score:.3f} ({interval_text(rung.ci)})" for rung in facts.ladder]
    lines += ["", "## How it goes wrong", ""]
    for cluster in facts.clusters:
        description = f"{cluster.operation}, {cluster.error_type}: {cluster.words}"
        description += f" (for example: {cluster.example})" if cluster.example else ""
        description += f"; {cluster.caveat}" if cluster.caveat else ""
        lines.append(f"- {len(cluster.cases)}× {literal(description)}. Cases: {cases(cluster.cases)}")
    lines += ["", "## What no prompt can fix", ""]
    others = [action for action in facts.actions if action.by not in BY_PROMPT]
    lines += [f"- {literal(action.what)}: {literal(action.why)}" for action in others] or ["Nothing of it was seen."]
    if facts.abstained or facts.damaged:
        lines += ["", "## Not attributed", ""]
        lines += [f"- {literal(reason)}: {cases(ids)}" for reason, ids in facts.abstained.items()]
        lines += [f"- {literal(problem)}" for problem in facts.damaged]
    return "\n".join(lines) + "\n"
