"""LangMem's prompt optimizers ask an author of ours, also one that calls no tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest
from scripted_server import Reply, ScriptedServer

from experiments.systems.fact_memory import PROMPTS
from tracing.errors import CallFailedError
from tracing.llm.access import ModelAccess
from tracing.llm.serving.embedded import compact_grammar
from tracing.llm.settings import Limits

pytest.importorskip("langmem", reason="langmem is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

from benchmarks.authors.knowing import KnowingAuthor
from benchmarks.authors.langmem_optimizers import Kind, call_in, optimized, without_tools
from benchmarks.blame.real_model import real_flaws
from benchmarks.scripted_model import serve

PROMPT, BETTER = 'List what is liked, as {"facts": []}.', 'List what is said, as {"facts": []}, or {"none": 1}.'
RULES = "Keep the form."
FAILURE = {
    "Inputs": {"conversation": "Mara: I moved to Lyon."},
    "Generated Outputs": "nothing",
    "Feedback": "The final answer to 'Where does Mara live?' was 'unknown', but 'Lyon' is right.",
}
CALLS: Mapping[str, Mapping[str, Any]] = {
    "OptimizedPromptOutput": {"analysis": "-", "improved_prompt": BETTER},
    "recommend": {"warrants_adjustment": True, "hypotheses": "It left out Lyon.", "full_recommendations": "All."},
    "think": {"thought": "It left out Lyon."},
}
Open = Callable[..., ModelAccess]


def writer(body: Mapping[str, Any]) -> Reply | str:
    """Writes the better prompt as soon as a tool or a form for it is offered."""
    if not body.get("tools"):
        return json.dumps({"logic": "-", "update_prompt": True, "new_prompt": BETTER})
    offered = [tool["function"]["name"] for tool in body["tools"]]
    name = next(name for name in CALLS if name in offered)
    return calling(name, CALLS[name], body)


def calling(name: str, arguments: Mapping[str, Any], body: Mapping[str, Any]) -> Reply:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call{len(body['messages'])}", "type": "function", "function": function}
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
        return answer

    return Reply(change=change)


@pytest.mark.parametrize(("kind", "requests"), [("metaprompt", 5), ("gradient", 3), ("prompt_memory", 1)])
def test_each_optimizer_writes_one_text_and_asks_nothing_again(
    kind: Kind, requests: int, scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = writer
    for _ in range(2):
        text = optimized(open_access().proposer, kind, PROMPT, RULES, [FAILURE] * 2, sample=1)
        assert text == BETTER
    assert len(scripted_server.requests) == requests
    first = "\n".join(str(message["content"]) for message in scripted_server.requests[0]["messages"])
    assert all(part in first for part in (PROMPT, RULES, *FAILURE["Inputs"].values(), FAILURE["Feedback"]))


def test_a_request_with_tools_has_a_form_for_a_model_that_calls_none(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = writer
    for kind in get_args(Kind):
        optimized(open_access().proposer, kind, PROMPT, RULES, [FAILURE], sample=1)
    # What does not fit is to be mended by other tools.
    scripted_server.script = lambda body: calling("OptimizedPromptOutput", {"analysis": "-"}, body)
    with pytest.raises(IndexError):
        optimized(open_access().proposer, "metaprompt", PROMPT, RULES, [FAILURE], sample=2)
    asked = [body for body in scripted_server.requests if body.get("tools")]
    assert len(asked) > 8
    assert any(tool["function"]["name"] == "PatchFunctionErrors" for body in asked for tool in body["tools"])
    for body in asked:
        plain = without_tools(body)
        assert not {"tools", "tool_choice"} & plain.keys()
        assert {message["role"] for message in plain["messages"]} <= {"system", "user", "assistant"}
        assert all(message["content"] for message in plain["messages"])
        offered = [tool["function"]["name"] for tool in body["tools"]]
        assert all(name in plain["messages"][0]["content"] for name in offered)
        schema = plain["response_format"]["json_schema"]["schema"]
        assert compact_grammar(schema)
        forms = schema.get("anyOf", [schema])
        assert [form["properties"]["name"]["const"] for form in forms] == offered
    call = call_in(json.dumps({"name": "think", "arguments": CALLS["think"]}), "call2")
    assert (call["id"], call["function"]["name"]) == ("call2", "think")
    assert json.loads(call["function"]["arguments"]) == CALLS["think"]


@pytest.mark.parametrize("mending", [False, True])
def test_a_call_that_fails_is_told(mending: bool, scripted_server: ScriptedServer, open_access: Open) -> None:
    def failing(body: Mapping[str, Any]) -> Reply | str:
        mends = any(tool["function"]["name"] == "PatchFunctionErrors" for tool in body["tools"])
        return Reply("down", status=500) if mends or not mending else calling("recommend", {"hypotheses": 1}, body)

    scripted_server.script = failing
    with pytest.raises(CallFailedError):
        optimized(open_access(retries=0).proposer, "gradient", PROMPT, RULES, [FAILURE], sample=1)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_scripted_author_writes_the_right_line_where_nothing_is_left_of_it(kind: Kind) -> None:
    (flaw,) = real_flaws(["polite-complete"])
    with serve(KnowingAuthor([flaw])) as roles, ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:
        text = optimized(access.proposer, kind, "", PROMPTS["answer"].purpose, [FAILURE], sample=1)
    assert text.strip() == "Answer in a few words."
