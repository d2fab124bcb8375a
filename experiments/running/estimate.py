"""What a run will cost at most, worked out from the data without calling a model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeGuard

from attribution.judging.metrics import LLM_JUDGE
from experiments.running.parts import choices_of, left_out, unpriced
from experiments.runs.config import RunConfig
from optimizer.evaluation.scores import Setting, Splits
from optimizer.gating.verdict import fewest_conversations, fewest_questions
from optimizer.proposers.reflection import most_requests
from optimizer.search.closed_loop import FINALISTS
from optimizer.search.joint_choice import MOST
from optimizer.search.measured_texts import MOST_INPUTS
from optimizer.search.optimizers import CLOSED_LOOP, LOCAL_SEARCH, OPTIMIZERS, OWN_SEARCHES, optimizers_of
from optimizer.search.prompt_search import REWRITES
from optimizer.search.retrieved_settings import MOST_COMBINED
from optimizer.search.rounds import SCREENED
from optimizer.search.settings_choice import TRIED
from tracing.llm.accounting.price import price
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.settings import AT_ONCE, ModelSettings
from tracing.systems.conversations import Conversation
from tracing.systems.description import describe
from tracing.systems.protocol import MemorySystem, RerunsOperations

CHARACTERS_A_TOKEN = 4
FACTS_A_TURN = 0.75
"""Facts that reach a decision, for each turn; measured on the bundled sample."""

REPLY_TOKENS = {"extract": 120, "update": 16, "retrieve": 40, "answer": 8}
CONTEXT_TOKENS = 160
"""Tokens of the memories that an answer or a decision is shown, where they are no chunks."""

JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS = 280, 40
"""Of a model that judges by label; by margin it writes a single token."""

AUTHOR_PROMPT_TOKENS, AUTHOR_REPLY_TOKENS = 1000, 200
"""Of a request to an author: the prompt with three failures, and a few lines."""

EMBEDDED_READ, EMBEDDED_WRITE = 140.0, 60.0
"""Tokens per second of the default embedded model on the two cores of docs/results.md, six replies written together."""

REMOTE_SECONDS = 1.0

LITTLE = 0.1
"""Part of what the search can use below which it is likely to end with nothing chosen."""


_UNUSED: tuple[str, ...] = ("proposers", "models.proposer", "search.selector", "search.blame")
"""Keys of a configuration that have no part where fewer tokens are sought."""

_USED_BY = {
    "proposers": OWN_SEARCHES,
    "models.proposer": tuple(name for name in OPTIMIZERS.built_in if name != "bootstrap"),
    "search.selector": (CLOSED_LOOP, LOCAL_SEARCH),
    "search.blame": (CLOSED_LOOP, LOCAL_SEARCH, "reference"),
    "search.local_objectives": (LOCAL_SEARCH,),
    "search.objectives": (LOCAL_SEARCH,),
}
"""Keys of a configuration that only some of the built-in optimizers know, with these."""

_Cost = tuple[float, float, float]
"""Calls of a prompt over some conversations, and their prompt and completion tokens."""

_Charge = tuple[ModelSettings, float, _Cost]
"""Who is called, how many times the cost, and the cost."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper bounds: nothing is assumed to be served from the cache.

    Attributes:
        calls: of chat models, and of an embedding model behind an endpoint.
        prompt_tokens, completion_tokens: of them.
        minutes: on two cores with an embedded model; otherwise at one second per call, with the configured
            concurrency.
        money: in the currency of the models' prices.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    minutes: float
    money: float


def test_notes(conversations: int) -> list[str]:
    """What a user should know before a run with this many test conversations."""
    fewest = fewest_conversations()
    if conversations >= fewest:
        return []
    return [
        f"{conversations} test conversations: no verdict but inconclusive is possible, however much prompts improve; "
        f"it takes at least {fewest}"
    ]


def rerun_notes(config: RunConfig, system: MemorySystem) -> list[str]:
    """What a user should know of a system that cannot rerun its operations, before a search on recorded inputs."""
    if isinstance(system, RerunsOperations) or LOCAL_SEARCH not in optimizers_of(config.optimizer):
        return []
    return [
        f"{config.system} has no rerun: where an operation makes one recorded model call, rewrites are measured by "
        "asking that again, and otherwise on whole conversations; memtune doctor --build tells which"
    ]


def settings_line(config: RunConfig, system: MemorySystem) -> str:
    """Which settings of the system may be tuned, from which values, or why none is."""
    title = "settings that may be tuned"
    refused = left_out(config, system)
    more = f"; left out: {', '.join(refused)}" if refused else ""
    if choices := choices_of(config, system):
        values = ", ".join(f"{name} ({', '.join(map(str, others))})" for name, others in choices.items())
        return f"{title}: {values}, beside the run's own, by what is retrieved, which asks no chat model{more}"
    if config.search.settings != "auto":
        return f"{title}: none, as search.settings says"
    if LOCAL_SEARCH not in optimizers_of(config.optimizer):
        return f"{title}: none, since {config.optimizer} tunes prompts alone"
    return f"{title}: none{more or f', since {config.system} names no values that are worth trying'}"


def margin_notes(margin: float, test: Sequence[Conversation]) -> list[str]:
    """What a user should know before a run that seeks fewer tokens within a margin of the score."""
    questions, enough = sum(len(conversation.questions) for conversation in test), fewest_questions(margin)
    if questions >= enough:
        return []
    return [
        f"{questions} test questions do not show that a score is lower by less than {margin:g}, unless it rises: "
        f"replies that are all judged alike show it from {enough} on; allow a larger --margin, or take more questions"
    ]


def unused_notes(config: RunConfig) -> list[str]:
    """What of a configuration has no part in the search that it asks for."""
    default, searches = RunConfig(), set(optimizers_of(config.optimizer))
    if config.goal == "cheaper":
        keys, why = _UNUSED, "fewer tokens are sought by cuts, not by blame or an author: without"
    else:
        known = searches <= OPTIMIZERS.built_in.keys()
        keys = tuple(key for key, users in _USED_BY.items() if known and searches.isdisjoint(users))
        why = f"{config.optimizer} searches without"
    unused = [key for key in keys if attrgetter(key)(config) != attrgetter(key)(default)]
    return [f"{why} {', '.join(unused)}"] if unused else []


def budget_notes(config: RunConfig, system: MemorySystem, splits: Splits) -> list[str]:
    """What a user should know before a run whose budget leaves the search little of what it can use, or nothing."""
    fixed = _by_budget(estimate(config.model_copy(update={"rounds": 0}), system, splits))
    total = _by_budget(estimate(config, system, splits))
    return [
        _budget_note(name, limit, fixed[name], total[name] - fixed[name])
        for name, limit in config.budget.model_dump(exclude_none=True).items()
        if config.planned_rounds and limit <= _enough(fixed[name], total[name] - fixed[name])
    ]


def cost_sentence(config: RunConfig, system: MemorySystem, splits: Splits) -> str:
    """What a run costs at most, and what of it comes before and after the search; a budget may end it earlier."""
    fixed = _by_budget(estimate(config.model_copy(update={"rounds": 0}), system, splits))
    total = _by_budget(estimate(config, system, splits))
    limits = {f"budget.{name}": (name, limit) for name, limit in config.budget.model_dump(exclude_none=True).items()}
    if config.search.calls is not None:
        apart = sum(calls for calls, _, _ in _apart_costs(config, system, splits)) if config.planned_rounds else 0
        limits["search.calls"] = "calls", fixed["calls"] + config.search.calls + apart
    # How far a run comes: 1 is all but the search, 2 all of it.
    progress, cap = min(((_progress(fixed, total, *limit), key) for key, limit in limits.items()), default=(2.0, ""))
    if progress >= 2:
        progress, cap = 2.0, ""
    most = {name: min(progress, 1) * fixed[name] + max(progress - 1, 0) * (total[name] - fixed[name]) for name in total}
    unknown = unpriced(config)
    names = ["calls", "tokens", *(["money"] if total["money"] else [])]
    digits = {"calls": 0, "tokens": 0, "money": 2}
    amounts = [
        ", ".join(f"{_figure(round(amount[name], digits[name]))} {name}" for name in names) for amount in (most, fixed)
    ]
    sentence = f"at most about {amounts[0]}" + (f", where {cap} ends it" if cap else "")
    if progress > 1:
        sentence += f"; of that, the baseline and the test take {amounts[1]}"
    return f"{sentence}; less where replies are cached" + (f". {unknown}" if unknown else "")


def _progress(fixed: dict[str, float], total: dict[str, float], name: str, limit: float) -> float:
    if limit < fixed[name]:
        return limit / fixed[name]
    search = total[name] - fixed[name]
    return 1 + (limit - fixed[name]) / search if search else 2.0


def _enough(fixed: float, search: float) -> float:
    """The budget with which a search is likely to choose something."""
    return fixed + LITTLE * search


def _by_budget(cost: Estimate) -> dict[str, float]:
    """The cost by the names of budgets."""
    tokens = cost.prompt_tokens + cost.completion_tokens
    return {"calls": cost.calls, "tokens": tokens, "money": cost.money, "minutes": cost.minutes}


def _budget_note(name: str, limit: float, fixed: float, search: float) -> str:
    if limit <= fixed:
        follows = "so no rewrite may be tried"
    else:
        rest = _figure(limit - fixed)
        follows = f"which leaves {rest} for a search that can use {_figure(search)}: it may end with nothing chosen"
    raised = math.ceil(_enough(fixed, search) + 1)
    return (
        f"budget.{name} is {_figure(limit)}, and scoring the baseline prompts and the test take about {_figure(fixed)} "
        f"where nothing is cached, {follows}; raise it to {raised:,}, or lower `limits`"
    )


def _figure(number: float) -> str:
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def estimate(config: RunConfig, system: MemorySystem, splits: Splits) -> Estimate:
    """The cost of a run of `config`.

    Counted are: every split with the baseline; in each round all rewrites on the conversations they are screened on,
    the finalists on the validation split and a new champion on the train split; and the champion on the test split. In
    a round of a local search: reruns on recorded inputs, and the joint choice on train and validation, of settings too
    where they may be tuned. Of several optimizers, each is counted. An author that is a model of its own is asked as
    often as if it brought nothing.
    """
    rounds = config.planned_rounds
    screened = min(1.0, SCREENED / len(splits.train)) * config.proposals
    finalists = min(FINALISTS, config.proposals)
    passes: dict[str, float] = {"train": 1, "validation": 1, "test": 2}
    model = config.models.task
    charges: list[_Charge] = []
    names = optimizers_of(config.optimizer)
    for name in names:
        # Fewer tokens are sought without an author.
        if config.goal != "cheaper" and (author := config.models.proposer) is not None:
            texts = REWRITES if name == LOCAL_SEARCH else config.proposals * len(system.prompts)
            charges.append((author, rounds * most_requests(texts), (1, AUTHOR_PROMPT_TOKENS, AUTHOR_REPLY_TOKENS)))
        if name != LOCAL_SEARCH:
            passes["train"] += rounds * (screened + 1)
            passes["validation"] += rounds * finalists
            continue
        searched = (*splits.train, *splits.validation)
        races = rounds * MOST
        if rounds and (choices := choices_of(config, system)):
            charges += _settings_charges(config, system, splits, choices)
        passes["train"] += races
        passes["validation"] += races
        # A rerun costs what one of the recorded calls cost.
        rerun_costs = _costs(system, searched, config.prompts.tune)
        charges += [(model, rounds * REWRITES * min(1.0, MOST_INPUTS / cost[0]), cost) for cost in rerun_costs]
    if len(names) > 1:
        passes["validation"] += 1  # what several found, together
    for name, group in splits.named().items():
        charges += [(model, passes[name], cost) for cost in _costs(system, group)]
        if config.metric == LLM_JUDGE:
            questions = sum(len(conversation.questions) for conversation in group)
            judging = (questions, questions * JUDGE_PROMPT_TOKENS, questions * JUDGE_REPLY_TOKENS)
            charges.append((config.models.judge or model, passes[name], judging))
        embedding = config.models.embedding
        if embedding is not None and not embedding.embedded:
            charges.append((embedding, passes[name], _embedding_cost(system, group)))
    calls = read = written = money = 0.0
    for settings, factor, (stage_calls, stage_read, stage_written) in charges:
        calls += factor * stage_calls
        read += factor * stage_read
        written += factor * stage_written
        money += factor * price(settings, TokenCounts(round(stage_read), round(stage_written))).money
    if model.embedded:
        seconds = read / EMBEDDED_READ + written / EMBEDDED_WRITE
    else:
        seconds = calls * REMOTE_SECONDS / (config.concurrency or AT_ONCE)
    return Estimate(round(calls), round(read), round(written), seconds / 60, money)


def _settings_charges(
    config: RunConfig, system: MemorySystem, splits: Splits, choices: Mapping[str, Sequence[Setting]]
) -> list[_Charge]:
    """What choosing settings costs: at first and with each new champion, and prompts and settings alone on the test.

    The replies that memories are made of are cached, where the settings are not those of building.
    """
    wanted = config.search.settings
    named = sum(map(len, wanted.values())) if isinstance(wanted, Mapping) else 0
    evaluated = (TRIED + min(MOST, named)) * (config.planned_rounds + 1)
    costs = _costs(system, (*splits.train, *splits.validation), _under_settings(config, system))
    charges: list[_Charge] = [(config.models.task, evaluated, cost) for cost in costs]
    charges += [(config.models.task, 1, cost) for cost in _apart_costs(config, system, splits)]
    embedding = config.models.embedding
    if embedding is not None and not embedding.embedded and not any(spec.builds for spec in system.prompts.values()):
        compared = min(MOST_COMBINED, math.prod(len(values) + 1 for values in choices.values()))
        charges.append((embedding, compared, _embedding_cost(system, splits.train)))
    return charges


def _apart_costs(config: RunConfig, system: MemorySystem, splits: Splits) -> list[_Cost]:
    """What the test takes with prompts alone, and with settings alone; nothing where no setting may be tuned."""
    return 2 * _costs(system, splits.test, _under_settings(config, system)) if choices_of(config, system) else []


def _under_settings(config: RunConfig, system: MemorySystem) -> list[str]:
    """The prompts whose replies differ under other settings."""
    building = isinstance(config.search.settings, Mapping)
    return [name for name, spec in system.prompts.items() if building or not spec.builds]


def _costs(system: MemorySystem, group: Sequence[Conversation], prompts: Collection[str] | None = None) -> list[_Cost]:
    """What each of these prompts costs over some conversations; by default each prompt of the system."""
    turns = sum(1 for conversation in group for _ in conversation.turns())
    characters = sum(len(turn.text) for conversation in group for turn in conversation.turns())
    questions = sum(len(conversation.questions) for conversation in group)
    # Settings of a user's own system may mean something else by these names.
    sizes = {name: value for name, value in describe(system).settings.items() if _is_size(value)}
    window = sizes.get("window", 8)
    if all(operation.stage != "retrieve" for operation in system.operations):
        # Each answer reads all that was said.
        context = sum(map(_read_by_answers, group)) / max(questions, 1)
    elif "chunk_tokens" in sizes:
        context = sizes.get("top_k", 1) * sizes["chunk_tokens"]
    else:
        context = CONTEXT_TOKENS
    costs = []
    for operation in system.operations:
        if operation.prompt is None or (prompts is not None and operation.prompt not in prompts):
            continue
        fixed = len(system.prompts[operation.prompt].text) / CHARACTERS_A_TOKEN
        reply = REPLY_TOKENS[operation.stage]
        if operation.stage == "extract":
            sessions = sum(len(conversation.sessions) for conversation in group)
            count = max(sessions, turns / window)
            costs.append((count, count * fixed + characters / CHARACTERS_A_TOKEN, count * reply))
        else:
            count = turns * FACTS_A_TURN if operation.stage == "update" else questions
            costs.append((count, count * (fixed + context), count * reply))
    return costs


def _is_size(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _embedding_cost(system: MemorySystem, group: Sequence[Conversation]) -> _Cost:
    """What embedding costs at an endpoint: each question, and what a memory keeps."""
    stages = {operation.stage for operation in system.operations}
    if "retrieve" not in stages:
        return 0, 0, 0
    texts = [turn.text for conversation in group for turn in conversation.turns()]
    built = len(texts) * FACTS_A_TURN if "update" in stages else len(group)
    questions = [question.question for conversation in group for question in conversation.questions]
    return len(questions) + built, sum(map(len, (*texts, *questions))) / CHARACTERS_A_TOKEN, 0


def _read_by_answers(conversation: Conversation) -> float:
    """Tokens of the conversation until then, with the time of each turn, for each of its questions."""
    read = characters = 0
    for stretch in conversation.stretches():
        lines = [f"- {part.time} {turn.spoken}" for part in stretch.sessions for turn in part.turns]
        characters += sum(map(len, lines))
        read += len(stretch.questions) * characters
    return read / CHARACTERS_A_TOKEN
