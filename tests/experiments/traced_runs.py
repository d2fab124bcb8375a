"""A run's folder with real traces: three conversations, each with two wrong answers and then a right one."""

from pathlib import Path

from experiments.runs.config_file import load_config
from experiments.runs.folder import CONFIG, RunFolder
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, write_conversations
from tracing.systems.prompts import baseline_candidate
from tracing.systems.registry import open_system

HOSTILE = "</script><script>alert('x')</script> | <b>radicchio</b>"
CONVERSATIONS = ("one", "two", "three")


def conversation(name: str, questions: int = 3) -> Conversation:
    turns = [
        ("D1:1", "Mara", "My tortoise only comes out for radicchio."),
        ("D1:2", "Mara", "I moved to Oslo in spring."),
        ("D1:3", "Ilya", f"My gecko eats papaya. {HOSTILE}"),
    ]
    asked = [
        ("food", "What food does Mara's tortoise come out for?", "radicchio", "D1:1"),
        ("city", "Where did Mara move to?", "Oslo", "D1:2"),
        ("gecko", "What does Ilya's gecko eat?", "papaya", "D1:3"),
    ]
    return Conversation.model_validate(
        {
            "id": name,
            "speakers": ["Mara", "Ilya"],
            "sessions": [{"id": "D1", "turns": [{"id": t, "speaker": s, "text": x} for t, s, x in turns]}],
            "questions": [
                {"id": f"{name}-{q}", "question": x, "answers": [a], "evidence": [e]}
                for q, x, a, e in asked[:questions]
            ],
        }
    )


def record(path: Path, told: Conversation) -> None:
    """The memory loses the tortoise's food on extraction, and answers about Oslo in spite of its context."""
    prompts = baseline_candidate(open_system("fact-memory").prompts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with trace(path, prefix=told.id[0]):
        prompt = variable(prompts["extract"], name="extract", kind="prompt")
        messages = [variable(f"{turn.speaker}: {turn.text}", name=turn.id, kind="message") for turn in told.turns()]
        with operation("extract_facts", kind="llm", inputs={"messages": messages, "prompt": prompt}) as op:
            said = ("Mara moved to Oslo in spring.", "Ilya's gecko eats papaya.")
            facts = [op.output("facts", text, name=f"fact{n}", kind="fact") for n, text in enumerate(said)]
        entries = []
        for number, fact in enumerate(facts):
            with operation("store", inputs={"fact": fact}) as op:
                entries.append(op.output("entry", fact.value, name=f"m{number}", kind="memory_entry"))
        replies = (HOSTILE.replace("radicchio", "hay"), "Bergen", "papaya")
        for question, reply in zip(told.questions, replies, strict=False):
            with session(question.id):
                query = variable(question.question, name=question.id, kind="query")
                with operation("retrieve", inputs={"query": query, "entries": entries}) as op:
                    context = [op.output("context", e.value, name=e.name, kind="context", entry=e.id) for e in entries]
                with operation("answer", kind="llm", inputs={"query": query, "context": context}) as op:
                    op.output("prediction", reply, kind="prediction")


def traced_run(home: Path, questions: int = 3) -> RunFolder:
    """A run that was stopped after its baseline was evaluated, with the first `questions` of each conversation."""
    folder = RunFolder(home / "runs" / "r1")
    folder.path.mkdir(parents=True)
    told = [conversation(name, questions) for name in CONVERSATIONS]
    write_conversations(folder.path / "data.jsonl", told)
    (folder.path / CONFIG).write_text("system: fact-memory\ndataset: jsonl\ndata: data.jsonl\n")
    assert load_config(str(folder.path / CONFIG)).data is not None
    for which in ("baseline", "champion"):
        folder.write_prompts(which, baseline_candidate(open_system("fact-memory").prompts))
    for one in told:
        record(folder.path / "traces" / f"key-{one.id}" / f"{one.id}.jsonl", one)
    return folder
