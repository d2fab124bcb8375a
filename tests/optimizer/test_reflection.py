import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_recordings import CONVERSATIONS, SHORT, Watched, attributions_of, script
from scripted_server import Reply, ScriptedServer, prompt_of

from attribution.text.languages.reading_language import language_of
from experiments.systems.fact_memory import PROMPTS
from optimizer.objectives.local_evaluation import recorded_inputs
from optimizer.objectives.objectives import objectives_of
from optimizer.proposers.examples import examples_of
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.rewrites import EarlierText, RewriteRequest
from optimizer.proposers.template import add_instruction
from optimizer.proposers.text_limits import TrainValuesStayOut
from optimizer.racing.whole_demonstrations import with_right_replies
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits

SPEC = PROMPTS["answer"]
TEXT = "Look at the memories. Answer the question.\n\n" + SPEC.text
BASELINE = {name: spec.text for name, spec in PROMPTS.items()} | {"answer": TEXT}
BETTER = add_instruction(TEXT, SHORT)
Setting = tuple[ReflectionProposer, RewriteRequest]


def lines(*texts: str) -> str:
    """An author's reply."""
    return json.dumps({"lines": texts})


class LineAuthor:
    """Replies to requests for changes in turn; everything else is the memory's model."""

    def __init__(self, *replies: Reply | str) -> None:
        self.replies, self.requests = list(replies), list[str]()

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        if "one line at a time" not in text:
            return script(body)
        self.requests.append(text)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


@pytest.fixture
def set_up(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> Callable[..., Setting]:
    def make(author: LineAuthor, count: int = 2) -> Setting:
        scripted_server.script = author
        access = open_access(retries=0)
        recorder = Watched(access, tmp_path)
        recordings = recorder.evaluate(BASELINE, CONVERSATIONS)
        failed, passed = examples_of(SPEC, recordings, attributions_of(recordings, recorder.system))
        inputs = recorded_inputs(SPEC, recordings)
        failed = with_right_replies(failed, objectives_of(recorder.evaluator, {})["answer"], inputs)
        request = RewriteRequest(SPEC, "answer", TEXT, BASELINE, None, failed, passed, count, seed=0)
        return ReflectionProposer(access.proposer), request

    return make


def texts_of(setting: Setting) -> list[str]:
    proposer, request = setting
    return [rewrite.text for rewrite in proposer.propose(request)]


def test_each_change_is_a_rewrite_of_its_own(
    set_up: Callable[..., Setting], capsys: pytest.CaptureFixture[str]
) -> None:
    author = LineAuthor(lines(SHORT, "1. Use the memories.", "drop 2"))
    proposer, request = set_up(author, count=3)
    added, replaced, dropped = proposer.propose(request)
    assert (added.prompt, added.text, added.source) == ("answer", BETTER, "reflection")
    assert added.reason == f"for long reply: added: {SHORT}"
    assert replaced.text == TEXT.replace("Look at the memories.", "Use the memories.")
    assert dropped.text == TEXT.replace(" Answer the question.", "")
    assert capsys.readouterr() == ("", "")


def test_a_line_that_resembles_an_instruction_stands_in_its_place(set_up: Callable[..., Setting]) -> None:
    (text,) = texts_of(set_up(LineAuthor(lines("Look at all the memories.")), count=1))
    assert text == TEXT.replace("Look at the memories.", "Look at all the memories.")


def test_the_author_reads_failures_of_one_kind_with_what_would_have_been_right(set_up: Callable[..., Setting]) -> None:
    author = LineAuthor(lines(SHORT))
    proposer, request = set_up(author, count=1)
    proposer.propose(request)
    (text,) = author.requests
    assert SPEC.purpose in text
    assert "1. Look at the memories.\n2. Answer the question." in text
    assert "The reply is more than the bare answer." in text
    assert "Right would have been: Zibbel" in text
    assert text.count("It wrote: ") == 2
    assert "2 of the 2 wrong answers that it is blamed for are of one kind." in text
    # Small models follow what they read last.
    assert text.index("It wrote: ") < text.index("no name, value or sentence from the cases")
    assert "Changes tried before" not in text


def test_another_kind_of_failure_has_a_request_of_its_own(set_up: Callable[..., Setting]) -> None:
    author = LineAuthor(lines(SHORT), lines("Say it."))
    proposer, request = set_up(author, count=2)
    example = request.failed[0]
    silent = replace(example.case, judgement=replace(example.case.judgement, contains=False))
    proposer.propose(replace(request, failed=(*request.failed, replace(example, outputs=(), case=silent))))
    assert len(author.requests) == 2
    assert "gives another value" in author.requests[1]


def test_changes_that_gained_are_offered_together_and_what_earlier_ones_brought_is_told(
    set_up: Callable[..., Setting],
) -> None:
    author = LineAuthor(lines("Look twice."))
    proposer, request = set_up(author, count=2)
    dropped = TEXT.replace("Look at the memories. ", "")
    worse = add_instruction(TEXT, "Be polite.")
    earlier = (EarlierText(BETTER, 0.75, 0.5), EarlierText(dropped, 0.625, 0.5), EarlierText(worse, 0.25, 0.5))
    request = replace(request, earlier=earlier, tried=frozenset({BETTER, dropped, worse}))
    together, alone = proposer.propose(request)
    assert together.text == add_instruction(dropped, SHORT)
    assert together.reason == f"together: added: {SHORT}; dropped: Look at the memories."
    assert alone.text == add_instruction(TEXT, "Look twice.")
    (text,) = author.requests
    assert f"+0.25: added: {SHORT}\n+0.12: dropped: Look at the memories.\n-0.25: added: Be polite.\n" in text


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I can't do that.",
        '{"lines": "all"}',
        '{"lines": [1, ["Hm."], ""]}',
        lines("Answer {question}"),
        lines("3. There is no such line.", "drop 0"),
        lines("1. Look at the memories.", "answer the question"),
        lines("It is Zibbel."),
        Reply(status=400),
        Reply(lines(SHORT)[:30], finish_reason="length"),
    ],
    ids=["empty", "prose", "no list", "no lines", "brace", "no such line", "unchanged", "answer", "refused", "cut"],
)
def test_a_reply_of_no_use_gives_nothing(set_up: Callable[..., Setting], reply: Reply | str) -> None:
    proposer, request = set_up(LineAuthor(reply))
    limited = replace(request.prompt, contract=replace(request.prompt.contract, rules=(no_zibbel,)))
    assert proposer.propose(replace(request, prompt=limited)) == []


def no_zibbel(text: str) -> list[str]:
    """A rule of a run: no value of its conversations."""
    return ["it holds an answer"] if "Zibbel" in text else []


def test_an_author_that_writes_no_changes_is_told_of_once(
    set_up: Callable[..., Setting], caplog: pytest.LogCaptureFixture
) -> None:
    proposer, request = set_up(LineAuthor("Be brief."))
    with caplog.at_level(logging.WARNING):
        proposer.propose(request)
        proposer.propose(replace(request, seed=1))
    assert [record.message for record in caplog.records].count(caplog.records[0].message) == 1
    assert "its reply holds no change of a line" in caplog.text


def test_lines_that_the_contract_refuses_are_counted_by_reason_without_what_they_quote(
    set_up: Callable[..., Setting], caplog: pytest.LogCaptureFixture
) -> None:
    proposer, request = set_up(LineAuthor(lines("It is Zibbel.", SHORT)))
    rule = TrainValuesStayOut({"Zibbel": language_of(["It is Zibbel."])}, frozenset(), frozenset())
    limited = replace(request.prompt, contract=replace(request.prompt.contract, rules=(rule,)))
    with caplog.at_level(logging.WARNING):
        (rewrite,) = proposer.propose(replace(request, prompt=limited, count=1))
    assert rewrite.text == BETTER
    assert "texts of its are refused: it is a value of the train conversations (1)" in caplog.text
    assert "Zibbel" not in caplog.text


def test_samples_differ_by_seed_and_repeat_with_it(
    set_up: Callable[..., Setting], scripted_server: ScriptedServer
) -> None:
    author = LineAuthor("")
    proposer, request = set_up(author)
    for seed in (0, 1, 0):
        proposer.propose(replace(request, seed=seed))
    asked = [body.get("seed") for body in scripted_server.requests if "one line at a time" in prompt_of(body)]
    assert len(set(asked)) == len(asked) == 4  # those of the third came from the cache


def test_a_spent_budget_passes_through(set_up: Callable[..., Setting], open_access: Callable[..., ModelAccess]) -> None:
    author = LineAuthor(lines(SHORT))
    _, request = set_up(author)
    with pytest.raises(BudgetExceededError):
        ReflectionProposer(open_access(Limits(calls=0), retries=0).proposer).propose(request)
    assert author.requests == []


def test_without_failures_there_is_nothing_to_reflect_on(set_up: Callable[..., Setting]) -> None:
    author = LineAuthor(lines(SHORT))
    proposer, request = set_up(author)
    assert proposer.propose(replace(request, failed=())) == []
    assert author.requests == []


def test_only_as_many_requests_are_made_as_rewrites_are_wanted(set_up: Callable[..., Setting]) -> None:
    author = LineAuthor(lines(SHORT, "drop 1"))
    assert len(texts_of(set_up(author, count=1))) == 1
    assert len(author.requests) == 1
