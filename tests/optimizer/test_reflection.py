from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_recordings import CONVERSATIONS, SHORT, Watched, attributions_of, script
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.systems.fact_memory import PROMPTS
from optimizer.proposers.examples import examples_of
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.rewrites import RewriteRequest
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits

SPEC = PROMPTS["answer"]
BASELINE = {name: spec.text for name, spec in PROMPTS.items()}
BETTER = SHORT + "\n" + SPEC.text
Setting = tuple[ReflectionProposer, RewriteRequest, Watched]


class Author:
    """Replies to reflection requests in turn; everything else is the memory's model."""

    def __init__(self, *replies: Reply | str) -> None:
        self.replies, self.asked = list(replies), list[str]()

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        if "Write a better template" not in text:
            return script(body)
        self.asked.append(text)
        return self.replies[min(len(self.asked), len(self.replies)) - 1]


@pytest.fixture
def set_up(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> Callable[..., Setting]:
    def make(author: Author, count: int = 2, limits: Limits | None = None) -> Setting:
        scripted_server.script = author
        access = open_access(limits, retries=0)
        recorder = Watched(access, tmp_path)
        recordings = recorder.evaluate(BASELINE, CONVERSATIONS)
        failed, passed = examples_of(SPEC, recordings, attributions_of(recordings, recorder.system))
        batch = tuple(CONVERSATIONS[:2])
        asked = RewriteRequest(SPEC, "answer", SPEC.text, BASELINE, None, failed, passed, batch, count, seed=0)
        recorder.evaluated.clear()
        return ReflectionProposer(recorder, access.proposer), asked, recorder

    return make


def test_a_rewrite_that_helps_is_proposed_with_what_it_gained(
    set_up: Callable[..., Setting], capsys: pytest.CaptureFixture[str]
) -> None:
    author = Author(f"Here it is:\n```\n{BETTER}\n```")
    proposer, asked, recorder = set_up(author)
    (rewrite,) = proposer.propose(asked)
    assert (rewrite.prompt, rewrite.text, rewrite.source) == ("answer", BETTER, "reflection")
    assert "0.50 to 1.00 on 2 train conversations" in rewrite.reason
    assert [each["answer"] for each in recorder.evaluated].count(BETTER) == 1
    assert all(each["extract"] == BASELINE["extract"] for each in recorder.evaluated)
    assert capsys.readouterr() == ("", "")


def test_the_draft_of_a_model_that_reasons_is_not_taken_for_its_rewrite(set_up: Callable[..., Setting]) -> None:
    draft = "{context}\nQuestion: parrot {question}"
    author = Author(f"<think>Perhaps\n```\n{draft}\n```\nNo.</think>\n```\n{BETTER}\n```")
    proposer, asked, _ = set_up(author)
    (rewrite,) = proposer.propose(asked)
    assert rewrite.text == BETTER


def test_a_model_that_reasons_at_length_gets_the_room_for_it(set_up: Callable[..., Setting]) -> None:
    author = Author(Reply("<think>Let me see", finish_reason="length"), f"<think>I see.</think>```\n{BETTER}\n```")
    proposer, asked, _ = set_up(author, count=1)
    (rewrite,) = proposer.propose(asked)
    assert rewrite.text == BETTER


def test_the_author_is_told_contract_replies_right_answers_and_reasons(set_up: Callable[..., Setting]) -> None:
    author = Author("")
    proposer, asked, _ = set_up(author, count=1)
    proposer.propose(asked)
    (text,) = author.asked
    assert SPEC.text in text
    assert "{context} {question}" in text
    assert "{{ and }}" in text
    assert SPEC.purpose in text
    assert "'Zibbel' is right" in text
    assert any(blame.reason in text for each in asked.failed if each.attribution for blame in each.attribution.decisive)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "```",
        "I can't do that.",
        "```\nAnswer {question}\n```",
        '```\n{"context"} {question}\n```',
        f"```\n{SPEC.text}\n```",
        f"```\n{SPEC.text} It is Zibbel or Muffin.\n```",
        Reply(status=400),
        Reply("```\nhalf", finish_reason="length"),
    ],
    ids=[
        "empty",
        "fence",
        "prose",
        "placeholder lost",
        "braces",
        "unchanged",
        "answers copied",
        "refused",
        "cut short",
    ],
)
def test_useless_replies_give_nothing_and_cost_no_rollout(set_up: Callable[..., Setting], reply: Reply | str) -> None:
    proposer, asked, recorder = set_up(Author(reply))
    assert proposer.propose(asked) == []
    assert {each["answer"] for each in recorder.evaluated} <= {SPEC.text}


def test_a_text_that_was_tried_is_not_measured_again(set_up: Callable[..., Setting]) -> None:
    proposer, asked, recorder = set_up(Author(f"```\n{BETTER}\n```"))
    assert proposer.propose(replace(asked, tried=frozenset({BETTER}))) == []
    assert {each["answer"] for each in recorder.evaluated} == {SPEC.text}


def test_a_rewrite_that_loses_on_the_minibatch_is_dropped(set_up: Callable[..., Setting]) -> None:
    worse = "{context}\nQuestion: parrot {question}"
    proposer, asked, recorder = set_up(Author(f"```\n{worse}\n```", f"```\n{BETTER}\n```"))
    assert [each.text for each in proposer.propose(asked)] == [BETTER]
    assert worse in {each["answer"] for each in recorder.evaluated}


def test_samples_of_one_request_differ_and_repeat_with_the_seed(
    set_up: Callable[..., Setting], scripted_server: ScriptedServer
) -> None:
    author = Author("")
    proposer, asked, _ = set_up(author, count=3)
    proposer.propose(asked)
    seeds = [body.get("seed") for body in scripted_server.requests if "Write a better template" in prompt_of(body)]
    assert len(set(seeds)) == 3
    proposer.propose(asked)
    assert len(author.asked) == 3  # the same samples came from the cache


def test_a_spent_budget_passes_through(set_up: Callable[..., Setting], open_access: Callable[..., ModelAccess]) -> None:
    author = Author(f"```\n{BETTER}\n```")
    proposer, asked, recorder = set_up(author)
    spent = open_access(Limits(calls=0), retries=0)
    stopped = ReflectionProposer(recorder, spent.proposer)
    with pytest.raises(BudgetExceededError):
        stopped.propose(asked)
    assert author.asked == []
    recorder.evaluator = replace(recorder.evaluator, access=spent)
    with pytest.raises(BudgetExceededError):
        proposer.propose(asked)


def test_without_failures_there_is_nothing_to_reflect_on(set_up: Callable[..., Setting]) -> None:
    author = Author(f"```\n{BETTER}\n```")
    proposer, asked, _ = set_up(author)
    assert proposer.propose(replace(asked, failed=())) == []
    assert author.asked == []
