"""What two people tell an agent with memory tools, what it does, and one planted fault, for every form of export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

Fault = Literal["none", "nothing_saved", "cut", "wrong_update", "missed", "ignored", "leak"]
FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass(frozen=True)
class Tale:
    """Who says what, the facts in it, and a question for the first of them. The last turn changes the second."""

    users: tuple[str, str]
    turns: tuple[tuple[str, str], tuple[str, str], tuple[str, str], tuple[str, str]]
    """Text and fact: of the first user, of the first, of the second, and of the first again, changing the second."""
    subjects: tuple[str, str, str]
    question: str
    query: str
    answer: str
    wrong: str
    cut: str
    tools: tuple[str, str, str]
    hello: str = "Noted."


@dataclass(frozen=True)
class Call:
    """A call of a tool: `does` is save, change, find or other; entries are what it has stored or found, by id."""

    id: str
    does: str
    name: str
    arguments: dict[str, object]
    entries: tuple[tuple[str, str], ...] = ()
    result: object = None


@dataclass(frozen=True)
class Turn:
    user: str
    session: str
    text: str
    calls: tuple[Call, ...]
    reply: str
    fact: str = ""


KITE = Tale(
    ("greta", "pavel"),
    (
        ("I keep bees now, the hive stands behind the chapel.", "Keeps a beehive behind the chapel."),
        ("My cousin Ilse studies law in Graz.", "Cousin Ilse studies law in Graz."),
        ("My kayak is moored at the old mill.", "Kayak is moored at the old mill."),
        ("Ilse switched to medicine, still in Graz.", "Cousin Ilse studies medicine in Graz."),
    ),
    ("beehive", "Ilse", "kayak"),
    "Where does my hive stand?",
    "where the hive stands",
    "behind the chapel",
    "On the roof of the barn.",
    "Keeps a beehive",
    ("store_note", "edit_note", "search_notes"),
)

FERRY = Tale(
    ("oona", "bram"),
    (
        ("For the record: I am allergic to hazelnuts since I was six.", "Is allergic to hazelnuts."),
        ("My landlord Piet lives in Delft.", "Landlord Piet lives in Delft."),
        ("I am allergic to shellfish, by the way.", "Is allergic to shellfish."),
        ("Piet has moved to Zwolle.", "Landlord Piet lives in Zwolle."),
    ),
    ("allergy", "Piet", "shellfish"),
    "Which nuts must I avoid?",
    "nuts allergy",
    "hazelnuts",
    "You can eat everything.",
    "Is allergic",
    ("memorize", "modify_memory", "retrieve_memories"),
)

CHINESE = Tale(
    ("wei", "fang"),
    (
        ("我的猫叫豆豆，它只吃三文鱼。", "猫豆豆只吃三文鱼。"),
        ("我姐姐在成都当老师。", "姐姐在成都当老师。"),
        ("我的狗喜欢吃牛肉。", "狗喜欢吃牛肉。"),
        ("我姐姐搬到重庆了，还是当老师。", "姐姐在重庆当老师。"),
    ),
    ("豆豆", "姐姐", "狗"),
    "豆豆吃什么？",
    "豆豆 吃",
    "三文鱼",
    "它吃米饭。",
    "猫豆豆",
    ("save_memory", "update_memory", "search_memory"),
    "好的。",
)

GERMAN = Tale(
    ("karl", "uta"),
    (
        ("Unser Segelboot liegt übrigens im Hafen von Wismar.", "Das Segelboot liegt im Hafen von Wismar."),
        ("Meine Schwägerin Rosa arbeitet als Hebamme in Celle.", "Schwägerin Rosa arbeitet als Hebamme in Celle."),
        ("Mein Wohnwagen steht in Husum.", "Der Wohnwagen steht in Husum."),
        ("Rosa arbeitet jetzt in Gifhorn.", "Schwägerin Rosa arbeitet als Hebamme in Gifhorn."),
    ),
    ("Segelboot", "Rosa", "Wohnwagen"),
    "Wo liegt unser Segelboot?",
    "Segelboot Liegeplatz",
    "Wismar",
    "Es liegt in Kiel.",
    "Das Segelboot",
    ("remember_fact", "change_fact", "recall_facts"),
    "Ist notiert.",
)


def turns_of(tale: Tale, fault: Fault) -> list[Turn]:
    """All turns with what the agent does in each, the question last."""
    save, change, find = tale.tools
    asking, other = tale.users
    facts = [fact for _, fact in tale.turns]
    stored = tale.cut if fault == "cut" else facts[0]
    hit = "m1" if fault == "wrong_update" else "m2"
    saved = Call("c1", "save", save, {"text": facts[0]}, (("m1", stored),))
    first = () if fault == "nothing_saved" else (saved,)
    entries = {} if fault == "nothing_saved" else {"m1": stored}
    entries |= {"m2": facts[1], hit: facts[3]}
    shown = [(key, entries[key]) for key in ("m1",) if key in entries] or [("m2", entries["m2"])]
    if fault == "missed":
        shown = [("m2", entries["m2"])]
    if fault == "leak":
        shown.append(("m3", facts[2]))
    right = fault in ("none", "leak")
    turns = [
        (asking, f"{asking}-1", first, facts[0]),
        (asking, f"{asking}-1", (Call("c2", "save", save, {"text": facts[1]}, (("m2", facts[1]),)),), facts[1]),
        (other, f"{other}-1", (Call("c3", "save", save, {"text": facts[2]}, (("m3", facts[2]),)),), facts[2]),
        (
            asking,
            f"{asking}-2",
            (Call("c4", "change", change, {"id": hit, "text": facts[3]}, ((hit, facts[3]),)),),
            facts[3],
        ),
    ]
    told = [
        Turn(user, session, text, calls, tale.hello, fact)
        for (user, session, calls, fact), (text, _) in zip(turns, tale.turns, strict=True)
    ]
    search = Call("c5", "find", find, {"query": tale.query}, tuple(shown))
    reply = tale.answer if right else tale.wrong
    return [*told, Turn(asking, f"{asking}-3", tale.question, (search,), reply)]


OTHER_TOOLS: tuple[Call, ...] = (
    Call("w1", "other", "get_weather", {"city": "Graz"}, (), {"temperature": 21, "sky": "clear"}),
    Call("w2", "other", "get_user_location", {}, (), {"city": "Bergen", "country": "Norway"}),
    Call("w3", "other", "add_to_cart", {"item": "beeswax", "amount": 2}, (), {"cart": ["beeswax"]}),
    Call("w4", "other", "add", {"a": 3, "b": 4}, (), 7),
    Call("w5", "other", "web_search", {"query": "bee food"}, (), {"results": [{"title": "Bees", "content": "Sugar."}]}),
)
"""What has nothing to do with a memory, though its names may sound so."""


def with_other_tools(turns: list[Turn]) -> list[Turn]:
    """The same, and the first turn also calls what is no memory."""
    return [replace(turns[0], calls=(*turns[0].calls, *OTHER_TOOLS)), *turns[1:]]


def answered(call: Call) -> object:
    """What the tool gives back, as plain JSON."""
    if call.does == "find":
        return {"results": [{"id": key, "text": text} for key, text in call.entries]}
    if call.entries:
        return {"id": call.entries[0][0], "text": call.entries[0][1]}
    return call.result


def requests(turns: list[Turn]) -> Iterator[tuple[int, Turn, list[tuple[str, object]], Call | str]]:
    """Each call of the model: its turn, the roles and texts, calls and results that it reads, and what it gives."""
    history: dict[str, list[tuple[str, object]]] = {}
    for number, turn in enumerate(turns):
        read = history.setdefault(turn.session, [])
        read.append(("user", turn.text))
        for call in turn.calls:
            yield number, turn, list(read), call
            read += [("call", call), ("result", call)]
        yield number, turn, list(read), turn.reply
        read.append(("assistant", turn.reply))
