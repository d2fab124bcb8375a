"""The templates of pages, and how texts and numbers are written in them."""

from __future__ import annotations

import json
import os
import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from experiments.display.terminal import visible
from experiments.runs.intervals import interval_text, money_text
from optimizer.evaluation.statistics import p_text
from tracing.package_data import packaged_text
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

    from attribution.survival.failure_picture import FailurePicture


def address_from(place: Path, file: Path) -> str:
    """The address of a file for a page that is in the folder `place`, so that both may be moved together."""
    return quote(Path(os.path.relpath(file.resolve(), place.resolve())).as_posix(), errors="replace")


@cache
def template(name: str) -> Template:
    """A template by its file name; values are escaped, and a missing value is an error."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: packaged_text("experiments", f"templates/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_displayed,
    )
    environment.filters |= {
        "p_value": p_text,
        "score": partial(_number, form=".3f"),
        "signed": partial(_number, form="+z.3f"),
        "share": partial(_number, form="z.0%"),
        "count": partial(_number, form=",.0f"),
        "more": partial(_number, form="+,.0f"),
        "money": money_text,
        "breakable": _breakable,
        "interval": interval_text,
        "plain": _plain,
    }
    return environment


def picture_html(picture: FailurePicture, page: str | None = None) -> Markup:
    """The picture of a failure as markup, without its style (`failure.css`).

    `page` is the address of the page that opens a variable or operation by its id after `#`; None for no links.
    """
    from markupsafe import Markup

    return Markup(template("failure.html").render(picture=picture, page=page))  # noqa: S704 (escaped by the template)


def _displayed(value: Any) -> Any:
    """A value as a page shows it: texts without credentials or characters that hide or reorder others.

    Our own markup passes unchanged.
    """
    return visible(redact(value)) if type(value) is str else value


def _breakable(name: str) -> Markup:
    """A name that a narrow column breaks after its dots and underscores only."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([._])", r"\1<wbr>", str(escape(visible(name)))))  # noqa: S704 (escaped just now)


def _plain(value: Any) -> str:
    """A setting as JSON writes it, a text as it is."""
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: float | None, *, form: str) -> str:
    return "–" if value is None else f"{value:{form}}".replace("-", "−")
