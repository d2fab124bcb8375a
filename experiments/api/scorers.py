"""memtune's metrics and judge as scorers of MLflow: for `mlflow.genai.evaluate` and `mlflow.genai.optimize_prompts`.

A record's accepted answers are its expectation `expected_answer`, as memtune's traces have it, or MLflow's own
`expected_response`: a list of texts any of which is a full answer, or a text, with ` | ` between several.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attribution.judging.llm_judge import JudgeThreshold, LlmJudge
from attribution.judging.metrics import LLM_JUDGE, Metric, measured_by, open_metric
from experiments.display.terminal import literal
from experiments.mlflow_tracking.run_artifacts import EXPECTED, SEPARATOR
from tracing.errors import ConfigError, DataError
from tracing.plugins import registered_object
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from mlflow.entities import Feedback
    from mlflow.genai.scorers import Scorer

    from tracing.llm.models import ChatModel

_EXPECTATIONS = (EXPECTED, "expected_response")
_REPLIES = ("answer", "response", "output", "reply", "text", "content")
"""Keys that may hold the reply where a program returns more than it."""


def metric_scorer(metric: str | Metric = "short_contains") -> Scorer:
    """A scorer that compares the output with the accepted answers by a metric (`short_contains`, `em`, `f1`, …).

    Its value is from 0 to 1; no model is asked. Your own metric may be `module:function` or the function itself. An
    output of several values is scored by its text `answer`, `response`, `output`, `reply`, `text` or `content`.

    Raises:
        ConfigError: there is no such metric, or it asks a model.
    """
    from mlflow.entities import AssessmentSource, Feedback
    from mlflow.genai.scorers import scorer

    name = metric if isinstance(metric, str) else registered_object(metric)
    if name == LLM_JUDGE:
        raise ConfigError(f"metric: {name!r} asks a model; use judge_scorer(access.judge)")
    measure = open_metric(name)

    @scorer(name=name.replace(":", "."))  # type: ignore[untyped-decorator]
    def score(outputs: Any, expectations: dict[str, Any]) -> Feedback:
        answers = accepted_answers(expectations)
        return Feedback(
            value=measured_by(measure, name, _reply(outputs), answers),
            rationale=f"accepted: {literal(' | '.join(answers))}",
            source=AssessmentSource(source_type="CODE", source_id=f"memtune {name}"),
        )

    return score


def judge_scorer(model: ChatModel) -> Scorer:
    """A scorer that asks a model whether the output is right; where it abstains, words decide.

    The question is the record's input `question`, or all of its inputs if there is none. Its value is 1 or 0.
    """
    from mlflow.entities import AssessmentSource, Feedback
    from mlflow.genai.scorers import scorer

    by_margin, by_label = LlmJudge(model), LlmJudge(model)
    by_label.calibration = JudgeThreshold("label")

    def right(question: Question, reply: str) -> float:
        margin = by_margin.opinion(question, reply).margin
        # Not every endpoint returns log-probabilities.
        return by_label.judge(question, reply).score if margin is None else float(margin > 0)

    @scorer(name=LLM_JUDGE.replace("-", "_"))  # type: ignore[untyped-decorator]
    def score(inputs: dict[str, Any], outputs: Any, expectations: dict[str, Any]) -> Feedback:
        question_text = inputs.get("question") or "\n".join(f"{name}: {value}" for name, value in inputs.items())
        question = Question(id="asked", question=str(question_text), answers=accepted_answers(expectations))
        return Feedback(
            value=right(question, _reply(outputs)),
            rationale=f"accepted: {literal(' | '.join(question.answers))}",
            source=AssessmentSource(source_type="LLM_JUDGE", source_id=f"memtune {model.settings.model}"),
        )

    return score


def accepted_answers(expectations: Mapping[str, Any]) -> tuple[str, ...]:
    """The accepted answers among a record's expectations.

    Raises:
        DataError: there are none.
    """
    expectation = next((expectations[name] for name in _EXPECTATIONS if expectations.get(name) is not None), None)
    if isinstance(expectation, list | tuple):
        answers = tuple(map(str, expectation))
    else:
        answers = () if expectation is None else tuple(str(expectation).split(SEPARATOR))
    if not answers:
        raise DataError(f"a record has no accepted answer; give its expectations {' or '.join(_EXPECTATIONS)}")
    return answers


def _reply(outputs: Any) -> str:
    """A text, or the one value of a mapping such as memtune's traces have, or its text under a usual key."""
    if isinstance(outputs, Mapping):
        replies = (outputs[name] for name in _REPLIES if isinstance(outputs.get(name), str))
        reply = next(iter(outputs.values())) if len(outputs) == 1 else next(replies, None)
        if reply is None:
            raise DataError(
                f"outputs: {', '.join(map(str, outputs)) or 'nothing'} in it, and no text under {', '.join(_REPLIES)}; "
                "return the reply under one of these keys, or alone"
            )
        outputs = reply
    return str(outputs)
