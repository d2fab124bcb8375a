"""The Protocol of exporters, and the registry of the built-in ones, those of installed distributions and a user's own.

`conformance.py` checks an implementation.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from experiments.systems.exporting.places import Place
from tracing.errors import ConfigError, MemtuneError
from tracing.package_data import packaged_tables
from tracing.plugins import PluginRegistry
from tracing.systems.prompts import Candidate


@runtime_checkable
class Exporter(Protocol):
    """Writes prompts in a form that a user's program reads.

    Example:
        >>> from experiments.systems.exporting.forms import TextFiles
        >>> TextFiles().write({"reply": "Notes: {notes}"}, Path())
        {'reply': 'reply.txt'}
        >>> TextFiles().render("reply", {"notes": "Mara lives in Oslo."}, Path())
        'Notes: Mara lives in Oslo.'
    """

    def write(self, candidate: Candidate, folder: Path) -> Mapping[str, str]:
        """Write every prompt into the empty `folder`.

        Returns:
            The file of each prompt, relative to `folder`.
        """

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """Read a prompt back from `folder` and put `values` into its placeholders, as the program will.

        It must give what memtune sends; otherwise the export is discarded.
        """


@runtime_checkable
class HoldsOnly(Protocol):
    """An exporter whose form can hold certain prompts only.

    Example:
        >>> class MyExporter:
        ...     prompts = ("extract", "answer")
        >>> isinstance(MyExporter(), HoldsOnly)
        True
    """

    @property
    def prompts(self) -> Collection[str]:
        """Names of the prompts that it holds, all of them needed."""


@runtime_checkable
class Proves(Protocol):
    """An exporter for a library that can load the files and show what it sends.

    Example:
        >>> class MyExporter:
        ...     def prove(self, folder):
        ...         return ["answer: sent as the system message of Client.ask"]
        >>> isinstance(MyExporter(), Proves)
        True
    """

    def prove(self, folder: Path) -> list[str]:
        """Load the folder in that library, and say for each prompt in a sentence where the library sends it.

        Raises:
            ContractError: a prompt is in no request.
            ConfigError: the library is not installed.
        """


@runtime_checkable
class HasPlaces(Protocol):
    """An exporter for a library that has places of its own for prompts; `write` and `render` are given their names.

    Example:
        >>> class MyExporter:
        ...     places = (Place("custom_instructions", "extract"), Place("system_prompt", "answer"))
        >>> isinstance(MyExporter(), HasPlaces)
        True
    """

    @property
    def places(self) -> Sequence[Place]:
        """The places, in the order in which prompts are given to them."""


@runtime_checkable
class Warns(Protocol):
    """An exporter whose library needs more than the files, or asks with prompts of its own as well.

    Example:
        >>> class MyExporter:
        ...     def warnings(self, texts):
        ...         return ["The library goes on merging facts with a prompt of its own."]
        >>> isinstance(MyExporter(), Warns)
        True
    """

    def warnings(self, texts: Mapping[str, str]) -> Sequence[str]:
        """What the user of these prompts must know, a sentence each; the manifest has them, and `export` prints them.

        Args:
            texts: what `write` was given.
        """


@runtime_checkable
class ShowsUse(Protocol):
    """An exporter for a library whose user must be shown how a program hands the files over.

    Example:
        >>> class MyExporter:
        ...     use = "Client(**prompts)"
        >>> isinstance(MyExporter(), ShowsUse)
        True
    """

    @property
    def use(self) -> str:
        """The program; the manifest has its lines."""


@runtime_checkable
class Reads(Protocol):
    """An exporter whose form can be imported: `memtune import-prompts --from`.

    Example:
        >>> from experiments.systems.exporting.forms import TextFiles
        >>> Path("reply.txt").write_text("Notes: {notes}")
        14
        >>> isinstance(TextFiles(), Reads), dict(TextFiles().texts("."))
        (True, {'reply': 'Notes: {notes}'})
    """

    def recognises(self, source: str) -> bool:
        """Whether the file, folder or address is in this form, judged without an error."""

    def texts(self, source: str) -> Mapping[str, str]:
        """The texts that are there, by the name that each has there.

        Raises:
            RunError: it cannot be read.
        """

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """A text as it is there, as a prompt of memtune's with these placeholders.

        Raises:
            ContractError: it is in no syntax that memtune can hold.
        """


@runtime_checkable
class HasDefaults(Protocol):
    """An exporter for a library that ships prompts.

    Example:
        >>> class MyExporter:
        ...     def defaults(self):
        ...         return {"system_prompt": "Answer from the memories."}
        >>> isinstance(MyExporter(), HasDefaults)
        True
    """

    def defaults(self) -> Mapping[str, str]:
        """The texts that the installed library uses where it is given none, by place.

        Raises:
            ConfigError: the library is not installed.
        """


EXPORTERS = PluginRegistry(
    kind="exporters",
    key="--to",
    built_in={
        "text": "experiments.systems.exporting.forms:TextFiles",
        "json": "experiments.systems.exporting.formats.constants:JsonConstants",
        "dotenv": "experiments.systems.exporting.formats.constants:DotenvConstants",
        "python": "experiments.systems.exporting.formats.constants:PythonConstants",
        "dspy": "experiments.systems.exporting.formats.dspy_state:DspyState",
        "mlflow": "experiments.systems.exporting.formats.mlflow_registry:MlflowRegistry",
        "rag": "experiments.systems.exporting.forms:RagTemplate",
        "mem0@0.1": "experiments.systems.mem0.exporter:Mem0FirstSettings",
        "mem0@1.0": "experiments.systems.mem0.exporter:Mem0OneSettings",
        "mem0@2": "experiments.systems.mem0.exporter:Mem0TwoSettings",
        **{
            f"{product}@{row['version']}": f"experiments.systems.exporting.library_targets:{product}"
            for product, row in packaged_tables("experiments.systems.exporting", "library_targets.toml").items()
        },
        "everos@1.5": "experiments.systems.everos.exporter:EverOsSlots",
        "memori@3.3": "experiments.systems.memori.exporter:MemoriAugmentation",
    },
)


def version_of(name: str) -> str | None:
    """The exporter of this name; of a name without a version (`langmem`), the only version that there is, or None."""
    names = EXPORTERS.names()
    versions = [full_name for full_name in names if full_name.partition("@")[0] == name]
    return name if name in names else versions[0] if len(versions) == 1 else None


def open_exporter(name: str) -> Exporter:
    """An exporter by its name, or as `module:Object`: a class or function that makes one, or an instance.

    Raises:
        ConfigError: the name is unknown, or it cannot be imported or made, or is not an exporter.
    """
    exporter: Any = EXPORTERS.open(name)
    if inspect.isclass(exporter) or (callable(exporter) and not isinstance(exporter, Exporter)):
        try:
            exporter = exporter()
        except MemtuneError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"--to: {name!r}: cannot be made: {type(error).__name__}: {reason}") from error
    if not isinstance(exporter, Exporter):
        lacking = [method for method in ("write", "render") if not hasattr(exporter, method)]
        raise ConfigError(
            f"--to: {name!r}: a {type(exporter).__name__} without {', '.join(lacking)} is not an exporter; "
            "see docs/extending.md"
        )
    return exporter
