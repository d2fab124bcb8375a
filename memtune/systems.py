"""All that a memory system of your own needs, in one import.

    from memtune.systems import Answer, Contract, Memory, OperationSpec, PromptSpec, operation, recalled, render

docs/extending.md explains each name; `memtune init` writes a system to begin with.
"""

from experiments.systems.exporting.conformance import ExporterConformance
from experiments.systems.exporting.exporter import Exporter
from experiments.systems.worker import in_worker
from tracing import change, instrument, link, operation, session, traced, variable
from tracing.errors import ConfigError, MalformedReplyError, MemtuneError, ModelError
from tracing.llm.access import ModelAccess
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Item, Layout, Parts, bullets
from tracing.systems.prompts import Candidate, Contract, PromptSpec, render
from tracing.systems.protocol import Answer, Memory, MemorySystem, OperationSpec
from tracing.systems.texts import Text, noted, noted_again, recalled, variables_of

__all__ = [
    "Answer",
    "Candidate",
    "ConfigError",
    "Contract",
    "Conversation",
    "DialogueSession",
    "Exporter",
    "ExporterConformance",
    "Item",
    "Layout",
    "MalformedReplyError",
    "Memory",
    "MemorySystem",
    "MemorySystemConformance",
    "MemtuneError",
    "ModelAccess",
    "ModelError",
    "OperationSpec",
    "Parts",
    "PromptSpec",
    "Question",
    "Step",
    "Text",
    "Turn",
    "bullets",
    "change",
    "in_worker",
    "instrument",
    "intervening",
    "link",
    "noted",
    "noted_again",
    "operation",
    "recalled",
    "render",
    "session",
    "traced",
    "variable",
    "variables_of",
]
