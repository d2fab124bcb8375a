"""An SVG that shows pictures one after another, each for its time, in a frame that is read on light and dark pages."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from terminal import COLUMNS, LINES, Line

CHARACTER, HEIGHT = 8.4, 20
WIDTH = round(COLUMNS * CHARACTER) + 32
CAPTION = 40
TALL = LINES * HEIGHT + 24
_COLOURS = {
    "default": "e2e8f0", "black": "64748b", "red": "f87171", "green": "4ade80", "brown": "fbbf24", "blue": "60a5fa",
    "magenta": "e879f9", "cyan": "22d3ee", "white": "f8fafc", "brightblack": "94a3b8", "brightred": "fca5a5",
    "brightgreen": "86efac", "brightbrown": "fde68a", "brightblue": "93c5fd", "brightmagenta": "f0abfc",
    "brightcyan": "67e8f9", "brightwhite": "ffffff",
}  # fmt: skip
"""Of a terminal on a dark ground, each with a contrast of at least 4.5."""

_STYLE = """
.film {{ animation: film {seconds:g}s step-end infinite; }}
.time {{ animation: time {seconds:g}s linear infinite; transform-origin: 0 0; }}
@keyframes film {{ {places} }}
@keyframes time {{ from {{ transform: scaleX(0) }} to {{ transform: scaleX(1) }} }}
@media (prefers-reduced-motion: reduce) {{
  .film {{ animation: none; transform: translateX({still}px) }}
  .time {{ animation: none }}
}}
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }}
.caption {{ font: 600 17px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #fff }}
.b {{ font-weight: 700 }}
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """What is shown for some seconds: the lines of a terminal, or a picture (PNG) of a page, below a caption."""

    seconds: float
    caption: str
    content: Sequence[Line] | bytes


class Film:
    """Frames, drawn one beside another and moved past a window; lines and pictures that return are there once."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._shared: dict[object, str] = {}
        self._definitions: list[str] = []

    @property
    def seconds(self) -> float:
        """How long the film is."""
        return sum(frame.seconds for frame in self._frames)

    @property
    def length(self) -> int:
        """How many frames it has."""
        return len(self._frames)

    def add(self, frames: Iterable[Frame]) -> None:
        """Puts frames at the end."""
        self._frames += frames

    def svg(self, title: str, description: str, still: int) -> str:
        """The film; the frame of index `still` is what is shown to who wants no motion."""
        drawn = "".join(self._drawn(number, frame) for number, frame in enumerate(self._frames))
        places, before = [], 0.0
        for number, frame in enumerate(self._frames):
            places.append(f"{100 * before / self.seconds:.3f}% {{ transform: translateX({-number * WIDTH}px) }}")
            before += frame.seconds
        style = _STYLE.format(seconds=self.seconds, places=" ".join(places), still=-still * WIDTH)
        whole = CAPTION + TALL + 4
        size = f'width="{WIDTH}" height="{whole}"'
        edge = f'x=".5" y=".5" width="{WIDTH - 1}" height="{whole - 1}" rx="10" fill="none" stroke="#64748b"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" {size} role="img">'
            f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{style}</style>"
            f'<defs><clipPath id="w"><rect {size} rx="10"/></clipPath>{"".join(self._definitions)}</defs>'
            f'<g clip-path="url(#w)"><rect {size} fill="#0f172a"/><g class="film">{drawn}</g>'
            f'<rect class="time" y="{whole - 4}" width="{WIDTH}" height="4" fill="#38bdf8"/></g><rect {edge}/></svg>\n'
        )

    def _drawn(self, number: int, frame: Frame) -> str:
        left = number * WIDTH
        caption = f'<rect x="{left}" width="{WIDTH}" height="{CAPTION}" fill="#1e3a8a"/>'
        caption += f'<text class="caption" x="{left + 16}" y="26">{escape(frame.caption)}</text>'
        if isinstance(frame.content, bytes):
            return caption + self._use(frame.content, self._picture(frame.content), left, CAPTION)
        lines = [
            self._use(line, _text(line), left + 16, CAPTION + 8 + HEIGHT * row)
            for row, line in enumerate(frame.content, 1)
            if line
        ]
        return caption + "".join(lines)

    def _use(self, content: object, drawn: str, x: int, y: int) -> str:
        if content not in self._shared:
            self._shared[content] = f"d{len(self._shared)}"
            self._definitions.append(f'<g id="{self._shared[content]}">{drawn}</g>')
        return f'<use href="#{self._shared[content]}" x="{x}" y="{y}"/>'

    def _picture(self, content: bytes) -> str:
        data = base64.b64encode(content).decode()
        return f'<image width="{WIDTH}" height="{TALL}" href="data:image/png;base64,{data}"/>'


def _text(line: Line) -> str:
    parts = []
    for run in line:
        colour = _COLOURS.get(run.colour, run.colour)
        bold = ' class="b"' if run.bold else ""
        length = f' textLength="{len(run.text) * CHARACTER:.1f}"' if len(run.text) > 1 else ""
        parts.append(f'<text x="{run.column * CHARACTER:.1f}" fill="#{colour}"{bold}{length}>{escape(run.text)}</text>')
    return "".join(parts)
