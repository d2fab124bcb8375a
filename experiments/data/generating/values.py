"""The words of a turn that may be an answer: what the author chooses from, where an endpoint keeps to a schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attribution.text.content import content_of, time_words
from attribution.text.languages.language_data import function_words
from attribution.text.languages.reading_language import in_its_language, language
from attribution.text.stems import is_number
from experiments.data.generating.citations import stated

if TYPE_CHECKING:
    from experiments.data.generating.dialogue import Dialogue
    from tracing.systems.conversations import Turn

_LONGEST, _MOST = 4, 24
_WORD = r"[^\W_]+(?:['’.-][^\W_]+)*"
_RUN = re.compile(rf"{_WORD}(?: {_WORD})*")


class Values:
    """The values that turns of a conversation state."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self.language = dialogue.language
        """The language in which texts are read."""

    @in_its_language
    def of(self, turn: Turn) -> list[str]:
        """Names, numbers and things as the turn has them: words between its small words that hold a rare one."""
        runs = [run for run in _RUN.findall(stated(turn)) for run in self._between_small_words(run)]
        return list(dict.fromkeys(filter(self._tells, runs)))[:_MOST]

    def _between_small_words(self, text: str) -> list[str]:
        runs: list[list[str]] = [[]]
        for word in text.split():
            apart = word.casefold() in function_words(language()) or "'" in word or "’" in word
            if apart or any(not is_number(time) for time in time_words(word)):
                runs.append([])
            else:
                runs[-1].append(word)
        return [" ".join(run) for run in runs if 0 < len(run) <= _LONGEST]

    def _tells(self, value: str) -> bool:
        words = content_of(value) - self._dialogue.talk.names
        return any(is_number(word) or self._dialogue.is_rare(word) for word in words) and not words <= time_words(value)
