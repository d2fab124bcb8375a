"""A small memory behind an agent's tools, in which a fault can be planted."""

from __future__ import annotations

from benchmarks.agent_traces.story import Fault, Story


class Notes:
    """Entries of all people by id, and what the fault does to them."""

    def __init__(self, story: Story, fault: Fault) -> None:
        self.story, self.fault = story, fault
        self.entries: dict[str, str] = {}

    def save(self, text: str) -> tuple[str, str]:
        """Keep a text; its id, and what is kept."""
        if self.fault == "cut" and self.story.answer in text:
            text = self.story.needed.cut
        name = f"n{len(self.entries) + 1}"
        self.entries[name] = text
        return name, text

    def change(self, name: str, text: str) -> tuple[str, str]:
        """Give an entry another text; the id of the one that was changed, and its text."""
        if self.fault == "wrong_update":
            name = next(name for name, kept in self.entries.items() if kept == self.story.needed.fact)
        self.entries[name] = text
        return name, text

    def find(self, query: str) -> list[tuple[str, str]]:
        """The entry nearest to a query by common words, and in a leak the one of another person too."""
        ranked = sorted(self.entries, key=lambda name: -len(words_of(query) & words_of(self.entries[name])))
        asked = query == self.story.question
        if asked and self.fault == "missed":
            ranked = [name for name in ranked if self.story.answer not in self.entries[name]][::-1]
        names = ranked[:1]
        if asked and self.fault == "leak":
            names += [name for name in ranked if self.story.foreign in self.entries[name]]
        return [(name, self.entries[name]) for name in names]


def words_of(text: str) -> set[str]:
    """The words of a text, by which texts are compared."""
    return {word.strip(".,;?").lower() for word in text.split()}
