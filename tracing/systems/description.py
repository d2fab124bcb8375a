"""A memory system's description of itself, with defaults for what it leaves out, and its faults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from tracing.plugins import code_of
from tracing.systems.prompts import PromptSpec
from tracing.systems.protocol import MemorySystem, OperationSpec, Stage

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_STAGES = get_args(Stage)


@dataclass(frozen=True, slots=True)
class Description:
    """What distinguishes a system from others, so that only that system reuses a built memory.

    Attributes:
        name: its own, or `module:Class` without one.
        version: changes when it would build other memories than before; "0" if it has none.
        settings: everything besides prompts and models that shapes the result (top-k…), as JSON; empty if it has none.
        code: digest of its source; None for a system that memtune ships, which its version identifies.
    """

    name: str
    version: str
    settings: Mapping[str, Any]
    code: str | None


def describe(system: MemorySystem) -> Description:
    """A system's description."""
    kind = type(system)
    return Description(
        name=getattr(system, "name", f"{kind.__module__}:{kind.__qualname__}"),
        version=getattr(system, "version", "0"),
        settings=getattr(system, "settings", {}),
        code=code_of(system),
    )


def faults_of(system: object) -> list[str]:
    """Why memtune cannot run an object as a memory system, in plain words; empty if it can."""
    if not isinstance(system, MemorySystem):
        lacking = [name for name in ("prompts", "operations", "build", "answer") if not hasattr(system, name)]
        return [f"a {type(system).__name__} without {', '.join(lacking)} is not a memory system"]
    try:
        specs, operations = dict(system.prompts), list(system.operations)
    except (TypeError, ValueError):
        return ["prompts must be a mapping of PromptSpec by name, and operations a list of OperationSpec"]
    if not all(isinstance(spec, PromptSpec) for spec in specs.values()):
        return ["prompts must be a mapping of PromptSpec by name"]
    if not operations or not all(isinstance(operation, OperationSpec) for operation in operations):
        return ["operations must be a list of OperationSpec"]
    return [*_description_faults(system), *_operation_faults(operations), *_prompt_faults(specs, operations)]


def _description_faults(system: MemorySystem) -> list[str]:
    description = describe(system)
    faults = [] if description.name and description.version else ["name and version must not be empty"]
    if not _are_ranges(getattr(system, "ranges", {})):
        faults.append("ranges must map each setting to a list of values (numbers, texts or booleans)")
    try:
        same = json.loads(json.dumps(dict(description.settings))) == dict(description.settings)
    except (TypeError, ValueError):
        same = False
    return faults if same else [*faults, "settings must be the same after a round trip through JSON"]


def _are_ranges(ranges: object) -> bool:
    """Whether an attribute `ranges` can be used; a set would be tried in another order by each process."""
    return isinstance(ranges, Mapping) and all(
        isinstance(values, Sequence)
        and not isinstance(values, str)
        and all(isinstance(value, bool | int | float | str) for value in values)
        for values in ranges.values()
    )


def _operation_faults(operations: list[OperationSpec]) -> list[str]:
    names = [operation.name for operation in operations]
    faults = [
        f"the operation {operation.name} has the unknown stage {operation.stage!r}; choose one of {', '.join(_STAGES)}"
        for operation in operations
        if operation.stage not in _STAGES
    ]
    if len(set(names)) < len(names):
        faults.append("two operations share a name")
    if operations[-1].stage != "answer":
        faults.append("operations must be in pipeline order, the answer last")
    return faults


def _prompt_faults(specs: Mapping[str, PromptSpec], operations: list[OperationSpec]) -> list[str]:
    steers = {operation.name: operation.prompt for operation in operations}
    faults: list[str] = []
    for name, spec in specs.items():
        problems = spec.contract.violations(spec.text)
        if problems:
            faults.append(f"the baseline prompt {name} breaks its contract: {'; '.join(problems)}")
        if spec.name != name:
            faults.append(f"the prompt listed as {name} is called {spec.name}")
        if not _FILE_NAME.fullmatch(name):
            faults.append(
                f"the prompt {name!r} is a file in a run's folder: use only letters, digits, `_`, `-` and `.`"
            )
        if steers.get(spec.operation) != name:
            faults.append(f"prompt {name} names the operation {spec.operation}, which is not listed as steered by it")
    unknown = {prompt for prompt in steers.values() if prompt is not None} - set(specs)
    return [*faults, *([f"operations name prompts that the system lacks: {sorted(unknown)}"] if unknown else [])]
