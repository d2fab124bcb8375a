"""Which recorded messages those are that a program gives to Mem0."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tracing.graph.elements import Variable
from tracing.recording.recorder import Recorder
from tracing.systems.texts import Text, noted

_SPEAKER = re.compile(r"[^\n:]{1,40}:\s+")


def messages_added(recorder: Recorder, payload: Any) -> list[Text]:
    """The messages in what `add` was given: those that the trace has, and the others as new ones.

    A message is known by its key `id`, which is the id or the name of its variable; else by its text, with or without
    `Speaker: ` before it. A text of several lines may hold a message in each.
    """
    with recorder.lock:
        recorder.settle()
        messages: _RecordedMessages = recorder.beside.setdefault(_RecordedMessages, _RecordedMessages())
        messages.look_at(recorder)
        return list(messages.messages(recorder, payload))


class _RecordedMessages:
    """The messages of a recording. The recorder's lock is held."""

    def __init__(self) -> None:
        self._seen = 0
        self._by_id: dict[str, Variable] = {}
        self._by_text: defaultdict[str, list[Variable]] = defaultdict(list)
        self._taken: set[str] = set()
        self._counts: Counter[str] = Counter()

    def look_at(self, recorder: Recorder) -> None:
        """Take notice of what was recorded since the last time."""
        variables = recorder.graph.variables
        for variable in islice(variables.values(), self._seen, None):
            if variable.kind == "message":
                self._by_id[variable.name] = self._by_id[variable.id] = variable
                for form in _forms(str(variable.value)):
                    self._by_text[form].append(variable)
        self._seen = len(variables)

    def messages(self, recorder: Recorder, payload: Any) -> Iterator[Text]:
        """See `messages_added`."""
        for item in payload if isinstance(payload, list) else [payload]:
            facts = item if isinstance(item, Mapping) else {"content": item}
            content, role = facts.get("content"), str(facts.get("role") or "message")
            text = content if isinstance(content, str) else str(content)
            variable = self._by_id.get(str(facts.get("id"))) or self._of(recorder, text)
            lines = [line for line in text.splitlines() if line.strip()]
            if variable is None and len(lines) > 1 and any(self._of(recorder, line) for line in lines):
                for line in lines:
                    yield self._text(recorder, line, role, self._of(recorder, line))
            else:
                yield self._text(recorder, text, role, variable)

    def _of(self, recorder: Recorder, text: str) -> Variable | None:
        """The message with this text: the first that was not added before, or else the last."""
        redacted = recorder.redaction.text(text)
        alike = next((self._by_text[form] for form in _forms(redacted) if form in self._by_text), [])
        return next((variable for variable in alike if variable.id not in self._taken), alike[-1] if alike else None)

    def _text(self, recorder: Recorder, text: str, role: str, variable: Variable | None) -> Text:
        if variable is not None:
            self._taken.add(variable.id)
            return Text(text, variable)
        while (name := f"{role}{self._counts[role] + 1}") in self._by_id:
            self._counts[role] += 1
        message = noted(text, name=name, kind="message", role=role)
        self.look_at(recorder)
        self._taken.add(message.variable.id)
        return message


def _forms(text: str) -> list[str]:
    plain = " ".join(text.split())
    spoken = _SPEAKER.sub("", text, count=1) if _SPEAKER.match(text) else text
    return list(dict.fromkeys((plain, " ".join(spoken.split()))))
