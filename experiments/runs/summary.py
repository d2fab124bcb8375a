"""`summary.json`: the result of a run as one file that other programs read. Its keys are an interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, TypeAdapter

from attribution.judging.agreement import Agreement
from attribution.judging.words import METRICS, refused_for_form
from experiments.runs.earlier_names import current_summary
from experiments.runs.intervals import p_phrase
from optimizer.evaluation.scores import SplitName, Splits, setting_text
from optimizer.tuning.results import LoopResult, RunFigures
from optimizer.tuning.stopped import Stopped
from tracing.formats import read_stamped
from tracing.llm.accounting.price import Price
from tracing.llm.capabilities import Accepted
from tracing.llm.settings import Role

_LAST = (
    *("prompts_dir", "report", "mlflow", "judge", "samples", "noise", "settings", "search"),
    *("prompts_alone", "settings_alone", "margin", "bound", "tokens_per_question", "tried"),
)
"""Keys that end the file, in this order."""

SETTINGS_ALONE = "The champion has the baseline prompts with other settings of the memory system."

_VERDICTS: Mapping[str | None, str] = {
    "improved": "On conversations it never saw, the champion answers better than the baseline prompts.",
    "inconclusive": "The held-out conversations do not show a difference between the champion and the baseline "
    "prompts.",
    **dict.fromkeys(
        ("regressed", "worse"),
        "On conversations it never saw, the champion answers worse than the baseline prompts.",
    ),
    "cheaper": "On conversations it never saw, the champion takes fewer tokens, and is shown to answer no worse than "
    "the margin allows.",
    None: "The run stopped before the champion was scored on the test conversations.",
}
_UNCHANGED = "No rewrite became the champion: it is the baseline prompts, so there is no difference to test."
_NOT_SHOWN = (
    "The held-out conversations do not show that the champion takes fewer tokens and answers no worse than the margin "
    "allows."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitSize:
    """Which conversations a split holds, with how many questions; `generated` of these no person wrote."""

    conversations: tuple[str, ...]
    questions: int
    generated: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryMlflow:
    """Where the run is in MLflow; credentials in the URI are left out."""

    tracking_uri: str
    experiment_id: str
    run_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryJudge:
    """A model that judged the run: how, on how many replies, and how it agrees with the metric `compared_with`.

    Where it abstained, that metric decided. `threshold` was fitted on `calibrated_on` cases of the train split; the
    agreement of `held_out` cases is that of validation and test.
    """

    model: str
    mode: Literal["margin", "label"]
    threshold: float
    calibrated_on: int
    judged: int
    abstained: int
    compared_with: str
    agreement: Mapping[str, Agreement]


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known of a run beside its results; `prompts_dir` and `report` are relative to the folder of the file.

    `endpoints` has, by role with a model at an endpoint, what that takes of requests, as far as it was learnt.
    `samples` (whether the task model does), `attribution` and `optimizer` are null if the run is from before they were
    kept. `prices` has, by role, what a million tokens of a model of its own cost, and from where that is known; null
    if no price is known.
    """

    run_id: str
    system: str
    dataset: str
    model: str
    seed: int
    metric: str
    attribution: str | None = None
    optimizer: str | None = None
    splits: Mapping[SplitName, SplitSize]
    prompts_dir: str
    report: str
    mlflow: SummaryMlflow | None
    samples: bool | None = None
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    endpoints: Mapping[Role, Accepted] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Summary(RunFigures, RunFacts):
    """A run's settings and results.

    `stopped` says why the run ended. `judge` is null if no model judged, `noise` if the task model does not sample or
    it could not be measured. `settings` are those that the search changed: the champion has them, and `delta` is
    measured with them; `prompts_alone` and `settings_alone` are then what each makes without the other, null if it
    could not be measured.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    stopped: str
    judge: SummaryJudge | None = None

    @classmethod
    def from_json(cls, data: bytes, path: Path) -> Summary:
        """The summary that a file holds."""
        return read_stamped(path.name, data, path, _ADAPTER)

    def as_json(self) -> dict[str, Any]:
        """What its file holds, as JSON values."""
        values = json.loads(_ADAPTER.dump_json(self))
        return {name: values[name] for name in (*(name for name in values if name not in _LAST), *_LAST)}

    @property
    def ended(self) -> Stopped:
        """Why the run ended, whose sentence `stopped` is."""
        return Stopped.read(self.stopped)

    @property
    def settings_sentence(self) -> str | None:
        """Which settings changed, by what, and what they and the prompts gained alone; or why none did.

        None if no others were compared.
        """
        rounds = [record for record in self.rounds if record.settings_sentence]
        if not self.settings:
            return f"No setting of the memory system was changed: {rounds[0].settings_sentence}." if rounds else None
        changes = ", ".join(
            f"{name} {setting_text(change.before)} → {setting_text(change.after)}"
            for name, change in self.settings.items()
        )
        chosen = [
            f" Round {record.n}: {record.settings_sentence}."
            for record in rounds
            if any(tried.gate is not None and tried.gate.accepted for tried in record.settings)
        ]
        changed = f"Settings of the memory system were tuned too: {changes}.{''.join(chosen)}"
        if self.delta is None:
            return changed
        parts = ("prompts", self.prompts_alone), ("settings", self.settings_alone)
        alone = " and ".join(
            f"the {whose} alone make {difference.delta:+.3f} ({difference.verdict}, {p_phrase(difference.p_value)})"
            f"{self._saved(f'{whose}_alone')}"
            for whose, difference in parts
            if difference is not None
        )
        return f"{changed} Of the difference of {self.delta:+.3f} {alone or 'the parts were not measured'}."

    def _saved(self, side: str) -> str:
        """How many tokens a part of what changed saves, where fewer are sought."""
        before, after = self.tokens_per_question.get("baseline"), self.tokens_per_question.get(side)
        return "" if self.margin is None or not before or after is None else f" with {_fewer(before, after)} tokens"

    @property
    def endpoint_sentences(self) -> tuple[str, ...]:
        """For each role, what its endpoint does not take of requests; none for those that take all."""
        refusals = {role: accepted.sentence for role, accepted in self.endpoints.items()}
        return tuple(f"The endpoint of the {role} model: {said}." for role, said in refusals.items() if said)

    @property
    def gain_sentence(self) -> str | None:
        """Whether an improvement is one of content or of form, in a sentence.

        None if nothing was improved, and where words do not tell: with other metrics than those of words, and where an
        accepted answer is in no reply at all.
        """
        baseline, champion = self.baseline.get("test"), self.champion.get("test")
        of_words = self.metric in METRICS and self.metric != "contains"
        if self.verdict != "improved" or baseline is None or champion is None or not of_words:
            return None
        if not baseline.contains and not champion.contains:
            return None
        shares = f"an accepted answer is in {champion.contains:.3f} of the replies, from {baseline.contains:.3f}"
        exact = f"{champion.em:.3f} are one exactly, from {baseline.em:.3f}"
        content, whole = champion.contains - baseline.contains, champion.score - baseline.score
        if content <= 0:
            return f"The gain is one of form: {shares}, but {exact}."
        kind = "one of content" if 2 * content >= whole - 1e-9 else "more one of form than of content"
        return f"The gain is {kind}: {shares}; {exact}."

    @property
    def saving_sentence(self) -> str | None:
        """What a test question takes, and how sure it is that the score holds; None if better scores were sought."""
        before, after = (self.tokens_per_question.get(side) for side in ("baseline", "champion"))
        if self.margin is None or not self.rewritten or self.delta is None or not before or after is None:
            return None
        bound = "" if self.bound is None else f", and is at least {self.bound:+.3f} (one-sided 95 %)"
        return (
            f"A test question takes {after:,.0f} tokens, {_fewer(before, after)} than the {before:,.0f} with the "
            f"baseline prompts; the difference in score is {self.delta:+.3f}{bound}, where {-self.margin:+.3f} is "
            "allowed."
        )

    @property
    def verdict_sentence(self) -> str:
        """What the test says of the champion, in a sentence."""
        if self.rewritten and self.verdict == "inconclusive" and self.margin is not None:
            return _NOT_SHOWN
        return _VERDICTS[self.verdict] if self.rewritten or self.verdict is None else _UNCHANGED

    @property
    def rewritten(self) -> bool:
        """Whether there is a new champion; otherwise it is the baseline prompts with the run's own settings."""
        return any(record.accepted for record in self.rounds)

    @property
    def form_sentence(self) -> str | None:
        """How many of the baseline's and the champion's replies count as wrong for their form alone; None if few."""
        for whose, scores in (("champion", self.champion), ("baseline", self.baseline)):
            for split in ("test", "validation", "train"):
                score = scores.get(split)
                if score is None:
                    continue
                refusals = refused_for_form(self.metric, score.score, score.contains)
                if refusals is not None:
                    return f"With the {whose}'s prompts, on {split}, {refusals}."
                break
        return None

    @property
    def noise_sentence(self) -> str | None:
        """What noise means for the verdict, in a sentence or two; None without a verdict, or if it is not known."""
        if self.verdict is None or self.samples is None:
            return None
        if not self.samples:
            return "The task model does not sample, so nothing was asked twice and scores have no noise floor."
        if self.noise is None:
            return "The task model samples; the noise of the test score could not be measured."
        noise = self.noise
        sentence = (
            f"The task model samples: asked again, the baseline prompts were judged otherwise on {noise.changed} of "
            f"{noise.questions} test questions, so differences of up to {noise.noise:.3f} may be noise (95 %)."
        )
        within = self.rewritten and self.delta is not None and abs(self.delta) <= noise.noise
        return f"{sentence} The difference of {self.delta:+.3f} is within noise." if within else sentence

    @property
    def finished(self) -> bool:
        """Whether the run finished, also by a spent budget; False if it is running, was interrupted or failed."""
        return self.ended.finished


_ADAPTER: TypeAdapter[Summary] = TypeAdapter(Annotated[Summary, BeforeValidator(current_summary)])


def summarize(facts: RunFacts, result: LoopResult) -> Summary:
    """The summary of a result, equal to what is read from its file."""
    values = {
        attribute.name: getattr(source, attribute.name)
        for source, kind in ((facts, RunFacts), (result, RunFigures))
        for attribute in fields(kind)
    }
    return _ADAPTER.validate_python(_ADAPTER.dump_python(Summary(**values, stopped=str(result.stopped))))


def sizes(splits: Splits) -> dict[SplitName, SplitSize]:
    """How large each split is."""
    return {
        name: SplitSize(
            conversations=tuple(conversation.id for conversation in group),
            questions=len(questions),
            generated=sum(question.source == "generated" for question in questions),
        )
        for name, group in splits.named().items()
        for questions in [[question for conversation in group for question in conversation.questions]]
    }


def _fewer(before: float, after: float) -> str:
    return f"{abs(1 - after / before):.0%} {'fewer' if after <= before else 'more'}"
