"""Small files in the layouts of the data sets, made from their public descriptions: three conversations of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traced_runs import conversation, record

from tracing.systems.conversations import write_conversations

CITIES = ("Oslo", "Jena", "Ulm")
"""One for each conversation: where the user moved."""


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def longmemeval() -> list[dict[str, Any]]:
    rows = []
    for number, city in enumerate(CITIES):
        filler = [{"role": "user", "content": "Any news?"}, {"role": "assistant", "content": "None."}]
        told = [
            {"role": "user", "content": f"I moved to {city}.", "has_answer": True},
            {"role": "assistant", "content": "Noted.", "has_answer": False},
        ]
        rows.append(
            {
                "question_id": f"q{number}_abs" if number == 2 else f"q{number}",
                "question_type": ("single-session-user", "knowledge-update", "multi-session")[number],
                "question": "Where did I move?" if number < 2 else "Where did my sister move?",
                "answer": city if number < 2 else "You did not mention your sister.",
                "question_date": "2023/05/30 (Tue) 23:40",
                # The same session twice, as the original release has it in places.
                "haystack_session_ids": ["s_filler", f"answer_{number}", "s_filler"],
                "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00", "2023/05/22 (Mon) 11:00"],
                "haystack_sessions": [filler, told, filler],
                "answer_session_ids": [f"answer_{number}"],
            }
        )
    return rows


def benchd() -> dict[str, Any]:
    traces = [
        {
            "question_id": f"q{number}",
            "dimension": "recall",
            "scoring_method": "exact",
            "response": "",
            "score": 0,
            "query": "Where did I move?",
            "expected_answer": city,
            "ingest_history": [
                {"role": "user", "content": f"I moved to {city}."},
                {"role": "assistant", "content": "Noted."},
            ],
        }
        for number, city in enumerate(CITIES)
    ]
    return {"manifest": {"benchmark": {"slug": "cities"}, "traces": traces}, "signature": "00"}


def beam_chat() -> list[dict[str, Any]]:
    def said(number: int, role: str, content: str, **more: Any) -> dict[str, Any]:
        return {"role": role, "id": number, "content": content, **more}

    return [
        {
            "batch_number": 1,
            "turns": [
                [
                    said(0, "user", "My deadline is May 2. ->-> 1,1", time_anchor="March-15-2024"),
                    said(1, "assistant", "Fine."),
                ],
                [said(2, "user", "I have 150 commits. ->-> 1,2"), said(3, "assistant", "Many.")],
            ],
        },
        {
            "batch_number": 2,
            "turns": [[said(4, "user", "I have 165 commits now. ->-> 2,1"), said(5, "assistant", "More.")]],
        },
    ]


def beam_questions() -> dict[str, Any]:
    return {
        "abstention": [{"question": "What is my age?", "ideal_response": "The chat does not say.", "rubric": ["no"]}],
        "contradiction_resolution": [
            {
                "question": "Have I commits?",
                "ideal_answer": "You said both.",
                "source_chat_ids": {"first_statement": [2], "second_statement": [4]},
            }
        ],
        "information_extraction": [{"question": "When is it due?", "answer": "May 2", "source_chat_ids": [0, 99]}],
        "instruction_following": [{"question": "Show it.", "expected_compliance": "As code.", "source_chat_ids": [0]}],
        "knowledge_update": [
            {
                "question": "How many commits?",
                "answer": "165",
                "source_chat_ids": {"original_info": [2], "updated_info": [4]},
            }
        ],
        "summarization": [
            {"question": "Sum it up.", "ideal_summary": "Commits until May 2.", "source_chat_ids": [0, 2]}
        ],
    }


def beam(folder: Path) -> Path:
    for number in (1, 2, 10):
        written(folder / str(number) / "chat.json", beam_chat())
        written(folder / str(number) / "probing_questions" / "probing_questions.json", beam_questions())
    # Its authors read this one where it is there.
    cut = beam_chat()[:1]
    written(folder / "10" / "chat_trunecated.json", cut)
    return folder


def realmem() -> dict[str, Any]:
    def memory(index: str, content: Any, turn: int, said: str, role: str = "User", **more: Any) -> dict[str, Any]:
        snapshot = {"source_content_snapshot": said, "source_role_snapshot": role, "session_uuid": "u"}
        return {"index": index, "type": "Dynamic", "content": content, "source_turn": turn, **snapshot, **more}

    def said(speaker: str, content: str, **more: Any) -> dict[str, Any]:
        return {"speaker": speaker, "is_query": False, "content": content, "query_id": None, **more}

    sessions = []
    for number, city in enumerate(CITIES):
        project, first, second = f"Travel_{number}", f"a{number}", f"b{number}"
        gold = f"【Travel Plan】 The user flies to {city} in May."
        merged = f"【Travel Plan】 The user flies to {city} in May, by night."
        sessions += [
            {
                "session_identifier": f"Enhanced:S{number}",
                "session_uuid": f"e{number}",
                "current_time": "2025-12-15 (Monday)",
                "dialogue_turns": [said("User", "Write a poem."), said("Assistant", "No.")],
                "extracted_memory": [],
            },
            {
                "session_identifier": f"{project}:S1_01",
                "session_uuid": first,
                "current_time": "2025-12-16 (Tuesday)",
                "dialogue_turns": [
                    said("User", "Hello."),
                    said("Assistant", "Hello!"),
                    said("User", f"I fly to {city} in May."),
                    said("Assistant", "By night?"),
                ],
                "extracted_memory": [
                    memory(f"{project}-1", gold, 3, f"I fly to {city} in May."),
                    # Its turn counts from one where the words of the snapshot were changed later.
                    memory(f"{project}-2", {"by": "night"}, 4, "By night, or by day?", "Assistant"),
                    memory(f"{project}-1", merged, 0, "Hello."),
                    memory(f"{project}-3", "Study every Tuesday.", -1, "", "Assistant"),
                ],
            },
            {
                "session_identifier": f"{project}:S2_01",
                "session_uuid": second,
                "current_time": "2026-01-02 (Friday)",
                "dialogue_turns": [
                    said(
                        "User",
                        "When do I fly?",
                        is_query=True,
                        query_id=f"Q-{number}",
                        category_name="Dynamic Updating",
                    ),
                    said("Assistant", "In May, by night.", memory_used=[{"session_uuid": first, "content": merged}]),
                    said("User", "What am I like?", is_query=True, query_id=f"Q-x{number}"),
                    said(
                        "Assistant",
                        "Kind.",
                        memory_used=[{"session_uuid": "elsewhere", "content": "The user is kind."}],
                    ),
                ],
                "extracted_memory": [],
            },
        ]
    return {"_metadata": {"person_name": "Ann_Li"}, "dialogues": sessions}


def sharegpt() -> list[dict[str, Any]]:
    return [
        {
            "id": f"chat{n}",
            "conversations": [{"from": "human", "value": f"I moved to {city}."}, {"from": "gpt", "value": "OK."}],
        }
        for n, city in enumerate(CITIES)
    ]


def openai_chats(city: str) -> list[dict[str, Any]]:
    def node(name: str, parent: str | None, role: str | None, *parts: Any, **more: Any) -> dict[str, Any]:
        message = {
            "id": name,
            "author": {"role": role},
            "content": {"content_type": "text", "parts": list(parts)},
            **more,
        }
        return {"id": name, "parent": parent, "children": [], "message": None if role is None else message}

    nodes = [
        node("root", None, None),
        node("hidden", "root", "user", "Be nice.", weight=0.0),
        node("first", "hidden", "user", "I moved to Rome."),
        node("edited", "hidden", "user", f"I moved to {city}.", {"content_type": "image_asset_pointer"}),
        node("tool", "edited", "tool", "{}"),
        node("end", "tool", "assistant", "Nice."),
        node("again", "tool", "assistant", "An answer that was made anew, and left."),
    ]
    later = [node("r", None, None), node("u", "r", "user", "Bye."), node("a", "u", "assistant", "Bye!")]
    later[0]["children"], later[1]["children"] = ["u"], ["a"]
    return [
        {"id": "late", "title": "Bye", "create_time": 1709654400.5, "mapping": {one["id"]: one for one in later}},
        {
            "id": "early",
            "title": "Moving",
            "create_time": 1706745600.0,
            "current_node": "end",
            "mapping": {one["id"]: one for one in nodes},
        },
    ]


QUESTIONS_CSV = "conversation,question,answers,evidence\n{}"


def openai_folder(folder: Path) -> Path:
    for name, city in zip(("ann", "bo", "cy"), CITIES, strict=True):
        written(folder / name / "conversations.json", openai_chats(city))
    rows = "".join(f"{name},Where?,{city},early:1\n" for name, city in zip(("ann", "bo", "cy"), CITIES, strict=True))
    written(folder / "questions.csv", QUESTIONS_CSV.format(rows))
    return folder


def sharegpt_folder(folder: Path) -> Path:
    written(folder / "chats.json", sharegpt())
    rows = "".join(f"chat{n},Where?,{city},1:1\n" for n, city in enumerate(CITIES))
    written(folder / "questions.csv", QUESTIONS_CSV.format(rows))
    return folder


def tables(folder: Path) -> Path:
    turns = "".join(
        f'c{n},D1,2026-03-04 10:00,,Ana,"I moved to {city}, at last."\nc{n},D1,,,Bo,Good.\nc{n},D2,,t9,Ana,I like it.\n'
        for n, city in enumerate(CITIES)
    )
    written(folder / "turns.csv", f"\ufeffconversation,session,time,turn,speaker,text\n{turns}")
    asked = "".join(f"c{n},Where does Ana live?,{city} | in {city},D1:1,f1,stable\n" for n, city in enumerate(CITIES))
    written(folder / "questions.csv", f"conversation,question,answers,evidence,fact,kind\n{asked}")
    facts = "".join(f"c{n},f1,D1:1,Ana moved to {city}.\n" for n, city in enumerate(CITIES))
    written(folder / "facts.csv", f"conversation,id,turn,text\n{facts}")
    return folder


FEEDBACK = [
    {"trace": f"{name}.jsonl", "question": f"{name}-city", "right": False, "answers": ["Oslo"]}
    for name in ("one", "two", "three")
]


def traces(folder: Path) -> Path:
    """Three traces of memtune's, in each an answer that was corrected, one that was right, and one that was wrong."""
    for name in ("one", "two", "three"):
        record(folder / f"{name}.jsonl", conversation(name))
    rows: list[dict[str, Any]] = list(FEEDBACK)
    rows.append({"trace": "one", "question": "what does ilya's  gecko eat?", "right": True})
    rows.append({"trace": "one", "question": "What food does Mara's tortoise come out for?", "right": False})
    written(folder / "feedback.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return folder


def otlp_chat(city: str) -> dict[str, Any]:
    """Two calls of a chat model as OpenTelemetry's GenAI conventions have them."""

    def span(number: int, asked: str, reply: str) -> dict[str, Any]:
        def text(role: str, content: str) -> str:
            return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])

        values = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": "chat-1",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": text("user", asked),
            "gen_ai.output.messages": text("assistant", reply),
        }
        return {
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": f"eee19b7ec3c1b17{number}",
            "name": "chat m",
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
            "endTimeUnixNano": str(1_700_000_000_500_000_000 + number),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
        }

    spans = [span(1, f"I moved to {city}.", "Noted."), span(2, "Where do I live?", "In Rome.")]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def otlp_folder(folder: Path) -> Path:
    for number, city in enumerate(CITIES):
        written(folder / f"t{number}.json", otlp_chat(city))
    rows = "".join(f"t{n},Where do I live?,no,{city}\n" for n, city in enumerate(CITIES))
    written(folder / "feedback.csv", f"trace,question,right,answers\n{rows}")
    return folder


def annotated(city: str) -> dict[str, Any]:
    """A graph in MemTraceBench's layout with one label."""

    def node(name: str, value: str, category: str) -> dict[str, Any]:
        return {"name": name, "version": 1, "value": value, "category": category, "metadata": {}}

    nodes = [
        node("D1:1", f"Ann: I moved to {city}.", "message"),
        node("q0", "Where does Ann live?", "query"),
        node("p0", "In Rome.", "prediction"),
    ]
    edges = [{"op_id": "o1", "source_full_node_id": "q0@1", "target_full_node_id": "p0@1"}]
    label = {
        "query_id": "q0@1",
        "query": "Where does Ann live?",
        "golden_answers": city,
        "prediction_id": "p0@1",
        "source_evidence_ids": ["D1:1@1"],
        "final_error_type": "RetrievalError",
        "final_op_id": "o1",
        "acceptable_op_ids": ["o1"],
    }
    data = {"nodes": nodes, "edges": edges, "operations": [{"op_id": "o1", "name": "answer"}], "sessions": []}
    return {"graph_id": "g", "data": {**data, "annotations": [label]}}


def annotated_folder(folder: Path) -> Path:
    for number, city in enumerate(CITIES):
        written(folder / f"g{number}.json", annotated(city))
    return folder


def locomo() -> list[dict[str, Any]]:
    def row(number: int, city: str) -> dict[str, Any]:
        told = [{"speaker": "Ann", "dia_id": "D1:1", "text": f"I moved to {city}."}]
        asked = {"question": "Where did Ann move?", "answer": city, "evidence": ["D1:1"], "category": 4}
        return {"sample_id": f"c{number}", "qa": [asked], "conversation": {"session_1": told}}

    return [row(number, city) for number, city in enumerate(CITIES)]


def halumem() -> list[dict[str, Any]]:
    """A user each: a fact with an interference beside it, then the fact changes; asked after either session."""

    def point(index: int, text: str, source: str = "secondary", **more: Any) -> dict[str, Any]:
        kept = {"is_update": "False", "original_memories": [], "importance": 0.75, "timestamp": "", **more}
        return {"index": index, "memory_content": text, "memory_source": source, "memory_type": "Event Memory", **kept}

    def ask(question: str, answer: str, kind: str, *evidence: str) -> dict[str, Any]:
        told = [{"memory_content": text, "memory_type": "Event Memory"} for text in evidence]
        return {"question": question, "answer": answer, "question_type": kind, "difficulty": "easy", "evidence": told}

    users = []
    for number, city in enumerate(CITIES):
        first, later = f"Ann Li moved to {city}.", f"Ann Li moved from {city} to Bergen."
        users.append(
            {
                "uuid": f"u{number}",
                "persona_info": "[Recorded on Oct 04, 2025] Name: Ann Li; Gender: Female",
                "sessions": [
                    {
                        "start_time": "Sep 04, 2025, 10:44:31",
                        "dialogue": [
                            {"role": "user", "content": f"I moved to {city}."},
                            {"role": "assistant", "content": "Your cousin Per plays the tuba there, I recall."},
                        ],
                        "memory_points": [
                            point(1, first),
                            point(2, "Ann Li's cousin Per plays the tuba.", "interference"),
                            point(3, "Ann Li's marathon record surprised newspapers."),
                        ],
                        "questions": [
                            ask("Where does Ann Li live?", city, "Basic Fact Recall", first),
                            ask("What is Ann Li's middle name?", "Unknown.", "Memory Boundary"),
                        ],
                    },
                    {
                        "start_time": "Oct 01, 2025, 08:00:00",
                        "dialogue": [{"role": "user", "content": f"I moved from {city} to Bergen."}],
                        "memory_points": [point(1, later, is_update="True", original_memories=[first])],
                        "questions": [ask("Where does Ann Li live?", "Bergen", "Dynamic Update", later)],
                    },
                    {"dialogue": [{"role": "user", "content": "Good morning."}], "memory_points": []},
                ],
            }
        )
    return users


def mobilemem() -> list[dict[str, Any]]:
    """A user each, as MobileMem's own script writes one."""
    rows = []
    for number, city in enumerate(CITIES):
        told = [{"dia_id": "D1:1", "text": f"我搬到了{city}。", "speaker": "王景川", "image_path": None}]
        asks = [("他搬到了哪里?", city, 4), ("他的宠物叫什么?", "没有提到宠物。", 3), ("照片里有什么?", "一只狗", 6)]
        qa = [
            {"question": question, "answer": answer, "category": category, "evidence": ["他说过。"], "timestamp": ""}
            for question, answer, category in asks
        ]
        conversation = {"speaker_a": "王景川", "session_1_date_time": "8:30 am on 1 Jan, 2025", "session_1": told}
        rows.append({"sample_id": f"uuid_{number}", "qa": qa, "conversation": conversation})
    return rows


def lines(folder: Path) -> Path:
    path = folder / "mine.jsonl"
    write_conversations(path, [conversation(name) for name in ("one", "two", "three")])
    return path


SOUND: Mapping[str, Callable[[Path], Path]] = {
    "jsonl": lines,
    "csv": tables,
    "openai-chats": openai_folder,
    "sharegpt": sharegpt_folder,
    "traces": traces,
    "locomo": lambda folder: written(folder / "locomo.json", locomo()),
    "longmemeval": lambda folder: written(folder / "longmemeval_s.json", longmemeval()),
    "realmem": lambda folder: written(folder / "Ann_Li_dialogues_256k.json", realmem()),
    "halumem": lambda folder: written(folder / "HaluMem.jsonl", "".join(json.dumps(row) + "\n" for row in halumem())),
    "mobilemem": lambda folder: written(folder / "locomo_u0.json", mobilemem()),
    "beam": beam,
    "benchd": lambda folder: written(folder / "manifest.signed.json", benchd()),
    "memeval": annotated_folder,
    "memtracebench": annotated_folder,
}
"""By data set: writes sound data into a folder, and gives what `--data` names."""
