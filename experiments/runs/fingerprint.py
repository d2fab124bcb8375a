"""What a run depends on, so that it is resumed only if nothing of it changed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from experiments.runs.config import RunConfig
from experiments.runs.earlier_names import by_current_keys
from experiments.runs.folder import CHAMPION, CONFIG, FINGERPRINT, PROMPTS, RunFolder
from experiments.runs.run_settings import lasting_params, without_secrets
from optimizer.evaluation.memories import digest
from optimizer.evaluation.scores import Splits
from optimizer.proposers.rewrites import Rewrite
from tracing.errors import RunError
from tracing.formats import read_stamped, stamped
from tracing.systems.conversations import Conversation
from tracing.systems.description import describe
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import MemorySystem
from tracing.version import memtune_version

CODE = "memtune.code"
_PACKAGES = ("tracing", "attribution", "optimizer", "experiments")


def fingerprint(
    config: RunConfig,
    system: MemorySystem,
    splits: Splits,
    baseline: Candidate,
    identities: Mapping[str, str],
    rewrites: Sequence[Rewrite] = (),
) -> dict[str, str]:
    """Everything a run's results depend on, as `key → value` (long values as their SHA-256)."""
    data = [[_content(conversation) for conversation in group] for group in splits.named().values()]
    return {
        **{f"config.{key}": str(value) for key, value in lasting_params(config).items()},
        **{f"system.{key}": str(value) for key, value in _own_settings(system).items()},
        "data": digest(data),
        **{f"prompts.{name}": digest(text) for name, text in baseline.items()},
        "candidates": digest([[rewrite.prompt, rewrite.text] for rewrite in rewrites]),
        **{f"models.{role}": identity for role, identity in identities.items()},
        "memtune.version": memtune_version(),
        CODE: code_digest(),
        **_own_code(config),
    }


_LATER_FIELDS = ("after_session", "objected", "source", "confirmed_by")
"""Fields of a question that came later: where they say nothing, a run from before them is the same run."""


def _content(conversation: Conversation) -> dict[str, Any]:
    content = conversation.model_dump(mode="json")
    for question in content["questions"]:
        for name in _LATER_FIELDS:
            if question[name] in (None, [], "written"):
                del question[name]
    return content


_LATER_SETTINGS = {"config.goal": "better", "config.margin": "0.02"}
"""What settings that came later were in a run from before them."""
_READER: TypeAdapter[Mapping[str, str]] = TypeAdapter(dict[str, str])


def read_fingerprint(folder: RunFolder) -> dict[str, str]:
    """The fingerprint a run began with.

    Raises:
        RunError: it cannot be read.
    """
    path = folder.path / FINGERPRINT
    try:
        depends_on = by_current_keys(read_stamped(FINGERPRINT, path.read_bytes(), path, _READER), prefix="config.")
        return _LATER_SETTINGS | depends_on
    except (OSError, ValidationError):
        raise RunError(
            f"{path}: cannot be read, so the run cannot be resumed; start a new one: {_anew(folder)}"
        ) from None


def fingerprint_json(depends_on: Mapping[str, str]) -> str:
    """The text of a fingerprint's file."""
    return json.dumps(stamped(FINGERPRINT, depends_on), indent=2) + "\n"


def check_fingerprint(folder: RunFolder, now: Mapping[str, str]) -> None:
    """Make sure that a run would continue as it began, or with a limit that lets it go on for longer.

    Raises:
        RunError: something the run depends on is different; each is named, settings with both values.
    """
    before = read_fingerprint(folder)
    changed = differing(before, now)
    if different := [key for key in changed if not _extended(key, before.get(key), now.get(key), folder)]:
        differences = ", ".join(_difference(key, before.get(key), now.get(key)) for key in different)
        ways = [f"start a new run, which finds the calls that are the same in the cache: {_anew(folder)}"]
        if any(key.startswith("config.") for key in different):
            ways.insert(0, f"`{folder.resume_command}` alone takes the run's own settings")
        raise RunError(f"{folder.path}: not resumed, since it began otherwise: {differences}; {'; or '.join(ways)}")


def _anew(folder: RunFolder) -> str:
    """The command of a new run with the settings of an earlier one, from its champion if it has one."""
    champion = folder.path / PROMPTS / CHAMPION
    start = f" --start {shlex.quote(str(champion))}" if champion.is_dir() else ""
    return f"memtune run {shlex.quote(str(folder.path / CONFIG))}{start}"


def _extended(key: str, before: str | None, now: str | None, folder: RunFolder) -> bool:
    """Whether a limit of the search lets all happen again that happened, and more; an unset one is none."""
    if key not in _LIMITS or now is None:
        return key in _LIMITS
    try:
        if before is None:
            return key == _ROUNDS and int(now) >= _rounds_made(folder)
        return int(now) > int(before)
    except ValueError:
        return False  # a damaged file of the run


def _rounds_made(folder: RunFolder) -> int:
    try:
        return max((record.n for record in folder.summary().rounds), default=0)
    except RunError:
        return 0  # it did not get that far


_ROUNDS = "config.rounds"
_LIMITS = (_ROUNDS, "config.search.calls")


def _difference(key: str, before: str | None, now: str | None) -> str:
    """A difference in words: both values of a setting, and what it is whose digests differ."""
    kind, _, name = key.partition(".")
    if kind == "prompts":
        return f"the baseline prompt {name!r} {_changed(before, now)}"
    if kind == "code" or key == CODE:
        return f"the code of {name if kind == 'code' else 'memtune'} {_changed(before, now)}"
    if key in _DIGESTS:
        return _DIGESTS[key]
    label = {
        "config": name,
        "system": f"the system's {name}",
        "models": f"the {name} model",
        "memtune": f"memtune's {name}",
    }.get(kind, key)
    return f"{label}: {before or 'not set'} then, {now or 'not set'} now"


def _changed(before: str | None, now: str | None) -> str:
    return "is new" if before is None else "is gone" if now is None else "has changed"


_DIGESTS = {
    "data": "the conversations are others",
    "candidates": "the rewrites of --rewrites are others",
}
"""What is told of values that are known by their digest only."""


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The keys, sorted, that one side lacks or that have other values there.

    A setting that did not exist then, and is not used now, is no difference.
    """
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key) and not _unused(key, before, now))


def _unused(key: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    return key.startswith("config.") and key not in before and now[key] in _UNUSED


_UNUSED = ("None", "False", "{}", "[]", "()")


def _own_settings(system: MemorySystem) -> Mapping[str, Any]:
    """The settings of a user's own system: those of an object may stand in no configuration."""
    description = describe(system)
    return {} if description.code is None else without_secrets(description.settings)


def _own_code(config: RunConfig) -> dict[str, str]:
    """What identifies the source of each of the user's own parts."""
    code_by_key = {f"code.{name}": registry.code(name) for registry, name in config.parts()}
    return {key: code for key, code in code_by_key.items() if code is not None}


def code_digest() -> str:
    """The digest of memtune's own source, and its rules and prompts, as they are on disk now."""
    root = Path(__file__).parents[2]
    files = sorted(
        path for package in _PACKAGES for kind in ("*.py", "*.toml") for path in (root / package).rglob(kind)
    )
    return digest({str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in files})
