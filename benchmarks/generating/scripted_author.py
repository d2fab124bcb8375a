"""An author that knows the written questions of conversations, as the script of a server: the strongest there can be.

Asked for a draft it gives the written question of the cited turn, of the kind that is asked for; asked a question it
answers if the messages that it is shown have the evidence, else that it is unknown.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from attribution.text.tokens import contains
from benchmarks.scripted_server import CHECK
from tracing.systems.conversations import Conversation, Question

_TIMED = re.compile(r"\bwhen\b", re.IGNORECASE)
_LINE = re.compile(r'^(?:\([^()]*\) )?(?P<speaker>[^:\n]+): (?P<text>".*")$', re.MULTILINE)
_MARKS = {
    "change": "Ask how it is now",
    "taken_back": "Ask for what was said first",
    "several_turns": "Ask for what both messages tell",
    "who": "Who of",
    "time": "Ask when",
}
_TASK = re.compile(r'^Ask about: .*\n(?P<task>.*Answer:) (?P<answer>".*")\Z', re.MULTILINE)


class ScriptedAuthor:
    """Replies to the requests of `experiments.data.generating`, of which it knows the texts."""

    def __init__(self, conversations: Iterable[Conversation]) -> None:
        self._by_turn: dict[tuple[str, str], list[Question]] = defaultdict(list)
        self._questions: dict[str, tuple[Question, frozenset[tuple[str, str]]]] = {}
        for conversation in conversations:
            turns = {turn.id: (turn.speaker, turn.text) for turn in conversation.turns()}
            for question in conversation.questions:
                evidence = [turns[turn] for turn in question.evidence]
                self._questions.setdefault(question.question, (question, frozenset(evidence)))
                if evidence:
                    self._by_turn[evidence[-1]].append(question)

    def __call__(self, body: Mapping[str, Any]) -> str:
        """The reply to a request."""
        if body.get("messages") == CHECK:
            return "ok"
        prompt = str(body["messages"][-1]["content"])
        messages = prompt.rpartition("\nAsk about: ")[0] or prompt
        shown = [(match["speaker"], json.loads(match["text"])) for match in _LINE.finditer(messages)]
        task = _TASK.search(prompt)
        if task is not None:
            return self._draft(task["task"], json.loads(task["answer"]), shown[-1])
        return self._answer(prompt.rpartition("Question: ")[2].removesuffix("\nAnswer:"), frozenset(shown))

    def _draft(self, task: str, answer: str, cited: tuple[str, str]) -> str:
        kind = next((kind for kind, mark in _MARKS.items() if mark in task), "fact")
        for question in self._by_turn[cited]:
            value = question.near_miss.value if question.unanswerable and question.near_miss else question.answers[0]
            asked = kind == "time" or contains(value, answer) or contains(answer, value)
            if kind == _kind_of(question) and asked:
                return question.question
        return "Nothing."

    def _answer(self, asked: str, shown: frozenset[tuple[str, str]]) -> str:
        question, evidence = self._questions.get(asked, (None, frozenset()))
        if question is None:
            return "unknown"
        if question.near_miss is not None and not evidence <= shown:
            return question.near_miss.value if shown and (question.supersedes or question.unanswerable) else "unknown"
        return question.answers[0] if evidence <= shown else "unknown"


def _kind_of(question: Question) -> str:
    if question.unanswerable:
        return "taken_back"
    if question.supersedes:
        return "change"
    return "time" if _TIMED.match(question.question) else "fact"
