"""The turns of dialogues in the operations of a graph: what a user said, the calls that followed, and the reply."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracing.files.depth import structured
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import chat_in, user_in
from tracing.graph.neighbours import operations_around, outer_operations
from tracing.interchange.agent_memory.notes import arguments_of
from tracing.interchange.agent_memory.requests import FRAMES, Requests, ToolCall
from tracing.interchange.agent_memory.roles import is_of_memory, role_of
from tracing.interchange.documents import first_of
from tracing.interchange.speech import USER

_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "mcp.tool.name")
_CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "input.value",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "langfuse.observation.input",
    "tool_arguments",
    "gen_ai.prompt",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "output.value",
    "traceloop.entity.output",
    "mlflow.spanOutputs",
    "langfuse.observation.output",
    "tool_response",
    "gen_ai.completion",
)
_NEVER_TOOLS = ("llm", "embedding", "agent", "invoke_agent", "graph", "session")
_OUTPUTS = ("results", "result", "memories", "response", "output")
"""Names of what came back among attributes that begin as the name of their span does."""
_RECORDS, _SOUGHT = "gen_ai.memory.records", ("gen_ai.memory.query.text", "memory.query.text")
_FRAMED = re.compile(
    r"Current Task: (.*?)(?:\n+(?:This is the (?:expected criteria|context you're)|Begin! |Provide your complete ).*)?",
    re.DOTALL,
)
"""What CrewAI puts around a message of a user."""
_USER_ARGUMENTS = ("user_id", "user", "userId", "user_name", "username")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool or a retrieval.

    Attributes:
        operation: as recorded.
        tool: its name; arguments, result: as given and returned, without what is around them.
        chat: the call to a model that asked for it, if any did.
    """

    operation: Operation
    tool: str
    arguments: Any
    result: Any
    chat: Operation | None = None


@dataclass(slots=True)
class Turn:
    """What followed on a message of a user.

    Attributes:
        text: of the message; empty where only calls of tools were recorded.
        earlier: what was said before it in the same request.
        chats: the calls to models that it led to, in order; calls: those of tools and retrievals.
        reply: the last text that a model replied; prompt: the instructions of that call.
        user: the id of who said it; conversation: where; both empty if nothing tells.
    """

    text: str
    earlier: tuple[str, ...] = ()
    chats: list[Operation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    reply: str = ""
    prompt: Variable | None = None
    user: str = ""
    conversation: str = ""

    @property
    def started(self) -> float:
        """When its first operation began, in epoch seconds."""
        operations = [*self.chats, *(call.operation for call in self.calls)]
        return min(operation.started for operation in operations)


def turns_of(graph: ExecutionGraph, mapped: Collection[str] = ()) -> list[Turn]:
    """The turns in a graph, by the times of their beginnings; `mapped` names operations that are tools too."""
    reading = _Reading(graph, mapped)
    turns = [turn for operations in reading.traces() for turn in reading.turns(operations)]
    turns.sort(key=lambda turn: turn.started)
    _name_conversations(turns)
    return turns


def calls_of(graph: ExecutionGraph) -> list[Call]:
    """The calls of whatever may be a tool in a graph, in their order."""
    reading = _Reading(graph, [op.name for op in graph.operations.values() if op.kind == "function"])
    return [call for operations in reading.traces() for turn in reading.turns(operations) for call in turn.calls]


class _Reading:
    """Operations as calls to models and tools, with what surrounds each."""

    def __init__(self, graph: ExecutionGraph, mapped: Collection[str]) -> None:
        self._graph = graph
        self._outer = outer_operations(graph.operations)
        self._requests = Requests(graph)
        self._known: dict[tuple[object, ...], ToolCall] = {}
        self._own: dict[str, ToolCall] = {}
        tools = {op.id: op for op in graph.operations.values() if _is_tool(op) or op.name in mapped}
        # Of two that run in each other, the inner one does the work, if it is of the memory.
        outer_tools = {outer.id for op in tools.values() if role_of(_tool_of(op)) for outer in self._around(op)}
        self._tools = tools.keys() - outer_tools
        self._inside = tools.keys()
        chats = [op for op in graph.operations.values() if op.kind == "llm" and op.id not in self._tools]
        outer = {ancestor.id for op in chats for ancestor in self._around(op)}
        self._chats = {op.id for op in chats if op.id not in outer and not self._in_a_tool(op)}
        framed = {ancestor.id for oid in self._chats for ancestor in self._around(graph.operations[oid])}
        agents = [op for op in graph.operations.values() if op.kind in FRAMES and op.id not in self._tools]
        bare = [op for op in agents if op.id not in framed and self._requests.messages(op) and self._requests.reply(op)]
        inside_others = {ancestor.id for op in bare for ancestor in self._around(op)}
        self._chats |= {op.id for op in bare if op.id not in inside_others}

    def traces(self) -> list[list[Operation]]:
        """The operations of each trace, or of each session of what memtune recorded, by their times."""
        groups: dict[str, list[Operation]] = defaultdict(list)
        for operation in sorted(self._graph.operations.values(), key=lambda operation: operation.started):
            origin = operation.attributes.get("span")
            trace = origin.get("trace_id") if isinstance(origin, Mapping) else None
            groups[str(trace or operation.session or "")].append(operation)
        return list(groups.values())

    def turns(self, operations: list[Operation]) -> Iterator[Turn]:
        """The turns of one trace."""
        turns: list[Turn] = []
        pending: list[Operation] = []
        self._own, alone = self._tool_calls(operations)
        for operation in operations:
            if operation.id in self._chats:
                messages = self._requests.messages(operation)
                users = [text for who, text in messages if who == USER]
                if not users:
                    continue
                texts = [text for _, text in messages]
                before = texts[: len(texts) - 1 - texts[::-1].index(users[-1])]
                last, message = turns[-1] if turns else None, self._text(operation, users[-1])
                if last is None or last.text != message or len(before) > len(last.earlier):
                    turns.append(Turn(message, tuple(before)))
                turn = turns[-1]
                turn.chats.append(operation)
                turn.reply = self._requests.reply(operation) or turn.reply
                turn.prompt = self._requests.prompt(operation) or turn.prompt
                turn.calls += [*(self._call(early, None) for early in pending), *alone[operation.id]]
                pending = []
            elif operation.id in self._tools:
                if turns:
                    turns[-1].calls.append(self._call(operation, turns[-1].chats[-1]))
                else:
                    pending.append(operation)
        if pending:
            turns.append(Turn("", calls=[self._call(operation, None) for operation in pending]))
        for turn in turns:
            own = [*turn.chats, *(call.operation for call in turn.calls)]
            turn.user = self._identity(own, operations, user_in) or next(
                filter(None, map(user_argument, turn.calls)), ""
            )
            turn.conversation = self._identity(own, operations, chat_in)
        yield from turns

    def _identity(self, own: list[Operation], trace: list[Operation], named: Any) -> str:
        """The id that a turn's operations, those around them, or the others of its trace name."""
        around = [outer for operation in own for outer in (operation, *self._around(operation))]
        for operation in (*around, *trace):
            session = self._graph.sessions.get(operation.session or "")
            origin = operation.attributes.get("span")
            resource = origin.get("resource") if isinstance(origin, Mapping) else None
            trace_facts = origin.get("metadata") if isinstance(origin, Mapping) else None
            parsed = structured(operation.attributes.get("metadata"))
            for facts in (operation.attributes, parsed, trace_facts, session.attributes if session else None, resource):
                if isinstance(facts, Mapping) and (name := named(facts)):
                    return str(name)
        return ""

    def _around(self, operation: Operation) -> list[Operation]:
        """The operations that one runs in, from the inside out."""
        return [self._graph.operations[oid] for oid in operations_around(self._outer, operation.id)]

    def _in_a_tool(self, operation: Operation) -> bool:
        return any(outer.id in self._inside for outer in self._around(operation))

    def _tool_calls(self, operations: Sequence[Operation]) -> tuple[dict[str, ToolCall], dict[str, list[Call]]]:
        """What messages tell of calls: by the operation that is the call or, where none is, by that of the model."""
        mentions: list[tuple[Operation, ToolCall]] = []
        for chat in (operation for operation in operations if operation.id in self._chats):
            for call in self._requests.tool_calls(chat):
                earlier_call = self._known.setdefault(call.key, call)
                if earlier_call is call and not call.is_past:
                    mentions.append((chat, call))
                elif earlier_call.result is None:
                    earlier_call.result = call.result
        tools = [operation for operation in operations if operation.id in self._tools]
        own: dict[str, ToolCall] = {}
        for operation in tools:
            name, number = _tool_of(operation), str(first_of(operation.attributes, _CALL_IDS) or "")
            fitting = [row for row in mentions if row[1].tool == name and (not number or row[1].id in ("", number))]
            if fitting:
                mentions.remove(fitting[0])
                own[operation.id] = fitting[0][1]
        recorded = {_tool_of(operation) for operation in tools}
        alone: dict[str, list[Call]] = defaultdict(list)
        for place, (chat, call) in enumerate(row for row in mentions if row[1].tool not in recorded):
            when = (chat.ended or chat.started) if call.is_reply else chat.started
            oid = f"{chat.id}/call {place}"
            operation = Operation(oid, call.tool, "tool", session=chat.session, started=when, ended=when)
            alone[chat.id].append(Call(operation, call.tool, arguments_of(call.arguments), call.result, chat))
        return own, alone

    def _text(self, operation: Operation, text: str) -> str:
        """What a user said, where a program put more around it: as an operation around the model's was given it."""
        inputs = [self._graph.variables[vid].value for outer in self._around(operation) for vid in outer.input_ids()]
        within = [value.strip() for value in inputs if isinstance(value, str) and value.strip() in text]
        longest = max(within, key=len, default="")
        if " " in longest or not longest.isascii():  # one word may be a name that is in it
            return longest
        framed = _FRAMED.fullmatch(text)
        return framed[1].strip() if framed else text

    def _call(self, operation: Operation, chat: Operation | None) -> Call:
        telling = self._telling(operation)
        facts = telling.attributes
        tool = _tool_of(operation)
        arguments, result = first_of(facts, _ARGUMENTS), first_of(facts, _RESULTS)
        variables = self._graph.variables
        tool_call = self._own.get(operation.id)
        if tool_call is not None:
            arguments = tool_call.arguments if arguments is None else arguments
            result = tool_call.result if result is None else result
        if arguments is None and result is None and not telling.inputs and not telling.outputs:
            own = f"{operation.name.partition('.')[0]}."
            facts_of_own = {name.removeprefix(own): fact for name, fact in facts.items() if name.startswith(own)}
            result = first_of(facts_of_own, _OUTPUTS)
            arguments = {name: fact for name, fact in facts_of_own.items() if name not in _OUTPUTS} or None
        if arguments is None:
            arguments = self._recorded_arguments(telling, tool)
        if result is None or operation.kind == "retrieval":
            results = [variables[vid].value for vid in telling.output_ids()]
            result = results[0] if len(results) == 1 else results or result
        sought = next((facts[name] for name in _SOUGHT if facts.get(name)), None)
        if sought is not None:
            arguments, result = {"query": sought}, facts.get(_RECORDS, result)
        elif facts.get(_RECORDS) is not None:
            arguments = arguments or structured(facts[_RECORDS])
        if operation.error:
            result = None
        return Call(operation, tool, arguments_of(arguments), result, chat)

    def _telling(self, operation: Operation) -> Operation:
        """The operation itself or, where that tells nothing of its call, the one of a tool around it that does."""
        tools = [operation, *(outer for outer in self._around(operation) if outer.id in self._inside)]
        return next((tool for tool in tools if tool.inputs or tool.outputs), operation)

    def _recorded_arguments(self, operation: Operation, tool: str) -> Any:
        """The arguments in what an operation read: of memtune's recordings, in the reply that called it."""
        inputs = {role: self._graph.variables[vid].value for role, vid in operation.inputs}
        call = inputs.get("call")
        requests = call.get("tool_calls") if isinstance(call, Mapping) else None
        if isinstance(requests, list):
            return next((request.get("arguments") for request in requests if request.get("name") == tool), None)
        return call if call is not None else inputs


def _tool_of(operation: Operation) -> str:
    """The name of the tool that an operation calls."""
    name = str(first_of(operation.attributes, _TOOL_NAMES) or "")
    if not name and is_of_memory(operation.kind):
        return operation.kind
    if not name and operation.kind == "tool":
        name = str(operation.attributes.get("traceloop.entity.name") or "")
    return name or operation.name.removeprefix("execute_tool ").removeprefix("tools/call ")


def _is_tool(operation: Operation) -> bool:
    if operation.kind in ("tool", "retrieval", "memory"):
        return True
    if operation.kind in _NEVER_TOOLS:
        return False
    named = any(operation.attributes.get(name) for name in _TOOL_NAMES)
    return named or is_of_memory(operation.kind) or is_of_memory(operation.name)


def user_argument(call: Call) -> str:
    """Whose memory a call is about, where an argument says it."""
    facts = call.arguments if isinstance(call.arguments, Mapping) else {}
    return next((str(facts[name]) for name in _USER_ARGUMENTS if isinstance(facts.get(name), str) and facts[name]), "")


def _name_conversations(turns: list[Turn]) -> None:
    """Give the turns of one conversation one name: the id that spans name or, where they name none, by its texts."""
    names: dict[str, str] = {}
    for number, turn in enumerate(turns, start=1):
        if not turn.conversation and turn.text:
            turn.conversation = names.get("\n".join(turn.earlier[-2:]), "") if turn.earlier else ""
            turn.conversation = turn.conversation or f"dialogue {number}"
        if turn.text:
            names["\n".join((turn.text, turn.reply))] = turn.conversation
    users = {turn.conversation: turn.user for turn in turns if turn.user}
    for turn in turns:
        turn.user = turn.user or users.get(turn.conversation, "")
