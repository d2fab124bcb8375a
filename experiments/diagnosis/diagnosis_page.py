"""A diagnosis as one HTML file without scripts, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attribution.survival.failure_picture import FailurePicture
from experiments.diagnosis import diagnosis_charts
from experiments.diagnosis.findings import BY_PROMPT, Diagnosis
from experiments.display.pages import picture_html, template
from experiments.display.terminal import literal

MOST_CASES = 12
"""Links to cases shown beside a claim; the rest are folded."""

Pictures = Mapping[str, "FailurePicture"]
"""By the id of a case in the diagnosis."""


def render_html(facts: Diagnosis, pictures: Pictures, pages: Mapping[str, str] | None = None) -> str:
    """The diagnosis as an HTML page; `pages` are addresses of trace pages by the id of a case."""
    from markupsafe import Markup

    def whole_page(case_id: str) -> str | None:
        return pages[case_id].partition("#")[0] if pages and case_id in pages else None

    drawn = {
        "flow": diagnosis_charts.flow(facts.flow),
        "loss": diagnosis_charts.loss(facts.operations, prompts_known=facts.prompts_known),
        "error_types": diagnosis_charts.error_types(facts.error_types),
        "ladder": diagnosis_charts.ladder(facts.ladder),
    }
    return template("diagnosis.html").render(
        facts=facts,
        pictures={case_id: picture_html(picture, whole_page(case_id)) for case_id, picture in pictures.items()},
        pages=pages or {},
        replayed=any(loss.confirmed is not None for loss in facts.operations),
        shown=MOST_CASES,
        # Drawn by us from numbers and operation names, which matplotlib escapes.
        charts={name: Markup(picture) if picture else None for name, picture in drawn.items()},  # noqa: S704
        by_prompt=[action for action in facts.actions if action.by in BY_PROMPT],
        by_others=[action for action in facts.actions if action.by not in BY_PROMPT],
        titles={case.id: case.line.id for case in facts.cases},
    )


def render_markdown(facts: Diagnosis, pictures: Pictures = MappingProxyType({})) -> str:
    """The facts as Markdown, each picture in a line."""
    from markupsafe import Markup

    titles = {case.id: literal(case.line.id) for case in facts.cases}

    def text(value: str) -> Markup:
        """A text as Markdown that shows it as it is."""
        return Markup(literal(value))  # noqa: S704 - not HTML

    def cases(ids: tuple[str, ...]) -> Markup:
        listed = ", ".join(titles[case_id] for case_id in ids[:MOST_CASES])
        return Markup(f"{listed}, and {len(ids) - MOST_CASES} more" if len(ids) > MOST_CASES else listed)  # noqa: S704

    others = [action for action in facts.actions if action.by not in BY_PROMPT]
    return template("diagnosis.md").render(
        facts=facts, n=facts.counts, text=text, cases=cases, others=others, pictures=pictures
    )
