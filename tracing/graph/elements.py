"""What an execution graph is made of: variables, operations and sessions, each a plain record with an id.

They are structs of msgspec, which decodes a line of a trace file into one in a fraction of the time that Python code
would take. The tag `type` tells them apart in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

Status = Literal["open", "ok", "error"]
Link = tuple[str, str]
"""A role and the id of the variable that plays it."""
REFERENCE = "reference"
"""The kind of a variable that stands for one of another trace."""


class Noted:
    """Lets a recorder hand out a variable at once and fill it in later, at the latest when a field of it is read."""

    __slots__ = ("_recorder",)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            # Only a slot that holds nothing yet comes here.
            if name in Variable.__struct_fields__:
                self._recorder.settle()
                return object.__getattribute__(self, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Variable(Noted, Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="variable"):
    """An immutable, versioned value. Two variables are the same only if their ids are, whatever their values.

    Attributes:
        id: unique in its graph; empty when nothing was being recorded.
        name: what people call it (a turn id, a memory entry's name, a role); versions of one thing share it.
        kind: message, fact, memory_entry, delete_marker, query, context, prompt, prediction, value or reference.
        value: JSON-compatible snapshot, taken when the variable was recorded.
        version: 1 for the first version.
        previous: id of the version before, or None.
        session: id of the session it was recorded in, or None.
        attributes: further JSON-compatible facts about it.

    Example:
        >>> home = Variable("v2", "home", "memory_entry", "Oslo", version=2, previous="v1")
        >>> home.name, home.value
        ('home', 'Oslo')
    """

    id: str
    name: str
    kind: str
    value: Any
    version: int = 1
    previous: str | None = None
    session: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_reference(self) -> bool:
        """Whether it only stands for the variable with its id in another trace, which knows the value."""
        return self.kind == REFERENCE and self.value is None

    def noted_by(self, recorder: object) -> bool:
        """True where `recorder` made this very variable while it ran."""
        return getattr(self, "_recorder", None) is recorder

    # msgspec compares, shows and pickles fields without the attribute access that fills in a noted variable.

    def __hash__(self) -> int:
        return hash((self.id, self.name, self.kind, self.version, self.previous, self.session))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        return self.id == other.id and Struct.__eq__(self, other)

    def __repr__(self) -> str:
        self.id  # noqa: B018
        return Struct.__repr__(self)

    def __reduce__(self) -> str | tuple[Any, ...]:
        self.id  # noqa: B018
        return Struct.__reduce__(self)


def reference_to(vid: str) -> Variable:
    """What stands for a variable of another trace."""
    return Variable(vid, vid, REFERENCE, None)


# The quickest way to make a frozen object and fill one slot of it.
_new = object.__new__
_belong = Noted._recorder.__set__  # type: ignore[attr-defined]


def noted_variable(recorder: object) -> Variable:
    """A variable that `recorder` fills in when it settles."""
    variable = _new(Variable)
    _belong(variable, recorder)
    return variable


_fill = [getattr(Variable, name).__set__ for name in Variable.__struct_fields__]
_fill_id, _fill_name, _fill_kind, _fill_value, _fill_version, _fill_previous, _fill_session, _fill_attributes = _fill


def fill_in(
    noted: Variable,
    vid: str,
    name: str,
    kind: str,
    value: Any,
    version: int,
    previous: str | None,
    session: str | None,
    attributes: Mapping[str, Any],
) -> None:
    """Make a noted variable what `Variable(…)` would be."""
    _fill_id(noted, vid)
    _fill_name(noted, name)
    _fill_kind(noted, kind)
    _fill_value(noted, value)
    _fill_version(noted, version)
    _fill_previous(noted, previous)
    _fill_session(noted, session)
    _fill_attributes(noted, attributes)


class Operation(Struct, forbid_unknown_fields=True, tag_field="type", tag="operation"):
    """One executed step.

    Attributes:
        id: unique in its graph.
        name: what was executed; the same for every execution of one step.
        kind: "llm", "function" or another word for how it works.
        inputs: (role, variable id) in the order given; a role may repeat.
        outputs: likewise, in the order made.
        parent: id of the operation it ran inside, or None. In a trace cut short, the parent may not be in the graph.
        session: id of the session it ran in, or None.
        started: epoch seconds.
        ended: epoch seconds; None while it is open.
        status: open, ok, or error when an exception left it.
        error: "Type: message" of that exception.
        model: model of its latest call.
        calls: model calls made, cached ones included.
        cached_calls: how many of them a cache answered.
        prompt_tokens: tokens sent, summed over its calls.
        completion_tokens: tokens received, summed over its calls.
        cost: money spent, summed over its calls, in the currency of the configured prices.
        attributes: further JSON-compatible facts about it.

    Example:
        >>> step = Operation("o1", "answer", inputs=(("question", "v1"), ("context", "v2")), outputs=(("reply", "v3"),))
        >>> step.input_ids("context")
        ['v2']
    """

    id: str
    name: str
    kind: str = "function"
    inputs: tuple[Link, ...] = ()
    outputs: tuple[Link, ...] = ()
    parent: str | None = None
    session: str | None = None
    started: float = 0.0
    ended: float | None = None
    status: Status = "open"
    error: str | None = None
    model: str | None = None
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    attributes: MutableMapping[str, Any] = field(default_factory=dict)

    def input_ids(self, role: str | None = None) -> list[str]:
        """Ids of the variables it read, in order; only those of `role` if given."""
        return [variable for name, variable in self.inputs if role is None or name == role]

    def output_ids(self, role: str | None = None) -> list[str]:
        """Ids of the variables it made, in order; only those of `role` if given."""
        return [variable for name, variable in self.outputs if role is None or name == role]


class Session(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="session"):
    """A named stage of an execution, such as one session of a dialogue or one question.

    Example:
        >>> Session("s1", "D1", {"date": "Monday"}).name
        'D1'
    """

    id: str
    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.id, self.name))


Element = Session | Variable | Operation


def stands_for(variable: Variable, whole: Variable) -> bool:
    """Whether it is a reference to the other, or what another trace took over of it: all but its place there."""
    previous = None if variable.previous is None else whole.previous
    session = None if variable.session is None else whole.session
    return variable.is_reference or variable == replace(whole, previous=previous, session=session)


def joined(present: Operation, other: Operation) -> Operation | None:
    """One operation from two sights of it, None where they differ: an open one is completed, slices are united."""
    if present.status == "open" or other.status == "open":
        return other if present.status == "open" else present
    larger, smaller = sorted(
        (present, other), key=lambda operation: len(operation.inputs) + len(operation.outputs), reverse=True
    )
    inputs, outputs = set(larger.inputs), set(larger.outputs)
    united = replace(
        larger,
        inputs=larger.inputs + tuple(link for link in smaller.inputs if link not in inputs),
        outputs=larger.outputs + tuple(link for link in smaller.outputs if link not in outputs),
    )
    return united if replace(smaller, inputs=united.inputs, outputs=united.outputs) == united else None
