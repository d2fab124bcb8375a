"""A system without `rerun`: what its operations asked is asked again, with another text in the place of the prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from optimizer.objectives.reply_readers import reader_of, reads_alike
from tracing.errors import ModelError
from tracing.llm.http.chat_requests import chat_messages, chat_options
from tracing.recording.operations import operation
from tracing.recording.redaction import REDACTED
from tracing.recording.trace_context import session, trace
from tracing.systems.layouts import Item, Read
from tracing.systems.recorded_calls import FilledPrompt, filled_prompt

if TYPE_CHECKING:
    from optimizer.objectives.objective import RecordedInput
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatModel
    from tracing.systems.prompts import PromptSpec

FEWEST_AGAIN = 4
"""A prompt of which fewer recorded inputs can be asked again is compared on whole conversations."""

UNREAD = "its outputs are not read from its reply (Layout.read says how)"
NOTHING_MADE = "nothing was made of any reply, so how they are read cannot be seen"


class AskingAgain:
    """Asks the models what executions asked them, with other texts.

    An execution can be asked again if it made one call, which was recorded, if its prompt is found in that, and if its
    reply is read as the operation read it: by the layout's `read`, or by what replies and outputs show.

    Args:
        prompts: the system's, by name.
        access: its models.

    Attributes:
        about: prompt name → how many of its recorded inputs can be asked again, and why others cannot, in one sentence.
        whole: names of the prompts whose texts have to be compared on whole conversations.
    """

    def __init__(self, prompts: Mapping[str, PromptSpec], access: ModelAccess) -> None:
        self.about: dict[str, str] = {}
        self.whole: set[str] = set()
        self._prompts, self._access = prompts, access
        self._readers: dict[str, Read] = {}

    def repeatable(
        self, prompt: str, recorded: Sequence[RecordedInput], at_stake: Sequence[RecordedInput]
    ) -> list[RecordedInput]:
        """Those of the inputs at stake that can be asked again; all of them if these are too few."""
        reasons = self.hindrances(prompt, recorded, at_stake)
        again = [execution for execution in at_stake if reasons[execution.key] is None]
        rest = Counter(reason for reason in reasons.values() if reason is not None)
        self.whole.discard(prompt)
        # Where little is at stake, nothing hinders but that.
        if len(at_stake) >= FEWEST_AGAIN and len(again) < max(FEWEST_AGAIN, len(at_stake) / 2):
            self.whole.add(prompt)
        self.about[prompt] = (
            f"{prompt}: {len(again)} of {len(at_stake)} recorded inputs can be asked again with other texts"
            + "".join(f"; {count} cannot: {reason}" for reason, count in rest.most_common())
            + ("; its rewrites are compared on whole conversations" if prompt in self.whole else "")
        )
        return list(at_stake) if prompt in self.whole else again

    def hindrances(
        self, prompt: str, recorded: Sequence[RecordedInput], at_stake: Sequence[RecordedInput]
    ) -> dict[str, str | None]:
        """Key of each input at stake → why it cannot be asked again; None if it can.

        How replies are read is learnt from all that was recorded.
        """
        exchanges = [
            (execution.call.reply, execution.outputs)
            for execution in recorded
            if execution.call is not None and execution.call.request is not None
        ]
        reader = reader_of(exchanges, self._prompts[prompt].layout.read)
        if reader is not None:
            self._readers[prompt] = reader
        unread = UNREAD if any(outputs for _, outputs in exchanges) else NOTHING_MADE
        return {execution.key: self._hindrance(execution, reader, unread) for execution in at_stake}

    def outputs(self, prompt: str, text: str, execution: RecordedInput, name: str) -> tuple[Item, ...]:
        """What the operation makes of the reply to another text, in a session called `name`.

        Raises:
            ModelError: the call failed.
            BudgetExceededError: a hard budget does not allow it.
        """
        call, filled, read = execution.call, self._filled(execution), self._readers.get(prompt)
        if call is None or call.request is None or filled is None or read is None:
            raise ModelError(f"an input of {prompt} cannot be asked again")
        messages = chat_messages(call.request)
        messages[filled.place]["content"] = filled.with_text(text)
        options = chat_options(call.request)
        options["whole"] = call.request.get("whole", options["whole"])
        with trace(prefix="l"), session(name), operation(self._prompts[prompt].operation, kind="llm"):
            reply = self._models()[call.request["model"]].chat(messages, **options)
        return tuple(read(reply.text))

    def _hindrance(self, execution: RecordedInput, reader: Read | None, unread: str) -> str | None:
        """Why an execution cannot be asked again; None if it can. `unread`: why its reply is read by no reader."""
        call = execution.call
        if call is None or call.count == 0:
            return "its model call was not recorded"
        if call.count > 1:
            return f"it made {call.count} model calls"
        if call.request is None:
            return "its request was not recorded"
        if call.request.get("model") not in self._models():
            return f"it asks {call.request.get('model')}, which is no model of the run"
        if call.template is None:
            return "its prompt was not recorded as a variable of kind 'prompt'"
        if REDACTED in str(call.request):
            return "a credential was taken out of its request"
        if self._filled(execution) is None:
            return "its prompt is not found in its request"
        if reader is None or not reads_alike(reader, call.reply, execution.outputs):
            return unread
        return None

    def _filled(self, execution: RecordedInput) -> FilledPrompt | None:
        call = execution.call
        if call is None or call.request is None or call.template is None:
            return None
        try:
            texts = [message["content"] or "" for message in chat_messages(call.request)]
        except (ModelError, KeyError, TypeError, AttributeError):
            return None  # as a client wrote it that asks for something else
        layout = execution.prompt.layout
        return filled_prompt(call.template, texts, execution.parts, layout.filled(execution.parts))

    def _models(self) -> dict[str, ChatModel]:
        models = (self._access.judge, self._access.proposer, self._access.task)
        return {model.settings.model: model for model in models}
