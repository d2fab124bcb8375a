"""A credential in the user's conversations reaches the models, and nothing that is kept for people to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from run_shapes import run_folder
from scripted_server import CHECK, Reply, ScriptedServer, prompt_of

from experiments.command import main
from experiments.mlflow_tracking.outbox import OUTBOX, Outbox
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore, in_words
from experiments.mlflow_tracking.writes import LogTable, LogText
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.run_settings import dump_config, lasting_params, params_of
from tracing.errors import ConfigError
from tracing.llm.settings import ModelSettings

CREDENTIAL = "kolibri07"
ADDRESS = f"https://example.org/?user=ann&password={CREDENTIAL}"


def conversation(number: int, split: str) -> dict[str, Any]:
    said = f"My page number {number} is {ADDRESS}"
    return {
        "id": f"talk{number}",
        "split": split,
        "speakers": ["Ann"],
        "sessions": [{"id": "D1", "turns": [{"id": "D1:1", "speaker": "Ann", "text": said}]}],
        "questions": [
            {
                "id": f"q{number}-1",
                "question": f"What is {ADDRESS}?",
                "answers": [f"page number {number}"],
                "evidence": ["D1:1"],
            },
            {"id": f"q{number}-2", "question": "Where is Ann's page?", "answers": [ADDRESS], "evidence": ["D1:1"]},
        ],
    }


@pytest.fixture
def ran(
    mlflow_home: Path, tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Runs memtune in a folder with such conversations; the model answers at length and wrongly, or in few words."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("rag.yaml").write_text(
        "system: rag\ndataset: jsonl\ndata: mine.jsonl\nrounds: 1\nproposals: 2\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )
    rows = [conversation(n, split) for n, split in enumerate(["train", "validation", "test"] * 3)]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(body: dict[str, Any]) -> str:
        at_length = prompt_of(body).endswith("in a few words:")
        return f"{'As far as I can tell from all that was said before, ' * 2 * at_length}{ADDRESS}"

    scripted_server.script = answer

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert isinstance(caught.value.code, int)
        return caught.value.code

    return run


def holding(*folders: Path, token: str = CREDENTIAL) -> set[str]:
    """The files below some folders that hold the credential."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if token.encode() in path.read_bytes()}


@pytest.mark.slow
def test_it_is_sent_and_only_caches_and_the_users_own_data_hold_it(
    ran: Callable[..., int], scripted_server: ScriptedServer, mlflow_home: Path, tmp_path: Path
) -> None:
    assert ran("run", "rag.yaml", "--home", "home", "--out", "run") == 0
    asked = [prompt_of(body) for body in scripted_server.requests if body.get("messages") != CHECK]
    assert asked
    assert all(ADDRESS in prompt for prompt in asked)
    ran("attribute", "run", "--home", "home", "--out", "attributions.jsonl")
    ran("diagnose", "run", "--home", "home", "--out", "diagnosis.html")
    assert Path("attributions.jsonl").read_text().count("[redacted]") > 2
    assert Path("diagnosis.html").stat().st_size > 1000
    # What is sent again must be whole: replies and built memories.
    working = {"responses.sqlite", "responses.sqlite-wal", *(path.name for path in Path("home/cache").rglob("*.json"))}
    assert holding(tmp_path, mlflow_home) - working == {"mine.jsonl"}
    assert holding(tmp_path / "run", mlflow_home) == set()


@pytest.mark.slow
def test_an_attribution_that_was_kept_is_found_again(ran: Callable[..., int], tmp_path: Path) -> None:
    ran("run", "rag.yaml", "--home", "home", "--out", "run")
    for _ in range(2):
        ran("attribute", "run", "--home", "home", "--out", "attributions.jsonl")
    lines = [json.loads(line) for line in Path("attributions.jsonl").read_text().splitlines()]
    cases = [(line["trace"], line["question_id"]) for line in lines if line["type"] == "case"]
    assert len(cases) == len(set(cases)) > 0


def test_what_waits_for_mlflow_holds_no_credential(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, 1)
    unreachable = TrackingStore("http://127.0.0.1:9", "memtune", "key", timeout=1)
    box = Outbox(unreachable, folder)
    box.send(
        LogText(path="a.txt", text=f"see {ADDRESS}"), LogTable(path="t.json", columns={"question": [ADDRESS, "b"]})
    )
    kept = (folder.path / OUTBOX).read_text()
    assert box.waiting == 2
    assert "[redacted]" in kept
    assert CREDENTIAL not in kept
    assert Outbox.load(folder, uri="http://127.0.0.1:9", timeout=1).waiting == 2


SECRET = "value-4711-nobody-may-see"


@pytest.mark.parametrize(
    "settings",
    [
        {"models": {"task": {"model": "m", "api_key": [SECRET]}}},
        {"models": {"task": {"model": "m", "api_key": {"key": SECRET}}}},
        {"models": {"task": {"model": "m", "api_key": 4711_4711_4711}}},
        {"models": {"task": [{"model": "m", "api_key": SECRET}]}},
        {"models": [{"api_key": SECRET}]},
        {"models": {"task": {"model": "m", "apikey": SECRET}}},
        {"models": {"task": {"model": "m", "base_url": f"ftp://me:{SECRET}@host"}}},
        {"models": {"task": f"sk-{SECRET}"}},
        {"tracking": {"uri": [f"postgresql://me:{SECRET}@host/db"]}},
        {"api_key": SECRET},
    ],
    ids=lambda settings: json.dumps(settings)[:60],
)
def test_a_wrong_setting_is_told_without_the_secret_in_it(tmp_path: Path, settings: dict[str, Any]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(settings))
    with pytest.raises(ConfigError) as refused:
        load_config(str(path))
    assert SECRET not in str(refused.value)
    assert "471147114711" not in str(refused.value)
    assert str(path) in str(refused.value)
    with pytest.raises(ValueError, match=r".") as raw:
        RunConfig.model_validate(settings)
    assert SECRET not in str(raw.value)


def test_a_wrong_value_that_is_no_secret_is_still_shown(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("rounds: many")
    with pytest.raises(ConfigError, match=r"rounds: .*'many'"):
        load_config(str(tmp_path / "c.yaml"))


def test_settings_of_a_model_show_no_key_that_is_wrong() -> None:
    with pytest.raises(ValueError, match="api_key") as refused:
        ModelSettings.model_validate({"model": "m", "api_key": [SECRET]})
    assert SECRET not in str(refused.value)


TOKEN = "sk-proj-4711abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": SECRET},
        {"db": {"password": SECRET, "host": "h"}},
        {"db": f"postgresql://me:{SECRET}@h/db"},
        {"llms": [{"provider": "h", "api_key": SECRET}, [{"password": SECRET}]]},
        {"header": f"Bearer {TOKEN}"},
        {"headers": ["h", f"Authorization: Bearer {TOKEN}"]},
        {"say": {"command": f"curl --header api_key={SECRET}"}},
    ],
    ids=lambda settings: json.dumps(settings)[:60],
)
def test_what_a_run_keeps_of_its_settings_holds_no_secret_of_a_system(settings: dict[str, Any]) -> None:
    config = RunConfig(system_settings={"top_k": 2, "host": "example.org", **settings})
    for kept in (dump_config(config), json.dumps(params_of(config)), json.dumps(lasting_params(config))):
        assert SECRET not in kept
        assert TOKEN not in kept
        assert "example.org" in kept


def test_a_run_whose_settings_had_a_token_goes_on_only_where_it_is_given_again(
    ran: Callable[..., int], scripted_server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tokened.py").write_text(
        "from experiments.systems.rag import Rag\n\n\nclass Tokened(Rag):\n"
        "    def __init__(self, *, headers: list[str]) -> None:\n        super().__init__()\n"
    )
    with Path("rag.yaml").open("a") as file:
        file.write(f"system_settings: {{headers: ['Authorization: Bearer {TOKEN}']}}\nbudget: {{calls: 2}}\n")
    Path("rag.yaml").write_text(Path("rag.yaml").read_text().replace("system: rag", "system: tokened:Tokened"))
    assert ran("run", "rag.yaml", "--home", "home", "--out", "run") == 0
    assert holding(tmp_path / "run", token=TOKEN) == set()
    asked = scripted_server.asked
    for dry in ([], ["--dry-run"]):
        assert ran("run", "--resume", "run", *dry) == 2
        assert "system_settings.headers: the run did not keep the secret in it" in capsys.readouterr().err
    assert scripted_server.asked == asked
    assert ran("run", "rag.yaml", "--resume", "run", "--home", "home") == 0


@pytest.mark.parametrize("length", [250, 270, 280, 285, 290, 299, 300, 301, 310])
def test_an_error_of_the_store_is_cut_after_its_password_is_out(length: int) -> None:
    uri = f"postgresql://me:{SECRET}%2F1@host/db"
    for said in (f"{'x' * length} {SECRET}%2F1 refused", f"{'x' * length} {SECRET}/1 refused"):
        told = in_words(ValueError(said), uri)
        assert len(told) < 320
        assert SECRET[:8] not in told


def test_a_key_that_an_endpoint_repeats_where_its_error_is_cut_is_nowhere(
    ran: Callable[..., int],
    scripted_server: ScriptedServer,
    mlflow_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    key = "an-unusual-key-of-4711-letters"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    lengths = iter(range(10_000))
    scripted_server.script = lambda body: Reply(f"{'x' * (478 + next(lengths) % 12)} {key} is wrong", status=400)
    assert ran("run", "rag.yaml", "--home", "home", "--out", "run") != 0
    said = "".join(capfd.readouterr())
    assert "HTTP 400" in said
    kept = [path for folder in (tmp_path, mlflow_home) for path in folder.rglob("*") if path.is_file()]
    for text in (said.encode(), *(path.read_bytes() for path in kept)):
        assert key[:8].encode() not in text
