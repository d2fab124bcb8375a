"""DSPy on an access: one cache, one budget, one meter, and prompts that arrive as they were written."""

from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of

from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.dspy_lm import AccessEngine, lm_of
from tracing.llm.models import ChatModel
from tracing.llm.settings import Limits
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

dspy = pytest.importorskip("dspy")


def dspy_lm(model: ChatModel, *, max_tokens: int = 100) -> Any:
    return lm_of(AccessEngine(model, max_tokens))


@pytest.fixture(autouse=True)
def counting(scripted_server: ScriptedServer) -> None:
    """Each reply tells which request it answers."""
    scripted_server.script = lambda body: f"[[ ## answer ## ]]\nreply {scripted_server.count}\n\n[[ ## completed ## ]]"


def test_a_program_asks_once_and_finds_its_replies_again(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    for _ in range(2):
        access = open_access()
        with dspy.context(lm=dspy_lm(access.task)), trace(), operation("propose", kind="llm"):
            said = [dspy.Predict("question -> answer")(question=text).answer for text in ("one?", "two?", "one?")]
        assert said == ["reply 1", "reply 2", "reply 1"]
    assert scripted_server.count == 2
    usage = access.meter.snapshot()["propose"]
    assert (usage["calls_made"], usage["calls_cached"]) == (0, 3)


def test_equal_requests_are_samples_where_the_model_samples(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    for _ in range(2):
        lm = dspy_lm(open_access(temperature=0.7).task)
        assert [lm("say something")[0] for _ in range(2)] == [scripted(1), scripted(2)]
    assert [body["seed"] for body in scripted_server.requests] == [0, 1]


def scripted(number: int) -> str:
    return f"[[ ## answer ## ]]\nreply {number}\n\n[[ ## completed ## ]]"


def test_messages_schema_and_limits_reach_the_endpoint(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    lm = dspy_lm(open_access().task, max_tokens=77)
    lm(messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}])
    (body,) = scripted_server.requests
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    assert body["max_tokens"] == 77
    assert "Why?" in prompt_of(body)


def test_a_spent_budget_ends_the_program(open_access: Callable[..., ModelAccess]) -> None:
    lm = dspy_lm(open_access(Limits(calls=1)).task)
    lm("one")
    with pytest.raises(dspy.utils.exceptions.LMError) as caught:
        lm("two")
    assert isinstance(caught.value.__cause__, BudgetExceededError)


def test_a_failed_call_is_tried_by_the_access_alone(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    def fail(body: dict[str, Any]) -> Reply:
        return Reply("out of order", status=500)

    scripted_server.script = fail
    access = open_access(retries=0)
    with access.watch() as watch, pytest.raises(Exception, match="out of order"):
        dspy_lm(access.task)("one")
    assert scripted_server.count == 1
    assert len(watch.failures) == 1
