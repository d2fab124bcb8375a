"""memtune inside MLflow's own evaluation and prompt optimization, against a real store and a model on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow.genai.optimize.types import EvaluationResultRecord
from openai import OpenAI
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.api.prompt_optimizer import MemtunePromptOptimizer
from experiments.api.scorers import accepted_answers, judge_scorer, metric_scorer
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from tracing.errors import ConfigError, DataError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings

CITIES = ("Oslo", "Turin", "Quito", "Hanoi", "Accra", "Perth", "Lagos", "Sofia", "Minsk", "Dakar", "Cairo", "Lima")
RECORDS = [
    {
        "inputs": {"question": f"Where does person {n} live?", "conversation": f"c{n // 2}"},
        "expectations": {"expected_response": city},
    }
    for n, city in enumerate(CITIES)
]
BASELINE = 'Tell what you know, as {"reply": …}.\nQuestion: {{question}}\nAnswer:'
BETTER = 'Answer in a few words, as {{"reply": …}}.\nQuestion: {question}\nAnswer:'


@pytest.fixture
def store(mlflow_home: Path, request: pytest.FixtureRequest) -> Iterator[TrackingStore]:
    """The tests' store as MLflow's default, in an experiment of the test's own."""
    import mlflow

    store = TrackingStore(store_uri(mlflow_home), f"genai {request.node.name}", "k")
    with store.as_default():
        mlflow.set_experiment(store.experiment)
        yield store


def answering(body: dict[str, Any]) -> str:
    """Says the city in a few words where the prompt asks for that; its best template is `BETTER`."""
    prompt = prompt_of(body)
    if "Write a better template" in prompt:
        # The second draft loses the variable, which memtune must reject.
        return f"```\n{BETTER if answering.drafts.pop() else 'Answer in a few words.'}\n```"  # type: ignore[attr-defined]
    city = next(city for n, city in enumerate(CITIES) if f"person {n} live" in prompt)
    return city if "few words" in prompt else f"{'As far as I can say from all that I know, it is ' * 2}{city}"


@pytest.mark.slow
def test_memtune_optimizes_a_prompt_of_the_registry_for_mlflow(store: TrackingStore, scripted_server: Any) -> None:
    import mlflow

    prompt = mlflow.genai.register_prompt(name="genai.answer", template=BASELINE)
    tuned = optimized(prompt, scripted_server, [True, False])
    (version,) = tuned.optimized_prompts
    assert version.version == 2
    assert version.template == 'Answer in a few words, as {"reply": …}.\nQuestion: {{question}}\nAnswer:'
    assert (tuned.optimizer_name, tuned.initial_eval_score, tuned.final_eval_score) == ("MemtunePromptOptimizer", 0, 1)
    (run,) = store.client.search_runs([store.experiment_id])
    assert run.data.metrics["final_eval_score"] == 1
    history = store.client.get_metric_history(run.info.run_id, "answers/validation_score")
    assert [(point.step, point.value) for point in history] == [(0, 0.0), (1, 1.0)]
    tried = json.loads(mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/rewrites.json"))
    gates = [dict(zip(tried["columns"], row, strict=True))["gate"] for row in tried["data"]]
    assert [gate.partition(":")[0] for gate in gates] == ["rejected", "accepted"]
    assert "the placeholder {question} is missing" in gates[0]


@pytest.mark.slow
def test_a_rewrite_that_helps_nothing_leaves_the_prompt_as_it_was(store: TrackingStore, scripted_server: Any) -> None:
    import mlflow

    prompt = mlflow.genai.register_prompt(name="genai.kept", template=BASELINE)
    tuned = optimized(prompt, scripted_server, [False, False])
    assert [each.template for each in tuned.optimized_prompts] == [BASELINE]
    assert tuned.final_eval_score == tuned.initial_eval_score


def optimized(prompt: Any, server: ScriptedServer, drafts: list[bool]) -> Any:
    import mlflow

    answering.drafts = drafts[::-1]  # type: ignore[attr-defined]
    server.script = answering
    client = OpenAI(base_url=server.base_url, api_key="unused")

    def answer(question: str, conversation: str) -> str:
        text = prompt.format(question=question)
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return reply.choices[0].message.content or ""

    return mlflow.genai.optimize_prompts(
        predict_fn=answer,
        train_data=RECORDS,
        prompt_uris=[prompt.uri],
        optimizer=MemtunePromptOptimizer(f"{server.base_url}#m", rounds=1, proposals=2, unit="conversation"),
        scorers=[metric_scorer()],
    )


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["with log-probabilities", "without"])
def test_the_judge_scores_for_mlflows_evaluation(
    store: TrackingStore, scripted_server: ScriptedServer, endpoint: str
) -> None:
    import mlflow

    def judged(body: dict[str, Any]) -> Reply:
        right = "Norway's capital" in prompt_of(body)
        if endpoint == "without":
            return Reply(json.dumps({"reason": "it is", "label": "right" if right else "wrong"}))
        return Reply("yes", first_token={"yes": -0.1, "no": -3.0} if right else {"yes": -3.0, "no": -0.1})

    scripted_server.script = judged
    data = [
        {"inputs": {"question": "Where?"}, "outputs": said, "expectations": {"expected_answer": ["Oslo"]}}
        for said in ("Norway's capital", "Rome")
    ]
    settings = ModelSettings(model="m", base_url=scripted_server.base_url)
    with ModelAccess.open({"task": settings}, cache_dir=None, limits=Limits()) as access:
        found = mlflow.genai.evaluate(data=data, scorers=[judge_scorer(access.judge), metric_scorer("contains")])
    assert found.metrics["llm_judge/mean"] == 0.5
    assert found.metrics["contains/mean"] == 0


@pytest.mark.parametrize(
    ("template", "records", "said"),
    [
        (BASELINE, RECORDS[:4], "has 4 units, at least 6 are needed"),
        ('[{"role": "user", "content": "{{question}}"}]', RECORDS, "is a list of chat messages"),
    ],
)
def test_what_cannot_be_optimized_is_refused_before_a_call(template: str, records: list[Any], said: str) -> None:
    optimizer = MemtunePromptOptimizer("http://127.0.0.1:9/v1#m")
    with pytest.raises(ConfigError, match=said):
        optimizer.optimize(lambda texts, rows: [], records, {"p": template})


@pytest.mark.parametrize(
    ("score", "each", "asked"),
    [(0.8, (0.8, 0.8, 0.8), 0), (2.4, (0.8, 0.8, 0.8), 0), (0.4, (0.4, 0.4, 0.4), 1), (1.2, (0.4, 0.4, 0.4), 1)],
    ids=["mean", "sum", "low mean", "low sum"],
)
def test_an_output_is_right_from_half_of_what_its_scorers_or_their_aggregation_can_say(
    scripted_server: ScriptedServer, score: float, each: tuple[float, ...], asked: int
) -> None:
    optimizer = MemtunePromptOptimizer(f"{scripted_server.base_url}#m", rounds=1, proposals=1)
    optimizer.optimize(scored(score, *each), RECORDS, {"p": BASELINE}, enable_tracking=False)
    assert scripted_server.count == asked


def test_scores_of_another_scale_are_refused() -> None:
    with pytest.raises(ConfigError, match="a record scored 4, and 1 is taken for right; give scorers from 0 to 1"):
        MemtunePromptOptimizer("http://127.0.0.1:9/v1#m").optimize(scored(4, 4), RECORDS, {"p": BASELINE}, False)


def scored(score: float, *each: float) -> Any:
    individual = {f"scorer{n}": value for n, value in enumerate(each)}
    return lambda texts, rows: [
        EvaluationResultRecord(row["inputs"], "out", {}, score, None, {}, individual) for row in rows
    ]


def test_a_metric_of_ones_own_is_a_scorer_and_one_that_is_none_is_refused_at_once() -> None:
    scorer = metric_scorer(lambda reply, answers: float(answers[0] in reply))
    assert scorer.run(outputs="in Oslo", expectations={"expected_answer": "Oslo"}).value == 1
    with pytest.raises(ConfigError, match="did you mean 'contains'"):
        metric_scorer("contain")
    with pytest.raises(ConfigError, match="asks a model; use judge_scorer"):
        metric_scorer("llm_judge")


@pytest.mark.parametrize("expected", [["Oslo", "in Norway"], "Oslo | in Norway"])
def test_accepted_answers_are_a_list_or_a_text_as_traces_have_it(expected: object) -> None:
    assert accepted_answers({"expected_answer": expected}) == ("Oslo", "in Norway")


@pytest.mark.parametrize(
    "outputs", ["Oslo", {"said": "Oslo"}, {"answer": "Oslo", "sources": ["D1"]}, {"trace": 3, "response": "Oslo"}]
)
def test_the_reply_is_found_among_what_a_program_returns(outputs: object) -> None:
    assert metric_scorer("em")(outputs=outputs, expectations={"expected_answer": ["Oslo"]}).value == 1


def test_outputs_without_a_reply_are_no_wrong_answer() -> None:
    with pytest.raises(DataError, match="outputs: choices, usage in it, and no text under answer"):
        metric_scorer("em")(outputs={"choices": [], "usage": 3}, expectations={"expected_answer": ["Oslo"]})
