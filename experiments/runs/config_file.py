"""Reading a configuration: a YAML file, overridden by command line options, with errors that name file and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from experiments.data.datasets import CARDS, SAMPLE
from experiments.runs.config import RunConfig
from experiments.runs.earlier_names import with_current_keys
from experiments.runs.folder import BASELINE, FINGERPRINT, RunFolder
from experiments.runs.run_settings import without_secrets
from tracing.errors import ConfigError
from tracing.files.file_kinds import likeness
from tracing.files.opening import read_file
from tracing.files.yaml_text import load_yaml
from tracing.formats import unstamped
from tracing.graph.values import snapshot
from tracing.llm.serving.weights import CATALOGUE, stored_path
from tracing.plugins import is_object, look_in
from tracing.recording.redaction import Redaction, excerpt, redact
from tracing.suggestions import did_you_mean, unknown_key
from tracing.systems.registry import SYSTEMS


def _unnoted(_earlier: str, _key: str) -> None:
    """An earlier name of a key is as good as the name now."""


def load_config(
    source: str | None,
    *,
    overrides: Mapping[str, Any] | None = None,
    smoke: bool = False,
    on_earlier_key: Callable[[str, str], None] = _unnoted,
) -> RunConfig:
    """The configuration in `source`, with `overrides` (`key.path` → value, from the command line) applied.

    A file or folder of data without the name of its data set is recognised by its content.

    Args:
        source: path of a YAML file, the name of a bundled one (`demo`, `smoke`), or None for the defaults.
        overrides: values that are None are ignored. Another `base_url` of a model goes without the key in `source`.
        smoke: lay the bundled `smoke` configuration over `source`; its model only where that was pulled and no
            endpoint is named, and its limit of sessions only where the bundled sample is taken.
        on_earlier_key: called with each key that `source` has by its earlier name, and with its name now.

    Raises:
        ConfigError: `FILE: key.path: message; remedy`.
        DataError: the data are not recognised.
    """
    values: dict[str, Any] = {}
    folder = Path()
    label = "options"
    if source is not None:
        label, folder, values = _read(source, on_earlier_key)
    options = {key: value for key, value in (overrides or {}).items() if value is not None}
    above: dict[str, Any] = {}
    for key, value in options.items():
        above = _merged(above, _nested(key, value))
    above = with_current_keys(above, "options", _unnoted)
    values = _without_keys(values, above)
    if smoke:
        values = _merged(values, _fitting(_read("smoke")[2], _merged(values, above)))
    values = _merged(values, above)
    config = _with_modules(anchored(_validated(values, label, options), folder, besides=options), folder)
    if "prompts.start" not in options:
        config = with_own_start(config, folder)
    config = _self_contained(config, folder)
    if config.data is not None and "dataset" not in values:
        if not config.data.exists():
            raise ConfigError(f"{label}: data: no such file: {config.data}; give --data an existing file")
        config = config.model_copy(update={"dataset": _recognised(config.data)})
    return _complete(config, label)


def with_own_start(config: RunConfig, folder: Path) -> RunConfig:
    """The configuration in the folder of a run with the run's copy of the prompts that it began with.

    The folder that they came from may have changed since, or gone.
    """
    copy = RunFolder(folder).prompts_folder(BASELINE)
    if config.prompts.start is None or not (folder / FINGERPRINT).is_file() or not copy.is_dir():
        return config
    return config.model_copy(update={"prompts": config.prompts.model_copy(update={"start": copy.absolute()})})


def _self_contained(config: RunConfig, folder: Path) -> RunConfig:
    """The same with the content of a file that a system's setting names, but for secrets: a run outlives it."""
    keeps = None if is_object(config.system) else getattr(SYSTEMS.open(config.system), "kept_settings", None)
    return (
        config
        if keeps is None
        else config.model_copy(update={"system_settings": keeps(config.system_settings, folder)})
    )


def _recognised(data: Path) -> str:
    from experiments.data.data_check import dataset_name_of

    return dataset_name_of(data)


def _fitting(smoke: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The `smoke` configuration without what holds for the bundled data alone, or a model that is not to be had."""
    if values.get("dataset", SAMPLE) != SAMPLE:
        del smoke["limits"]["sessions"]  # what is asked about may be told in later ones
    small = CATALOGUE[smoke["models"]["task"]["model"]]
    elsewhere = _at(values, "models", "task", "base_url") or _at(values, "models", "task", "litellm")
    if elsewhere or not stored_path(small).is_file():
        del smoke["models"]
    return smoke


def _at(values: Any, *path: str) -> Any:
    """What is at a path of values that are not validated yet; None if there is nothing."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


_OF_ONE_HOST = ("api_key", "api_key_env", "key_command", "headers", "api_version")
"""Settings of a model that are its endpoint's alone."""


def _without_keys(values: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without the secrets of models whose endpoint `above` replaces: they are for no other host."""
    models, replaced = values.get("models"), above.get("models")
    if not isinstance(models, Mapping) or not isinstance(replaced, Mapping):
        return values
    safe = dict(models)
    for role, settings in replaced.items():
        if isinstance(settings, Mapping) and "base_url" in settings and isinstance(safe.get(role), Mapping):
            safe[role] = {key: value for key, value in safe[role].items() if key not in _OF_ONE_HOST}
            if "extra_body" in safe[role]:
                safe[role]["extra_body"] = without_secrets(safe[role]["extra_body"])
    return {**values, "models": safe}


def read_config(source: str) -> RunConfig:
    """The configuration in `source` unchecked against the disk: the files it names need not exist."""
    label, folder, values = _read(source)
    return _with_modules(anchored(_validated(values, label, {}), folder), folder)


def _with_modules(config: RunConfig, folder: Path) -> RunConfig:
    """The same with the folders of `module:Object`, which are searched from now on; a run keeps them.

    Without such a part there is nothing to keep.
    """
    if not any(is_object(name) for _, name in config.parts()):
        return config
    folders = config.modules or tuple(dict.fromkeys((folder.resolve(), Path.cwd())))
    for modules in folders:
        look_in(modules)
    return config.model_copy(update={"modules": folders})


def _validated(values: Mapping[str, Any], label: str, options: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, label, options)) from None


def anchored(config: RunConfig, folder: Path, *, besides: Collection[str] = ()) -> RunConfig:
    """The same configuration with its relative paths under `folder`, except those of the keys in `besides`.

    These are the file of the data set, the folder of baseline prompts, folders of modules, the weights of embedded
    models, and sqlite files of MLflow and of studies.
    """
    paths = {
        "data": config.data and folder / config.data,
        "prompts.start": config.prompts.start and folder / config.prompts.start,
        "modules": [(folder / path).absolute() for path in config.modules],
        "tracking.uri": _anchored_store(config.tracking.uri, folder),
        "search.storage": _anchored_store(config.search.storage, folder),
        **{
            f"models.{role}.model": str(folder / model.model)
            for role, model in config.models.roles().items()
            if model.embedded and Path(model.model).suffix == ".gguf"
        },
    }
    values = config.model_dump(exclude_unset=True)
    for key, path in paths.items():
        if path and key not in besides:
            values = _merged(values, _nested(key, path))
    return RunConfig.model_validate(values)


_RELATIVE_STORE = re.compile(r"(?P<scheme>sqlite(\+\w+)?://)/(?P<path>(?!/|:memory:|file:).+)")


def _anchored_store(uri: str | None, folder: Path) -> str | None:
    """The URI of a sqlite file with its absolute path; None if it is none, or has one."""
    store = uri and _RELATIVE_STORE.match(uri)
    return f"{store['scheme']}/{(folder / store['path']).absolute()}" if store else None


def bundled_configs() -> list[str]:
    """Names of the configurations that come with memtune."""
    folder = resources.files("experiments") / "configs"
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def _complete(config: RunConfig, label: str) -> RunConfig:
    card = CARDS.get(config.dataset)
    if card is not None and card.takes == "nothing" and config.data is not None:
        raise ConfigError(
            f"{label}: data: the bundled {config.dataset} takes no file; add --dataset jsonl or --dataset locomo"
        )
    if config.data is None:
        if card is not None and card.takes != "nothing":
            named = "FOLDER" if card.takes == "a folder" else "FILE"
            what = f"name the {card.takes[2:]} of data set {config.dataset!r} with --data {named}"
            fetched = f", or fetch it first: memtune data fetch {config.dataset}" if card.can_be_fetched else ""
            raise ConfigError(f"{label}: data: missing; {what}{fetched}")
    elif not config.data.exists() or (card is not None and card.takes == "a file" and not config.data.is_file()):
        raise ConfigError(f"{label}: data: no such file: {config.data}; give --data an existing file")
    elif card is not None and card.takes == "a folder" and not config.data.is_dir():
        raise ConfigError(f"{label}: data: is not a folder: {config.data}; give --data an existing folder")
    return config


def _read(source: str, on_earlier_key: Callable[[str, str], None] = _unnoted) -> tuple[str, Path, dict[str, Any]]:
    bundled = resources.files("experiments") / "configs" / f"{source}.yaml"
    if source in bundled_configs():
        label, folder, text = f"{source}.yaml", Path(), bundled.read_text(encoding="utf-8")
    else:
        path = Path(source)
        if looks := likeness(path, "config", "json", "table", "text", "broken", "empty", "folder"):
            raise ConfigError(f"{path}: is not a configuration; {looks}")
        try:
            label, folder, text = str(path), path.parent, read_file(path).decode()
        except FileNotFoundError:
            names = bundled_configs()
            near = did_you_mean(source, [*names, *(str(file) for file in path.parent.glob("*.y*ml"))])
            raise ConfigError(
                f"{path}: no such file{near}; give an existing YAML file, or {' or '.join(names)}"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ConfigError(f"{path}: cannot be read ({reason}); give a YAML file") from None
    try:
        values = load_yaml(text, _StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{label}{line}: {error.problem or 'not YAML'}; correct the YAML there") from None
    except (yaml.YAMLError, ValueError) as error:  # the latter for an escape that is not a character
        raise ConfigError(f"{label}: not YAML ({' '.join(str(error).split())}); correct the file") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{label}: holds a {type(values).__name__}; write `key: value` lines, such as `system: rag`")
    return label, folder, with_current_keys(unstamped("config.yaml", values, label), label, on_earlier_key)


_CANNOT_CONSTRUCT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises if a text does not fit its type: a day that does not exist, `!!int x`, `!!bool x`."""


class _StrictLoader(yaml.SafeLoader):
    """Refuses a duplicate key, of which YAML would silently take the last, and says where it fails."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                str(value)  # Python refuses to write a number of thousands of digits, which hexadecimal text can hold
        except _CANNOT_CONSTRUCT:
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(problem=f"no readable {kind}", problem_mark=node.start_mark) from None
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in keys:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
            keys.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


def _nested(key: str, value: Any) -> dict[str, Any]:
    head, _, rest = key.partition(".")
    return {head: _nested(rest, value) if rest else value}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


OPTIONS: Mapping[str, str] = {
    "system": "--system",
    "dataset": "--dataset",
    "data": "--data",
    "limits.conversations": "--limit-conversations",
    "limits.sessions": "--limit-sessions",
    "limits.questions": "--limit-questions",
    "models.task.model": "--model",
    "models.task.base_url": "--base-url",
    "attribution": "--attribution",
    "matcher": "--matcher",
    "optimizer": "--optimizer",
    "search.selector": "--selector",
    "search.blame": "--no-blame",
    "search.local_objectives": "--no-local-objectives",
    "goal": "--goal",
    "margin": "--margin",
    "rounds": "--rounds",
    "budget.calls": "--budget-calls",
    "budget.minutes": "--budget-minutes",
    "seed": "--seed",
    "prompts.start": "--start",
    "prompts.tune": "--tune",
    "concurrency": "--concurrency",
}
"""Configuration keys that are command line options too."""


_LONGEST_SHOWN = 200
_CHOICE = re.compile(r"'([^']+)'")


def _explain(error: ValidationError, label: str, options: Mapping[str, Any]) -> str:
    """Every unknown key, or else all other problems: a misspelt key is the cause of a missing one."""
    problems = error.errors()
    unknown = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    first, *others = [_explained(problem, label, options) for problem in unknown or problems]
    # The file is named once.
    return "; ".join([first, *(message.removeprefix(f"{label}: ") for message in others)])


def _explained(problem: ErrorDetails, label: str, options: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ").replace("\n", " ")
    if problem["type"] == "extra_forbidden":
        message = unknown_key(problem["loc"], RunConfig)
    elif problem["type"] == "missing":
        option = f", or give {OPTIONS[key]}" if key in OPTIONS else ""
        message = f"missing; add the key{option}"
    elif ";" not in message:
        near = did_you_mean(str(problem["input"]), _CHOICE.findall(problem.get("ctx", {}).get("expected", "")))
        message = f"{message[0].lower()}{message[1:]}{_instead(problem)}{near}; give it a value that fits"
    # The label of an option reads better than that of a file it did not come from.
    if key in options and key in OPTIONS:
        return f"{OPTIONS[key]}: {redact(message)}"
    return f"{label}: {redact(f'{key}: {message}')}"


def _instead(problem: ErrorDetails) -> str:
    """The invalid value that was given; nothing if it is a secret."""
    rules = Redaction(keys=("headers",))
    if any(rules.hides(str(part)) for part in problem["loc"]):
        return ""
    given = problem["input"]
    return f", not {excerpt(repr(given if isinstance(given, float) else rules.value(snapshot(given))), _LONGEST_SHOWN)}"
