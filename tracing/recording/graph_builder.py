"""How what was noted while the program ran becomes elements of the graph, in the order in which it happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec.structs import replace

from tracing.graph.elements import (
    Element,
    Link,
    Operation,
    Session,
    Variable,
    fill_in,
    noted_variable,
    reference_to,
)
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.values import ATOMS, UNCHANGING, has_identity, snapshot
from tracing.recording.known_secrets import without_remembered
from tracing.recording.redaction import REDACTED, Redaction
from tracing.recording.scope import RunningOperation, Scope

_MOST_NAMES = 1000
_PASSED = 4
_FEW = 8
_NO_FACTS: Mapping[str, Any] = {}
"""The attributes of every variable that has none."""


class _Growing:
    """An operation to which links are given many at once: after the first few, since its tuples are copied each time.

    Attributes:
        inputs, outputs: links that it has not been given yet.
        linked_ids: ids of the variables it has links to, these included.
        output_links: its outputs, likewise.
        steps: names of the steps that it covers.
    """

    __slots__ = ("inputs", "linked_ids", "output_links", "outputs", "record", "steps")

    def __init__(self, record: Operation) -> None:
        self.record = record
        self.inputs: list[Link] = []
        self.outputs: list[Link] = []
        self.output_links = set(record.outputs)
        self.steps: list[str] = []
        self.linked_ids = {vid for _, vid in (*record.inputs, *record.outputs)}


class GraphBuilder:
    """The graph, and what is needed to let it grow from notes. Not thread-safe: the recorder holds its lock.

    Attributes:
        graph: what has been settled so far.
        notes: what has not: an operation when it begins and again when it ends, the arguments of `_make` for a variable
            that was handed out, those of `_pass` for a value that was passed out. Appending is safe in any thread.
        redaction: what is taken out of all that comes into the graph.
        unwritten: settled elements in the order in which a file takes them; None where no file wants them.
    """

    def __init__(self, prefix: str, redaction: Redaction, *, written: bool) -> None:
        self.graph = ExecutionGraph()
        self.notes: deque[Any] = deque()
        self.redaction = redaction
        self.unwritten: list[Element | dict[str, Any]] | None = [] if written else None
        self.prefix = prefix
        self._counts = {"v": 0, "o": 0, "s": 0, "p": 0}
        self._names: dict[str, str] = {}
        self._secret_names: set[str] = set()
        self._growing: dict[str, _Growing] = {}
        self._makers: dict[str, str] = {}  # of what is settled just now: asking the graph would index it each time
        self._objects: dict[int, tuple[object, Variable]] = {}

    def settle(self) -> None:
        """Work off the notes."""
        notes = self.notes
        while notes:
            note = notes.popleft()
            try:
                if type(note) is tuple:
                    if len(note) == _PASSED:
                        self._pass(*note)
                    else:
                        self._make(*note)
                elif note.record is None:
                    self._begin(note)
                else:
                    self._end(note, note.record)
            except (KeyboardInterrupt, SystemExit):
                notes.appendleft(note)  # what comes after it refers to it
                raise
        for growing in self._growing.values():
            self._link(growing)
        self._makers.clear()

    def forget(self) -> None:
        """Drop what only further recording would need."""
        self._objects.clear()

    # --- notes -----------------------------------------------------------------------------------------------------

    def _begin(self, noted: RunningOperation) -> None:
        outer = noted.outer
        parent = outer.operation if outer is not None else None
        noted.folded = False
        links = [(role, self.read(role, value, content, noted)) for role, value, content in noted.input_notes]
        if parent is not None and parent.folds:
            noted.record = self._fold(noted, parent, links)
        else:
            noted.record = self._add_operation(noted, parent, links)
        noted.outer, noted.input_notes = None, ()

    def _add_operation(
        self, noted: RunningOperation, parent: RunningOperation | None, links: list[tuple[str, Variable]]
    ) -> Operation:
        recorder = noted.recorder
        parent_elsewhere = recorder.parent if recorder is not None else None
        record = Operation(
            self.next_id("o"),
            self._name(noted.name),
            noted.kind,
            tuple([(role, variable.id) for role, variable in links]),
            (),
            parent.record.id if parent is not None and parent.record is not None else parent_elsewhere,
            noted.session,
            noted.started,
            attributes={**noted.inherited, **self._facts(noted.attributes)},
        )
        self.graph.admit_operation(record)
        return record

    def _fold(self, noted: RunningOperation, whole: RunningOperation, links: list[tuple[str, Variable]]) -> Operation:
        """Let what a step reads and makes belong to the operation that covers it, but for what passes between steps."""
        record = cast(Operation, whole.record)
        noted.folds, noted.folded = True, True
        growing = self._grow(record)
        fresh = [(role, variable.id) for role, variable in links if variable.id not in growing.linked_ids]
        growing.linked_ids.update(vid for _, vid in fresh)
        growing.inputs += fresh
        growing.steps.append(self.redaction.text(noted.name))
        record.attributes["steps"] = growing.steps
        return record

    def _end(self, noted: RunningOperation, record: Operation) -> None:
        if noted.folded:
            return
        growing = self._growing.pop(record.id, None)
        if growing is not None:
            self._link(growing)
        record.ended = noted.ended
        record.status = "ok" if noted.error is None else "error"
        record.error = None if noted.error is None else self.redaction.text(without_remembered(noted.error))
        self.written(record)

    def _make(
        self,
        variable: Variable,
        scope: Scope,
        role: str | None,
        value: Any,
        content: Any,
        name: str,
        kind: str,
        before: Variable | None,
        attributes: Mapping[str, Any],
    ) -> None:
        can_change = role is not None and not isinstance(value, UNCHANGING)
        if before is None and can_change:
            # An object that can change in place is a new version of itself; equal texts are no versions.
            before = self.recall(value)
        self.add_variable(value, content, name, kind, before, attributes, scope, variable)
        if role is not None:
            record = cast(Operation, cast(RunningOperation, scope).record)
            self._add_output(record, role, variable)
            if can_change:
                self._makers[variable.id] = record.id

    def _pass(self, noted: RunningOperation, role: str, value: Any, content: Any) -> None:
        """Record an output: a variable that an operation inside this one made, or else a new one."""
        record = cast(Operation, noted.record)
        variable = value if isinstance(value, Variable) else self.recall(value)
        if variable is not None:
            is_it = variable is value or (
                self.unchanged(value, content, variable) and self._is_output_of_inner(record, variable)
            )
            if is_it:
                if not self._has_output(record, (role, variable.id)):
                    self._add_output(record, role, variable)
                    self._makers[variable.id] = record.id
                return
        can_change = not isinstance(value, UNCHANGING)
        variable = self.add_variable(value, content, role, "value", variable if can_change else None, {}, noted)
        self._add_output(record, role, variable)
        if can_change:
            self._makers[variable.id] = record.id

    def _add_output(self, record: Operation, role: str, variable: Variable) -> None:
        if len(record.outputs) < _FEW and record.id not in self._growing:
            self.graph.admit_links(record, (), ((role, variable.id),))
            return
        growing = self._grow(record)
        growing.outputs.append((role, variable.id))
        growing.output_links.add((role, variable.id))
        growing.linked_ids.add(variable.id)
        self._makers[variable.id] = record.id

    def _has_output(self, record: Operation, link: Link) -> bool:
        growing = self._growing.get(record.id)
        return link in (record.outputs if growing is None else growing.output_links)

    def add_links(self, record: Operation, inputs: tuple[Link, ...], outputs: tuple[Link, ...]) -> None:
        """Give an operation links that became known while it runs."""
        self.graph.add_links(record, inputs, outputs)
        growing = self._growing.get(record.id)
        if growing is not None:
            growing.linked_ids.update(vid for _, vid in (*inputs, *outputs))
            growing.output_links.update(outputs)

    def _grow(self, record: Operation) -> _Growing:
        growing = self._growing.get(record.id)
        if growing is None:
            growing = self._growing[record.id] = _Growing(record)
        return growing

    def _link(self, growing: _Growing) -> None:
        if growing.inputs or growing.outputs:
            self.graph.admit_links(growing.record, tuple(growing.inputs), tuple(growing.outputs))
            growing.inputs, growing.outputs = [], []

    def _is_output_of_inner(self, record: Operation, variable: Variable) -> bool:
        operations = self.graph.operations
        for maker in self._latest_makers(variable):
            at = maker.parent
            while at is not None and at != record.id:
                at = operations[at].parent if at in operations else None
            if at is not None:
                return True
        return False

    def _latest_makers(self, variable: Variable) -> Iterator[Operation]:
        """The latest first: what is passed from one to the next was made by the one inside."""
        if variable.id in self._makers:
            yield self.graph.operations[self._makers[variable.id]]
        yield from reversed(self.graph.neighbours.producers(variable.id))

    # --- variables -------------------------------------------------------------------------------------------------

    def read(self, role: str, value: Any, content: Any, scope: Scope) -> Variable:
        """The variable an input is: itself, that of the same object (a new version if it changed), or a new one."""
        if isinstance(value, Variable):
            return value
        variable = self.recall(value)
        if variable is None:
            return self.add_variable(value, content, role, "value", None, {}, scope)
        if self.unchanged(value, content, variable):
            return variable
        return self.add_variable(value, content, variable.name, variable.kind, variable, {}, scope)

    def add_variable(
        self,
        value: Any,
        content: Any,
        name: str,
        kind: str,
        before: Variable | None,
        attributes: Mapping[str, Any],
        scope: Scope,
        variable: Variable | None = None,
    ) -> Variable:
        """Add a variable, and remember whose value it is. `variable` is filled in where one was handed out already."""
        variable = variable if variable is not None else noted_variable(scope.recorder)
        clean_name = self._name(name)
        if content and name in self._secret_names:
            content = self.redaction.named(name, content)
        elif type(content) is str:
            content = self.redaction.text(content)
        else:
            content = self._clean(content)
        fill_in(
            variable,
            self.next_id("v"),
            clean_name,
            kind,
            content,
            before.version + 1 if before is not None else 1,
            before.id if before is not None else None,
            scope.session,
            {**scope.inherited, **self._facts(attributes)} if attributes or scope.inherited else _NO_FACTS,
        )
        self.graph.admit_variable(variable)
        self.written(variable)
        if has_identity(value):
            self._objects[id(value)] = (value, variable)
        return variable

    def recall(self, value: Any) -> Variable | None:
        """The latest variable of this very object, never of an equal one."""
        entry = self._objects.get(id(value)) if has_identity(value) else None
        return entry[1] if entry is not None else None

    def unchanged(self, value: Any, content: Any, recorded: Variable) -> bool:
        """True where the object, whose snapshot is `content`, still is what was recorded of it; a secret always is."""
        if isinstance(value, UNCHANGING) or recorded.value == REDACTED:
            return True
        return bool(self._clean(content) == recorded.value)

    def own_variable(self, original: Variable) -> Variable | None:
        """The variable as this trace has it, taken over from another trace if need be; None if it was never recorded.

        Raises:
            TraceError: this trace uses the id for another variable.
        """
        if not original.id:
            return None
        present = self.graph.variables.get(original.id)
        if present is None or (present.is_reference and not original.is_reference):
            # Its earlier versions and its session stayed in the trace it comes from.
            present = replace(self.cleaned(original), previous=None, session=None)
            self.skip_id(original.id)
            self.graph.add_variable(present)
            self.written(present)
        elif present is not original and present != replace(
            self.cleaned(original), previous=present.previous, session=present.session
        ):
            self.graph.add_variable(original)
        return present

    def referred(self, vid: str) -> Variable:
        """This trace's variable with the id, or a reference to another trace's."""
        present = self.graph.variables.get(vid)
        if present is None:
            present = reference_to(vid)
            self.skip_id(vid)
            self.graph.admit_variable(present)
            self.written(present)
        return present

    def cleaned(self, original: Variable) -> Variable:
        """A variable that was recorded elsewhere, as it may be recorded here."""
        name, facts = self.redaction.text(original.name), self._facts(original.attributes)
        value = self.redaction.named(original.name, self._snapshot(original.value))
        same = value == original.value and name == original.name and facts == original.attributes
        return original if same else replace(original, value=value, name=name, attributes=facts)

    # --- the rest of the graph -------------------------------------------------------------------------------------

    def add_session(self, name: str, attributes: Mapping[str, Any]) -> Session:
        """Add a session."""
        session = Session(self.next_id("s"), self.redaction.text(name), self._facts(attributes))
        self.graph.add_session(session)
        self.written(session)
        return session

    def next_id(self, letter: str) -> str:
        """A fresh id."""
        self._counts[letter] += 1
        return f"{self.prefix}{letter}{self._counts[letter]}"

    def skip_id(self, used: str) -> None:
        """Never give this id."""
        # What another process recorded has the id that was handed over to it, and a dash, before its own.
        own = used.removeprefix(self.prefix).partition("-")[0]
        letter, number = own[:1], own[1:]
        if used.startswith(self.prefix) and letter in self._counts and number.isdecimal():
            self._counts[letter] = max(self._counts[letter], int(number))

    def _facts(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return self.redaction.value(dict(attributes)) if attributes else {}

    def _clean(self, content: Any) -> Any:
        return self.redaction.value(self._snapshot(content))

    @staticmethod
    def _snapshot(content: Any) -> Any:
        # What is noted as its own snapshot has not been looked at: it may be no number of JSON.
        return snapshot(content) if type(content) in ATOMS else content

    def _name(self, name: str) -> str:
        """A name as it may be recorded; names repeat."""
        clean_name = self._names.get(name)
        if clean_name is None:
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
            clean_name = self._names[name] = self.redaction.text(str(name))
            if self.redaction.hides(str(name)):
                self._secret_names.add(name)
        return clean_name

    def written(self, element: Element | dict[str, Any]) -> None:
        """Let the file have an element, or a record about the graph."""
        if self.unwritten is not None:
            self.unwritten.append(element)
