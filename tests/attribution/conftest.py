"""Conversations for attribution: one with annotated facts, changes and withdrawals, one with evidence turns only."""

from __future__ import annotations

import pytest

from tracing.systems.conversations import Conversation

PETS = {
    "id": "pets",
    "speakers": ["Mara", "Ilya"],
    "sessions": [
        {
            "id": "D1",
            "time": "2021-03-06 10:15",
            "turns": [
                {"id": "D1:1", "speaker": "Mara", "text": "My tortoise, Brisket, only comes out for radicchio."},
                {"id": "D1:2", "speaker": "Ilya", "text": "My gecko won't touch anything but mashed papaya."},
                {"id": "D1:3", "speaker": "Mara", "text": "My tortoise spends his nights in a wine crate."},
                {"id": "D1:4", "speaker": "Ilya", "text": "My sister Agata, who's a farrier, left me her six ducks."},
                {"id": "D1:5", "speaker": "Mara", "text": "I'm getting a whippet pup, and the name will be Crouton."},
                {"id": "D1:6", "speaker": "Ilya", "text": "Lovely. The bus was late again today."},
            ],
        },
        {
            "id": "D2",
            "time": "2021-06-19 11:40",
            "turns": [
                {"id": "D2:1", "speaker": "Mara", "text": "My tortoise went off that, he sleeps in an old suitcase."},
                {
                    "id": "D2:2",
                    "speaker": "Mara",
                    "text": "Scratch what I said about the whippet's name, forget it.",
                },
            ],
        },
    ],
    "facts": [
        {"id": "f1", "turn": "D1:1", "text": "Mara's tortoise Brisket only comes out for radicchio."},
        {"id": "f3", "turn": "D1:3", "text": "Mara's tortoise sleeps in a wine crate."},
        {"id": "f8", "turn": "D1:5", "text": "Mara will name her whippet pup Crouton."},
        {
            "id": "f10",
            "turn": "D2:1",
            "text": "Mara's tortoise now sleeps in an old suitcase.",
            "action": "update",
            "of": "f3",
        },
        {
            "id": "f14",
            "turn": "D2:2",
            "text": "Mara wants the name of her whippet forgotten.",
            "action": "delete",
            "of": "f8",
        },
    ],
    "questions": [
        {
            "id": "food",
            "question": "What food does Mara's tortoise come out for?",
            "answers": ["radicchio"],
            "evidence": ["D1:1"],
            "fact": "f1",
            "near_miss": {"turn": "D1:2", "value": "papaya"},
        },
        {
            "id": "bed",
            "question": "Where does Mara's tortoise sleep?",
            "answers": ["old suitcase", "suitcase"],
            "kind": "updated",
            "evidence": ["D2:1"],
            "fact": "f10",
            "near_miss": {"turn": "D1:3", "value": "wine crate"},
        },
        {
            "id": "pup",
            "question": "What name has Mara picked for her whippet pup?",
            "answers": ["unknown", "not known"],
            "kind": "deleted",
            "evidence": ["D2:2"],
            "fact": "f14",
            "near_miss": {"turn": "D1:5", "value": "Crouton"},
        },
        {"id": "city", "question": "Where does Agata live?", "answers": ["Lisbon"], "evidence": ["D1:4"]},
    ],
}

TRIPS = {
    "id": "trips",
    "speakers": ["Caroline", "Melanie"],
    "sessions": [
        {
            "id": "D1",
            "time": "1:56 pm on 8 May, 2023",
            "turns": [
                {"id": "D1:1", "speaker": "Caroline", "text": "I went to a support group yesterday, it was powerful."},
                {"id": "D1:2", "speaker": "Melanie", "text": "We camped at the beach with the kids, they loved it."},
                {
                    "id": "D1:3",
                    "speaker": "Caroline",
                    "text": "I've been looking into adopting through an agency.",
                },
                {"id": "D1:4", "speaker": "Melanie", "text": "Next time it's the mountains. I paint to calm down."},
            ],
        }
    ],
    "questions": [
        {
            "id": "when",
            "question": "When did Caroline go to the support group?",
            "answers": ["7 May 2023"],
            "evidence": ["D1:1"],
        },
        {
            "id": "where",
            "question": "Where has Melanie camped?",
            "answers": ["beach, mountains"],
            "evidence": ["D1:2", "D1:4"],
        },
        {
            "id": "what",
            "question": "What did Caroline research?",
            "answers": ["Adoption agencies"],
            "evidence": ["D1:3"],
        },
        {"id": "free", "question": "What does Melanie do to calm down?", "answers": ["painting"]},
    ],
}


@pytest.fixture
def pets() -> Conversation:
    """Two owners and their animals: a fact, a changed fact, a withdrawn fact, a wrong gold answer."""
    return Conversation.model_validate(PETS)


@pytest.fixture
def trips() -> Conversation:
    """Questions with evidence turns but no facts, kinds or near misses, as in LoCoMo."""
    return Conversation.model_validate(TRIPS)
