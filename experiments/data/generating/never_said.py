"""Questions about what was never said: those that were kept, asked about the other speaker, of whom nobody tells it."""

from __future__ import annotations

import re

from attribution.gold_answers.claim import claim_of
from attribution.text.content import content_of
from attribution.text.languages.reading_language import reading
from attribution.text.phrases import says_unknown
from experiments.data.generating.citations import is_assistant
from experiments.data.generating.filters import Trial
from experiments.data.published.locomo import NOT_TOLD
from tracing.systems.conversations import NearMiss, Question

TOLD = "what was to be never said is told of the other speaker"
"""The reason for which such a draft is dropped."""

_TOLD = 0.5
"""The least share of the question's matter with which a turn of the other speaker may tell it."""


def about_the_other(trial: Trial) -> Trial | None:
    """A question with the other speaker's name in it instead; None where a conversation has not two people, or it has
    both."""
    speakers, question = trial.dialogue.conversation.speakers, trial.draft.question
    own = trial.dialogue.turns[trial.draft.evidence[-1]].speaker
    others = [speaker for speaker in speakers if speaker != own]
    if len(others) != 1 or is_assistant(others[0]) or others[0] in question or own not in question:
        return None
    draft = Question(
        id="",
        question=re.sub(rf"(?<!\w){re.escape(own)}(?!\w)", lambda match: others[0], question),
        answers=NOT_TOLD,
        kind="never_said",
        unanswerable=True,
        near_miss=NearMiss(turn=trial.draft.evidence[-1], value=trial.value),
        source="generated",
    )
    return Trial(trial.dialogue, draft, trial.author)


def is_told(trial: Trial) -> bool:
    """Whether a turn near to the question may tell it of the other speaker: by words, or as the author reads them."""
    with reading(trial.dialogue.language):
        claim = claim_of(trial.draft, trial.dialogue.talk)
        for turn in map(trial.dialogue.turns.__getitem__, trial.nearest):
            about = turn.speaker == claim.person or (claim.person is not None and claim.person in turn.text)
            if about and trial.dialogue.vocabulary.coverage(claim.topic, content_of(turn.text)) >= _TOLD:
                return True
        return claim.person is None or not says_unknown(trial.reply(trial.nearest))
