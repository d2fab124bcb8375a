"""The texts of a recording that programs copy: what was said, kept and found, known again where a text shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tracing.graph.elements import Variable
from tracing.recording.scope import RecorderLike

_SHORTEST = 8
"""A shorter text is known only where it is the whole; a letter of a script without spaces counts twice."""

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""A letter of Thai, Lao, Burmese, Khmer, Chinese, Japanese or Korean."""

_NAME = 3
"""Letters of such a script that a name may have."""


def says_something(text: str) -> bool:
    """Whether a text has several words, and so is more than a name or an id.

    Example:
        >>> says_something("Mara lives in Oslo"), says_something("Mara"), says_something("玛拉住在奥斯陆")
        (True, False, True)
    """
    return " " in text or (not text.isascii() and len(_UNSPACED.findall(text)) > _NAME)


def _is_long(text: str) -> bool:
    return len(text) >= _SHORTEST or (not text.isascii() and len(text) + len(_UNSPACED.findall(text)) >= _SHORTEST)


class KnownTexts:
    """Variables by their texts, each of a kind."""

    def __init__(self) -> None:
        self._by_text: dict[str, dict[str, Variable]] = {}

    def add(self, variable: Variable, kind: str, *texts: str) -> Variable:
        """Know a variable by these texts; the latest of a kind counts."""
        for text in filter(None, map(str.strip, texts)):
            self._by_text.setdefault(text, {})[kind] = variable
        return variable

    def shown_in(self, text: str, kinds: Sequence[str]) -> list[Variable]:
        """The variables whose texts stand in a text, of each text that of the first of the kinds; the longest texts."""
        whole = text.strip()
        shown = [
            (known, variable)
            for known, variables in self._by_text.items()
            if (known == whole or (_is_long(known) and known in whole))
            and (variable := next((variables[kind] for kind in kinds if kind in variables), None)) is not None
        ]
        longest = [
            variable
            for known, variable in shown
            if not any(len(known) < len(other) and known in other for other, _ in shown)
        ]
        return list({variable.id: variable for variable in longest}.values())

    def around(self, text: str, kinds: Sequence[str]) -> list[Variable]:
        """The variable with the shortest text of which a text is a piece; none if it is of none."""
        piece = text.strip().lstrip("-*•– ")
        whole = [
            (len(known), variables[kind])
            for known, variables in self._by_text.items()
            if _is_long(piece) and piece in known
            for kind in kinds
            if kind in variables
        ]
        return [min(whole, key=lambda entry: entry[0])[1]] if whole else []

    def count(self, kind: str) -> int:
        """How many texts of a kind are known."""
        return sum(kind in variables for variables in self._by_text.values())

    def kept(self, kinds: Iterable[str]) -> Iterator[tuple[str, str, Variable]]:
        """Text, kind and variable of all that are of these kinds."""
        for text, variables in self._by_text.items():
            yield from ((text, kind, variables[kind]) for kind in kinds if kind in variables)


def known_texts(recorder: RecorderLike) -> KnownTexts:
    """What is known in this recording."""
    known: KnownTexts = recorder.beside.setdefault(KnownTexts, KnownTexts())
    return known
