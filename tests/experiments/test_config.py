"""A configuration is either exactly right or refused in one line that names file, key and remedy."""

from pathlib import Path

import pytest

from experiments.runs.config_file import OPTIONS, anchored, bundled_configs, load_config
from experiments.runs.run_settings import dump_config, lasting_params
from tracing.errors import ConfigError
from tracing.llm.serving.weights import CATALOGUE, stored_path


def write(folder: Path, text: str) -> str:
    path = folder / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sistem: rag", ": sistem: unknown key; did you mean 'system'?"),
        ("models: {task: {modell: x}}", ": models.task.modell: unknown key; did you mean 'model'?"),
        (
            "sytem: rag\nbudget: {minuts: 3}\nmetrc: f1",
            ": budget.minuts: unknown key; did you mean 'minutes'?; sytem: unknown key; did you mean 'system'?; "
            "metrc: unknown key; did you mean 'metric'?",
        ),
        ("models: {judge: {model: x, url: y}}", ": models.judge.url: unknown key; known here: model, base_url"),
        ("search: {goal: cheaper}", ": search.goal: unknown key here; its place is 'goal'"),
        ("calls: 9", ": calls: unknown key here; its place is 'search.calls' or 'budget.calls'"),
        ("system: mem9", ": system: unknown: 'mem9'; did you mean 'mem0'?; choose one of fact-memory, rag, mem0"),
        ("metric: bleu", ": metric: unknown: 'bleu'; choose one of short_contains"),
        ("search: {selector: blam}", "'random', not 'blam'; did you mean 'blame'?; give it a value that fits"),
        ("metric: f11\nmatcher: wrods", ": metric: unknown: 'f11'; did you mean 'f1'?"),
        ("metric: f11\nmatcher: wrods", "; matcher: unknown: 'wrods'; did you mean 'words'?"),
        ("rounds: many\nproposals: few", "; proposals: input should be a valid integer"),
        ("rounds: many", ": rounds: "),
        ("limits: {sessions: 0}", ": limits.sessions: "),
        ("dataset: jsonl\ndata: missing.jsonl", ": data: no such file: "),
        ("dataset: locomo", ": data: missing; name the file"),
        ("dataset: sample\ndata: x.jsonl", ": data: the bundled sample takes no file"),
        ("rounds: 1\nseed: 2\nrounds: 3", ":3: the key 'rounds' stands twice"),
        ("limits: [1, 2", ":1: "),
        ("- just\n- a list", ": holds a list"),
        ("models: {task: {model: x, base_url: ftp://h}}", ": models.task.base_url: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_with_file_key_and_remedy(tmp_path: Path, text: str, expected: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert expected in message
    assert ";" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "value",
    [
        *("2026-99-99", "!!int x", "!!int ''", "!!float x", "!!bool x", "!!timestamp x", "!!binary 'x'", "'\\ud800'"),
        *(f"{'9' * 5000}", f"0x{'f' * 5000}", '"\\U7fffffff"', "!!timestamp 2001-12-14t21:59:43-99:30"),
    ],
)
@pytest.mark.parametrize("text", ["system: rag\nseed: {}", "system: {}", "system: rag\n? {}\n: 1"])
def test_a_value_that_yaml_cannot_make_is_refused_in_one_line(tmp_path: Path, text: str, value: str) -> None:
    path = write(tmp_path, text.replace("{}", value))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_yaml_tags_construct_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    path = write(tmp_path, f"system: !!python/object/apply:pathlib.Path.touch [{marker}]")
    with pytest.raises(ConfigError):
        load_config(path)
    assert not marker.exists()


def test_options_win_over_smoke_and_smoke_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "rounds: 9\nseed: 7\nmodels: {task: {model: m, context: 2048}}")
    config = load_config(path, overrides={"models.task.model": "chosen", "seed": None}, smoke=True)
    assert (config.models.task.model, config.models.task.context) == ("chosen", 2048)
    assert (config.rounds, config.seed) == (1, 7)


def test_smoke_keeps_data_and_endpoint_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    path = write(
        tmp_path, "dataset: jsonl\ndata: rows.jsonl\nmodels: {task: {model: m, base_url: 'http://127.0.0.1:9/v1'}}"
    )
    config = load_config(path, smoke=True)
    assert (config.dataset, config.data) == ("jsonl", tmp_path / "rows.jsonl")
    assert (config.limits.conversations, config.limits.sessions) == (3, None)
    assert (config.models.task.model, config.rounds) == ("m", 1)


def test_smoke_keeps_data_and_endpoint_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(tmp_path))
    stored_path(CATALOGUE["smollm2-135m"]).write_bytes(b"")
    (tmp_path / "rows.jsonl").write_text("{}")
    given = {"dataset": "jsonl", "data": tmp_path / "rows.jsonl", "models.task.base_url": "http://127.0.0.1:9/v1"}
    config = load_config(write(tmp_path, "models: {task: {model: m}}"), overrides=given, smoke=True)
    assert (config.limits.conversations, config.limits.sessions, config.models.task.model) == (3, None, "m")


def test_smoke_keeps_the_model_where_the_smallest_was_not_pulled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(tmp_path))
    assert load_config(None, smoke=True).models.task.model == load_config(None).models.task.model
    stored_path(CATALOGUE["smollm2-135m"]).write_bytes(b"")
    assert load_config(None, smoke=True).models.task.model == "smollm2-135m"


@pytest.mark.parametrize("models", ["", "m", "{task: m}"])
def test_smoke_refuses_what_the_file_alone_is_refused_for(tmp_path: Path, models: str) -> None:
    path = write(tmp_path, f"models: {models}")
    with pytest.raises(ConfigError) as alone:
        load_config(path)
    with pytest.raises(ConfigError, match="models") as smoke:
        load_config(path, smoke=True)
    assert str(smoke.value) == str(alone.value)


def test_a_wrong_option_is_named_as_the_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--rounds: "):
        load_config(write(tmp_path, "rounds: 2"), overrides={"rounds": -1})


def test_a_relative_data_path_is_relative_to_the_file_but_an_option_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    path = write(tmp_path, "dataset: jsonl\ndata: rows.jsonl")
    assert load_config(path).data == tmp_path / "rows.jsonl"
    monkeypatch.chdir(tmp_path)
    assert load_config(None, overrides={"dataset": "jsonl", "data": Path("rows.jsonl")}).data == Path("rows.jsonl")


def test_what_a_run_keeps_names_the_same_files_wherever_it_is_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "rows.jsonl").write_text("{}")
    text = (
        "dataset: jsonl\ndata: rows.jsonl\nmodels: {task: {model: m.gguf}, judge: {model: j, base_url: 'http://h'}}\n"
    )
    path = write(tmp_path / "here", text + "tracking: {uri: 'sqlite:///runs.db'}")
    monkeypatch.chdir(tmp_path)
    began = anchored(load_config("here/experiment.yaml"), Path.cwd())
    monkeypatch.chdir("/")
    kept = load_config(write(tmp_path, dump_config(began)))
    assert kept == began == anchored(load_config(path), Path.cwd())
    assert kept.data == tmp_path / "here" / "rows.jsonl"
    assert kept.models.task.model == str(tmp_path / "here" / "m.gguf")
    assert kept.models.judge is not None
    assert kept.models.judge.model == "j"
    assert kept.tracking.uri == f"sqlite:///{tmp_path}/here/runs.db"


def test_a_resumed_run_may_find_its_data_and_weights_elsewhere_but_no_other_endpoint(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    (tmp_path / "moved.jsonl").write_text("{}")

    def lasting(text: str) -> dict[str, object]:
        return lasting_params(load_config(write(tmp_path, f"dataset: jsonl\n{text}")))

    began = lasting("data: rows.jsonl\nmodels: {task: {model: a/m.gguf}, judge: {model: j, base_url: 'http://h'}}")
    moved = "data: moved.jsonl\nmodels: {task: {model: b/m.gguf}, judge: {model: j, base_url: 'http://h'}}"
    assert lasting(f"{moved}\nbudget: {{calls: 9}}") == began
    assert lasting(moved.replace("model: j", "model: k")) != began


@pytest.mark.parametrize("uri", ["sqlite:////tmp/x.db", "sqlite:///:memory:", "http://h:5000", "databricks"])
def test_a_store_that_is_no_relative_file_is_left_as_it_is(tmp_path: Path, uri: str) -> None:
    assert load_config(write(tmp_path, f"tracking: {{uri: '{uri}'}}")).tracking.uri == uri


def test_an_api_key_does_not_reach_the_file_that_a_run_keeps(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, "models: {task: {model: m, base_url: 'http://h/v1', api_key: sk-hidden123456}}")
    )
    kept = dump_config(config)
    assert "hidden" not in kept
    assert "base_url: http://h/v1" in kept
    with pytest.raises(ConfigError, match=r"m at http://h/v1: its api_key is not kept .*--resume RUN"):
        load_config(write(tmp_path, kept)).models.task.key()


@pytest.mark.parametrize("key", ["api_key: sk-hidden123456", "api_key_env: CORP_KEY"])
def test_another_endpoint_is_not_sent_the_key_of_the_one_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("CORP_KEY", "corp")
    monkeypatch.setenv("OPENAI_API_KEY", "usual")
    path = write(tmp_path, f"models: {{task: {{model: m, temperature: 1, base_url: 'http://a/v1', {key}}}}}")
    assert load_config(path, overrides={"models.task.model": "n"}).models.task.key() in ("sk-hidden123456", "corp")
    for other in ({"models.task.base_url": "http://b/v1"}, {"models.task": {"model": "n", "base_url": "http://b/v1"}}):
        task = load_config(path, overrides=other).models.task
        assert (task.base_url, task.key(), task.temperature) == ("http://b/v1", "usual", 1)


def test_every_bundled_configuration_is_valid() -> None:
    assert {"demo", "smoke"} <= set(bundled_configs())
    for name in bundled_configs():
        assert load_config(name).models.task.embedded


def test_every_option_sets_an_existing_key() -> None:
    values = {"dataset": "jsonl", "system": "rag", "data": Path(__file__), "models.task.base_url": "http://h/v1"}
    values |= {"models.task.model": "m", "attribution": "asking_method:ASKING", "matcher": "llm", "optimizer": "gepa"}
    values |= {"search.selector": "all", "search.blame": False, "search.local_objectives": False}
    values |= {"prompts.start": "mine", "prompts.tune": "extract, answer", "goal": "cheaper", "margin": 0.1}
    config = load_config(None, overrides={key: values.get(key, 3) for key in OPTIONS})
    assert config.limits.questions == config.budget.calls == config.seed == 3
    assert config.prompts.tune == ("extract", "answer")


def test_a_run_goes_on_only_with_the_calls_its_search_was_allowed(tmp_path: Path) -> None:
    limited = load_config(write(tmp_path, "search: {calls: 7}"))
    assert lasting_params(limited) == lasting_params(load_config(None)) | {"search.calls": 7}


def test_a_configuration_that_names_a_cluster_is_told_that_ray_is_gone_and_one_with_threads_is_read(
    tmp_path: Path,
) -> None:
    assert load_config(write(tmp_path, "executor: {kind: threads, address: null}")) == load_config(None)
    for section in ("{kind: ray}", "{kind: threads, address: auto}"):
        with pytest.raises(ConfigError, match=r"executor: Ray is no longer part of memtune: .*; leave it out"):
            load_config(write(tmp_path, f"executor: {section}"))


def test_an_endpoint_without_a_model_is_refused_with_the_option_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"models\.task\.model: missing; .*--model"):
        load_config(None, overrides={"models.task.base_url": "http://h/v1"})


def test_rounds_follow_the_optimizer_unless_they_are_given() -> None:
    assert (load_config(None).rounds, load_config(None).planned_rounds) == (None, 1)
    assert load_config(None, overrides={"optimizer": "closed-loop"}).planned_rounds == 3
    assert load_config(None, overrides={"rounds": 2}).rounds == 2
