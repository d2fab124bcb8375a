"""The scripted author as a proposer of the product's searches: one call a text, as with any other author."""

from __future__ import annotations

from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest, new_rewrites
from optimizer.published.carried_prompt import CarriedPrompt

_REQUEST = "Write a better instruction, number {number}.\n```\n{instruction}\n```"


class ScriptedProposer:
    """Asks the author for other instructions, each with a call of its own."""

    name = "author"

    def __init__(self, means: Means) -> None:
        self.author = means.author

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """As many as are asked for, less those that were tried."""
        carried = CarriedPrompt(request.prompt, request.text)
        texts: list[tuple[str, str]] = []
        for number in range(len(request.tried), len(request.tried) + request.count):
            request_text = _REQUEST.format(number=number, instruction=carried.instruction)
            reply = self.author.chat([{"role": "user", "content": request_text}], max_tokens=256).text
            texts.append((carried.text(reply.strip("`\n")), "written anew"))
        return new_rewrites(request, self.name, texts)
