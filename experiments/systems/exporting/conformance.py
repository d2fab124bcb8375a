"""The conformance suite of `Exporter`: subclass it in a test file, and pytest checks your exporter against it.

    from experiments.systems.exporting.conformance import ExporterConformance

    class TestMyExporter(ExporterConformance):
        def exporter(self):
            return MyExporter()

        def candidate(self):  # prompts of your system, by name
            return {"answer": "Notes: {notes}\\nAsked: {asked}"}

It needs no test framework; each failure says in one line what is wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from experiments.systems.exporting.export import written
from experiments.systems.exporting.exporter import Exporter, HasPlaces, HoldsOnly, Reads
from experiments.systems.exporting.places import place_named
from tracing.conformance import Conformance, require
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, placeholders_of

AWKWARD = '\nA dollar $5, a percent 100 %, {{braces}}, a \\ and a " quote, «é»:\r\n\ttab, kestrel. \n'
"""Ends a prompt; plain text, so it breaks no contract, but each character is special in some template syntax."""


class ExporterConformance(Conformance):
    """What memtune relies on. Override `exporter` and `candidate`.

    Example:
        >>> from experiments.systems.exporting.forms import TextFiles
        >>> class TestTextFiles(ExporterConformance):
        ...     def exporter(self):
        ...         return TextFiles()
        ...
        ...     def candidate(self):
        ...         return {"reply": "Notes: {notes}"}
        >>> TestTextFiles().problems()
        []
    """

    def exporter(self) -> Exporter:
        """The exporter under test."""
        raise NotImplementedError("override exporter() to return your exporter")

    def candidate(self) -> Candidate:
        """Prompts that it must hold, by name."""
        return {"answer": "Memories:\n{context}\n\nQuestion: {question}\nAnswer:"}

    def test_prompts_read_back_as_they_are(self) -> None:
        """A program that reads the export must send what memtune measured."""
        _written(self.exporter(), self.candidate())

    def test_awkward_prompts_read_back_as_they_are(self) -> None:
        """Characters that are special in a template syntax are plain text in a prompt, or are refused with a reason."""
        candidate = self.candidate()
        awkward = {
            name: text + "".join(f"{{{place}}}s_{{{place}}}1" for place in sorted(placeholders_of(text))) + AWKWARD
            for name, text in candidate.items()
        }
        if not _refused(self.exporter(), awkward):
            _written(self.exporter(), awkward)

    def test_what_is_read_is_what_was_written(self) -> None:
        """An import of an export gives the same prompts, byte by byte."""
        exporter = self.exporter()
        if not isinstance(exporter, Reads):
            return
        candidate = {name: f"{text} «kestrel» \\n $5 'now'" for name, text in self.candidate().items()}
        with _folder() as folder:
            files = set(written(exporter, candidate, folder).values())
            sources = [folder] if exporter.recognises(str(folder)) else [folder / file for file in files]
            texts = {name: text for source in sources for name, text in exporter.texts(str(source)).items()}
            for name, text in candidate.items():
                read = [exporter.template(source_text, placeholders_of(text)) for source_text in texts.values()]
                if name not in texts and (folder / f"{name}.txt").is_file():
                    # The form has no place for it; an import takes it from beside.
                    read.append((folder / f"{name}.txt").read_bytes().decode())
                require(text in read, f"{name}: what is read from its file is another text")

    def test_every_tuned_prompt_changes_what_is_written(self) -> None:
        """A form that leaves a prompt out would hand back the old one."""
        candidate = self.candidate()
        before = _written(self.exporter(), candidate)
        for name in candidate:
            after = _written(self.exporter(), {**candidate, name: f"{candidate[name]} kestrel"})
            require(after != before, f"the files are the same whatever the prompt {name} says")

    def test_the_same_prompts_give_the_same_files(self) -> None:
        """Exports can be compared byte by byte."""
        first, second = (_written(self.exporter(), self.candidate()) for _ in range(2))
        require(first == second, f"exported twice, these files differ: {sorted(_different(first, second))}")

    def test_it_says_rightly_which_prompts_it_holds(self) -> None:
        """`prompts` decides which systems it is offered for."""
        exporter = self.exporter()
        names = set(self.candidate())
        if isinstance(exporter, HoldsOnly):
            prompts = set(exporter.prompts)
            require(prompts == names, f"it says that it holds {sorted(prompts)}, but candidate() has {sorted(names)}")
        if isinstance(exporter, HasPlaces):
            places = {place.name for place in exporter.places}
            known = all(place_named(exporter.places, name) is not None for name in names)
            require(known, f"it has the places {sorted(places)}, but candidate() has {sorted(names)}")


def _written(exporter: Exporter, candidate: Candidate) -> Mapping[str, bytes]:
    """The files that an exporter writes, by name, after they were read back."""
    with _folder() as folder:
        try:
            written(exporter, candidate, folder)
        except (ContractError, RunError, OSError) as error:
            raise AssertionError(" ".join(str(error).split())) from error
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _refused(exporter: Exporter, candidate: Candidate) -> bool:
    """Whether the exporter itself says that its form cannot hold these prompts."""
    with _folder() as folder:
        try:
            exporter.write(candidate, folder)
        except ContractError:
            return True
        except Exception:
            return False
    return False


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memtune-export-") as name:
        yield Path(name)


def _different(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> set[str]:
    return {name for name in {*first, *second} if first.get(name) != second.get(name)}
