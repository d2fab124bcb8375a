"""smartcomment documents to test with: small ones to read, and one of any size with realistic rows."""

from __future__ import annotations

from typing import Any

HERE = {"graph_id": "g", "session_id": "s1", "filename": "x.py", "lineno": 3}


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": "'text'", **HERE, **more}


def edge(op_id: str, source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"op_id": op_id, "source_full_node_id": source, "target_full_node_id": target, **HERE, **more}


def document(nodes: list[Any], edges: list[Any] = [], operations: list[Any] | None = None) -> dict[str, Any]:  # noqa: B006
    if operations is None:
        operations = [{"op_id": oid, "op_name": "step", **HERE} for oid in dict.fromkeys(one["op_id"] for one in edges)]
    session = {"graph_id": "g", "session_id": "s1", "filename": "x.py", "lineno": 1}
    return {"graph_id": "g", "data": {"nodes": nodes, "edges": edges, "operations": operations, "sessions": [session]}}


def chain(count: int) -> dict[str, Any]:
    """`count` messages and facts, two edges an operation, with all keys that smartcomment writes: 1.5 kB a node."""
    nobody = {"user_id": None, "project_id": None}
    place = {"created_at": "2026-11-21 21:17:45.407", "filename": "toy.py", "lineno": 13}
    sid = "session-2e804b0ac4684667a72f8f666323ce21"
    nodes, operations, edges = [], [], []
    for number in range(count):
        name = f"str:{number:040x}"
        said = f"Speaker Ann says: fact number {number} is 4\nTimestamp: 2024-01-01"
        nodes.append(
            {**place, "name": name, "version": 1, "value": repr(said), "comment": "A user message."}
            | {"category": "message", "graph_id": "toy", **nobody, "class_name": None, "session_id": sid}
            | {"metadata": {"turn": number}, "trigger_point": "toy.py:13"}
            | {"full_name": name, "node_id": f"{name}@1", "full_node_id": f"{name}@1"}
        )
    step = {**place, "comment": None, "category": "extraction", "graph_id": "toy", **nobody, "session_id": sid}
    step |= {"metadata": {}, "trigger_point": "toy.py:16"}
    for number in range(count // 2):
        operations.append({**step, "op_id": f"op-{number:032x}", "op_name": "memory_system.extract_facts"})
    for number in range(count - 1):
        ends = {"source_full_node_id": f"str:{number:040x}@1", "target_full_node_id": f"str:{number + 1:040x}@1"}
        edges.append({**step, "edge_id": f"edge-{number:032x}", "op_id": f"op-{number // 2:032x}", **ends})
    session = {**step, "session_id": sid, "session_name": "session_1", "category": "session"}
    return {
        "graph_id": "toy",
        "metadata": {},
        "data": {"nodes": nodes, "edges": edges, "operations": operations, "sessions": [session]},
    }
