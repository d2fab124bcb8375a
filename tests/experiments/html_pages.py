"""A page as tests read it: its tags closed in order, its ids, its links, its words."""

from html.parser import HTMLParser

from tracing.package_data import packaged_text

TABLES = ("filters.js", "scatter.js")
"""Scripts of pages with tables that are filtered and drawn."""


def shipped(*names: str) -> list[str]:
    """What scripts of a page hold if nothing but ours is in them."""
    return [packaged_text("experiments", f"templates/{name}").strip() for name in names]


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "img", "br", "wbr", "use", "input"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.links.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] == "script" else self.said).append(data)

    @property
    def programs(self) -> list[str]:
        return [script.strip() for script in self.scripts if script.strip()]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())
