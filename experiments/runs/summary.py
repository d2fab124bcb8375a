"""`summary.json`: the result of a run as one file that other programs read. Its keys are an interface."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from attribution.judging.words import refused_for_form
from experiments.runs.intervals import p_told
from optimizer.evaluation.scores import Interval, SplitName
from optimizer.gating.verdict import VerdictName
from optimizer.tuning.stopped import Stopped


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitSize(_Part):
    """Which conversations a split holds, and with how many questions."""

    conversations: tuple[str, ...]
    questions: int


class SummaryScore(_Part):
    """Means over `n` questions, 0..1; `ci` is the 95 % interval of `score`, null for a single conversation."""

    score: float
    em: float
    f1: float
    contains: float
    n: int
    ci: Interval | None


class SummaryBlame(_Part):
    """Share (0..1) of the failures blamed on an operation, with its 95 % interval."""

    share: float
    ci: tuple[float, float]


class SummaryAlignment(_Part):
    """How well a prompt's local objective predicts the answers: a rank correlation over `pairs`, with its interval."""

    correlation: float | None
    ci: Interval | None
    pairs: int
    misleads: bool


class SummaryCase(_Part):
    """A question, by the ids of its conversation and its own, with the replies before and after an edit."""

    conversation: str
    question: str
    asked: str
    before: str
    after: str


class SummaryEdit(_Part):
    """What an accepted edit did: differences by prompt, and of `compared` questions those it fixed and broke."""

    diffs: dict[str, str]
    compared: int
    fixed: tuple[SummaryCase, ...]
    broken: tuple[SummaryCase, ...]


class SummarySetting(_Part):
    """A setting of the memory system that the search changed: the run's own value, and the champion's."""

    before: bool | int | float | str
    after: bool | int | float | str


class SummarySettingsAttempt(_Part):
    """Settings that were tried, with new texts of the `prompts` named, if any.

    `recall` is the share of needs retrieved under them, `context_tokens` the mean length of what is retrieved, `gain`
    that in mean score over the champion. Null is what was not measured.
    """

    settings: dict[str, bool | int | float | str]
    prompts: tuple[str, ...]
    recall: float | None
    context_tokens: float | None
    gain: float | None
    gate: str | None


class SummaryPromptsAlone(_Part):
    """The champion's prompts against the seed's on the test, both under the run's own settings."""

    verdict: VerdictName
    delta: float
    delta_ci: Interval | None
    p_value: float


class SummaryIteration(_Part):
    """One turn of the loop; `validation_score` is the champion's after it, `alignment` by prompt.

    `edit` is null if the champion stayed. `settings` are those tried, `changed` those of the champion after it that
    are not the run's own. `search_calls` is what the search had made by its end. `optimizer` is the one of several that
    made the iteration, null for their race; what it tried is then not accepted before that.
    """

    n: int
    blame: dict[str, SummaryBlame]
    edited: tuple[str, ...]
    proposals: int
    accepted: bool
    validation_score: float
    calls_made: int
    calls_cached: int
    tokens: int
    alignment: dict[str, SummaryAlignment] = Field(default_factory=dict)
    edit: SummaryEdit | None = None
    settings: tuple[SummarySettingsAttempt, ...] = ()
    changed: dict[str, SummarySetting] = Field(default_factory=dict)
    search_calls: int | None = None
    optimizer: str | None = None


class SummarySearch(_Part):
    """What the search alone cost, without baselines and test: calls made, and their tokens in and out.

    `by_optimizer` has each one's part, where there are several.
    """

    calls: int
    tokens: int
    by_optimizer: dict[str, SummarySearch] = Field(default_factory=dict)


class SummaryCalls(_Part):
    """Model calls made, served from cache, and what evaluating everything again would have made.

    `money` is what those made cost, in the currency of the models' prices; null where no prices are known. `empty`
    counts the replies without a text.
    """

    made: int
    cached: int
    without_reuse: int
    money: float | None = None
    empty: int = 0


class SummaryMlflow(_Part):
    """Where the run is in MLflow; credentials in the URI are left out."""

    tracking_uri: str
    experiment_id: str
    run_id: str


class SummaryAgreement(_Part):
    """How a judge agrees with another over `n` cases; `kappa` and `auc` are null where they are not defined."""

    n: int
    accuracy: float
    kappa: float | None
    auc: float | None


class SummaryJudge(_Part):
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
    agreement: dict[str, SummaryAgreement]


class SummaryNoise(_Part):
    """How much scores of the seed differ between two evaluations of the test conversations with a model that samples.

    Two scores that differ by at most `noise` may have the same prompts (95 %); `deviation` is that of one score, and
    `changed` of `questions` were judged otherwise the second time.
    """

    noise: float
    deviation: float
    changed: int
    questions: int


class Summary(_Part):
    """A run's settings and results. `prompts_dir` and `report` are relative to the folder of the file.

    `verdict` and its related values are null if the run stopped before the test conversations were scored, `delta_ci`
    also if there is only one, `judge` if no model judged, `noise` if the task model does not sample or it could not be
    measured, `search` if it was interrupted or failed, `samples` (whether the task model does), `attribution` and
    `optimizer` if the run is from before they were kept. `settings` are those that the search changed: the champion
    has them, and `delta` is measured with them; `prompts_alone` is then the prompts' part of it, null if it could not
    be measured.
    """

    run_id: str
    system: str
    dataset: str
    model: str
    seed: int
    metric: str
    attribution: str | None = None
    optimizer: str | None = None
    splits: dict[SplitName, SplitSize]
    baseline: dict[SplitName, SummaryScore]
    champion: dict[SplitName, SummaryScore]
    verdict: VerdictName | None
    delta: float | None
    delta_ci: Interval | None
    p_value: float | None
    iterations: tuple[SummaryIteration, ...]
    calls: SummaryCalls
    stopped: str
    prompts_dir: str
    report: str
    mlflow: SummaryMlflow | None
    judge: SummaryJudge | None = None
    samples: bool | None = None
    noise: SummaryNoise | None = None
    settings: dict[str, SummarySetting] = Field(default_factory=dict)
    prompts_alone: SummaryPromptsAlone | None = None
    search: SummarySearch | None = None

    @property
    def ended(self) -> Stopped:
        """Why the run ended, whose sentence `stopped` is."""
        return Stopped.read(self.stopped)

    @property
    def settings_told(self) -> str | None:
        """Which settings changed, and what part of the difference is the prompts'; None if none changed."""
        if not self.settings:
            return None
        changes = ", ".join(f"{name} {each.before} → {each.after}" for name, each in self.settings.items())
        told = f"Settings of the memory system were tuned too: {changes}."
        if self.delta is None:
            return told
        alone = self.prompts_alone
        if alone is None:
            return f"{told} The difference of {self.delta:+.3f} is of both; the prompts' part could not be measured."
        return (
            f"{told} The difference of {self.delta:+.3f} is of both; under the settings that the run began with, the "
            f"prompts alone make {alone.delta:+.3f} ({alone.verdict}, {p_told(alone.p_value)})."
        )

    @property
    def gain_told(self) -> str | None:
        """Whether an improvement is one of content or of form alone, in a sentence; None if nothing was improved."""
        seed, champion = self.baseline.get("test"), self.champion.get("test")
        if self.verdict != "improved" or seed is None or champion is None or self.metric == "contains":
            return None
        shares = f"an accepted answer is in {champion.contains:.3f} of the replies, from {seed.contains:.3f}"
        exact = f"{champion.em:.3f} are one exactly, from {seed.em:.3f}"
        if champion.contains > seed.contains:
            return f"The gain is one of content: {shares}; {exact}."
        return f"The gain is one of form: {shares}, but {exact}."

    @property
    def rewritten(self) -> bool:
        """Whether there is a new champion; otherwise it is the seed prompts with the run's own settings."""
        return any(iteration.accepted for iteration in self.iterations)

    @property
    def form_told(self) -> str | None:
        """How many of the seed's and the champion's replies count as wrong for their form alone; None if few."""
        for whose, scores in (("champion", self.champion), ("seed", self.baseline)):
            for split in ("test", "validation", "train"):
                score = scores.get(split)
                if score is None:
                    continue
                told = refused_for_form(self.metric, score.score, score.contains)
                if told is not None:
                    return f"With the {whose}'s prompts, on {split}, {told}."
                break
        return None

    @property
    def noise_told(self) -> str | None:
        """What noise means for the verdict, in a sentence or two; None without a verdict, or if it is not known."""
        if self.verdict is None or self.samples is None:
            return None
        if not self.samples:
            return "The task model does not sample, so nothing was asked twice and scores have no noise floor."
        if self.noise is None:
            return "The task model samples; the noise of the test score could not be measured."
        found = self.noise
        told = (
            f"The task model samples: asked again, the seed prompts were judged otherwise on {found.changed} of "
            f"{found.questions} test questions, so differences of up to {found.noise:.3f} may be noise (95 %)."
        )
        within = self.rewritten and self.delta is not None and abs(self.delta) <= found.noise
        return f"{told} The difference of {self.delta:+.3f} is within noise." if within else told

    @property
    def finished(self) -> bool:
        """Whether the run finished, also by a spent budget; False if it is running, was interrupted or failed."""
        return self.ended.finished
