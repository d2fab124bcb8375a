"""The prediction of a run's cost grows with what the run has to do."""

from pathlib import Path

import pytest

from experiments.data.loaders import load_dataset
from experiments.running.estimate import Estimate, budget_notes, estimate, unused_notes
from experiments.running.parts import unpriced
from experiments.runs.config_file import load_config
from experiments.systems.rag import Rag
from tracing.systems.registry import open_system


def predicted(**overrides: object) -> Estimate:
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    config = load_config(None, overrides=given)
    return estimate(config, open_system(config.system, config.system_settings), load_dataset(config).splits)


def test_more_work_is_predicted_to_cost_more() -> None:
    small, large = predicted(rounds=1), predicted(rounds=4)
    assert small.calls < large.calls
    assert small.minutes < large.minutes
    assert predicted(rounds=1, limits__questions=2).prompt_tokens < small.prompt_tokens
    assert predicted(system="rag", rounds=1).calls < small.calls


def test_an_answer_reads_as_many_chunks_as_it_is_given() -> None:
    """In a run of RAG with these defaults a call read 468 tokens on average."""
    found = predicted(system="rag")
    assert 400 < found.prompt_tokens / found.calls < 500
    assert predicted(system="rag", system_settings={"top_k": 1}).prompt_tokens < found.prompt_tokens


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ({"calls": 880}, ["budget.calls is 880, and scoring the baseline prompts and the test take about 880 where"]),
        ({"calls": 881}, ["budget.calls is 881, and scoring the baseline prompts and the test take about 880 where"]),
        ({"calls": 1300}, []),
        ({"minutes": 0.5}, ["budget.minutes is 0.5, and "]),
        ({"minutes": 600, "tokens": 10}, ["budget.tokens is 10, and "]),
        ({"money": 0.01}, []),  # of a model without a price
        ({}, []),
    ],
)
def test_a_budget_that_leaves_nothing_to_try_is_told_beforehand(budget: dict[str, float], told: list[str]) -> None:
    config = load_config(None, overrides={"system": "rag", **{f"budget.{name}": most for name, most in budget.items()}})
    splits = load_dataset(config).splits
    found = budget_notes(config, open_system("rag", {}), splits)
    assert len(found) == len(told)
    assert all(note.startswith(start) for note, start in zip(found, told, strict=True))
    # Without rounds, nothing is to be tried.
    assert budget_notes(config.model_copy(update={"rounds": 0}), open_system("rag", {}), splits) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"optimizer": "gepa", "search.selector": "all", "proposers": ["bank"]},
            "proposers, search.selector",
        ),
        ({"optimizer": "gepa,local-search", "search.selector": "all"}, None),
        (
            {"optimizer": "closed-loop", "search.local_objectives": False},
            "search.local_objectives",
        ),
        ({"optimizer": "closed-loop", "search.blame": False}, None),
        ({"optimizer": "bootstrap", "models.proposer": {"model": "m"}}, "models.proposer"),
        (
            {"goal": "cheaper", "search.blame": False},
            "search.blame",
        ),
    ],
)
def test_what_a_search_knows_nothing_of_is_told(given: dict[str, object], told: str | None) -> None:
    notes = unused_notes(load_config(None, overrides=given))
    assert [note.rpartition(" without ")[2] for note in notes] == ([] if told is None else [told])


def test_a_local_search_is_predicted_to_rerun_operations_and_to_join_texts_on_what_it_learns_from() -> None:
    none, one, two = (predicted(system="rag", rounds=rounds, search__settings="none") for rounds in (0, 1, 2))
    # 24 texts on 30 recorded questions, and four combinations that meet all 24 conversations.
    reruns, joined = 24 * 30, 4 * 24
    assert one.calls - none.calls == reruns + 10 * joined
    assert two.calls - one.calls == one.calls - none.calls


def test_settings_that_may_be_tuned_are_predicted_to_race_too_and_to_ask_the_test_twice_more() -> None:
    def calls(**more: object) -> int:
        return predicted(rounds=1, **more).calls

    # Two that meet the 240 questions, at first and with another champion; prompts and settings alone on 320.
    auto = calls(system="rag") - calls(system="rag", search__settings="none")
    assert auto == 2 * 2 * 240 + 2 * 320
    # A named setting may be one of which what is retrieved tells nothing.
    tuned = calls(system="rag", search__settings={"top_k": [3]}) - calls(system="rag", search__settings="none")
    assert tuned == 3 * 2 * 240 + 2 * 320
    # What the system itself names as worth trying builds no other memory.
    auto = calls(search__settings="auto")
    assert auto - calls(search__settings="none") == 2 * 2 * 240 + 2 * 320
    assert calls(search__settings={"window": [2]}) > auto


def test_a_system_that_retrieves_nothing_is_predicted_to_read_everything_for_each_answer() -> None:
    whole, found = predicted(system="long-context", rounds=0), predicted(system="rag", rounds=0)
    assert whole.calls == found.calls
    assert whole.prompt_tokens > 1.5 * found.prompt_tokens


def test_a_search_that_checks_itself_is_predicted_to_ask_for_each_question_and_not_for_each_turn() -> None:
    plain, again = (
        predicted(system="evermemos", rounds=0),
        predicted(system="evermemos", rounds=0, system_settings={"rerank": 5}),
    )
    assert again.calls - plain.calls == predicted(system="rag", rounds=0).calls


def test_without_rounds_rag_makes_one_call_a_question_and_twice_on_test() -> None:
    assert predicted(system="rag", rounds=0).calls == 130 + 110 + 2 * 320


def test_a_model_that_judges_makes_a_call_a_reply() -> None:
    assert predicted(system="rag", rounds=0, metric="llm_judge").calls == 2 * (130 + 110 + 2 * 320)


def test_money_follows_the_prices_and_an_endpoint_is_not_timed_like_the_embedded_model(tmp_path: Path) -> None:
    path = tmp_path / "priced.yaml"
    path.write_text("models: {task: {model: m, base_url: 'http://h/v1', price_in: 2, price_out: 8}}\nrounds: 1")
    config = load_config(str(path))
    found = estimate(config, open_system(config.system), load_dataset(config).splits)
    assert found.money == pytest.approx((found.prompt_tokens * 2 + found.completion_tokens * 8) / 1e6, rel=1e-3)
    assert found.minutes < predicted(rounds=1).minutes


def test_an_author_of_its_own_is_predicted_to_be_asked_and_paid(tmp_path: Path) -> None:
    """A dear author cost more than `at most`, beside a task model without a price."""
    path = tmp_path / "authored.yaml"
    path.write_text("system: rag\nmodels: {proposer: {model: a, base_url: 'http://h/v1', price_in: 10, price_out: 40}}")

    def asked(rounds: int, **more: object) -> Estimate:
        config = load_config(str(path), overrides={"rounds": rounds, **more})
        return estimate(config, open_system(config.system), load_dataset(config).splits)

    assert asked(0).money == 0
    # 24 texts of at most three lines, each asked for twice; a request reads 1,000 tokens and writes 200.
    assert asked(2).money == pytest.approx(2 * 16 * (1000 * 10 + 200 * 40) / 1e6)
    assert asked(2).calls - predicted(system="rag", rounds=2).calls == 2 * 16
    assert asked(2, goal="cheaper").money == 0
    assert asked(1, optimizer="gepa", proposals=6).money == pytest.approx(4 * (1000 * 10 + 200 * 40) / 1e6)


class _Worded(Rag):
    settings = {"window": "7d", "chunk_tokens": 200, "top_k": None}  # noqa: RUF012 - as a user writes it


def test_a_setting_that_means_something_else_in_a_users_system_is_no_size() -> None:
    """A run ended before its first call: `int / str`, and `None * int`."""
    config = load_config(None, overrides={"system": "rag", "rounds": 0})
    splits = load_dataset(config).splits
    one_chunk = open_system("rag", {"chunk_tokens": 200, "top_k": 1})
    assert estimate(config, _Worded(), splits) == estimate(config, one_chunk, splits)


def test_half_a_price_keeps_no_budget(tmp_path: Path) -> None:
    path = tmp_path / "priced.yaml"
    models = "task: {model: m, base_url: 'http://h/v1', price_in: 2}, embedding: {model: e, base_url: 'http://h/v1', "
    path.write_text(f"models: {{{models} price_in: 1}}}}")
    told = unpriced(load_config(str(path)))
    assert told == "The price of m at http://h/v1 is unknown: set models.task.price_out"
