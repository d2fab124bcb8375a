"""How each language asks for a conclusion, for a number and for a name, and how it answers yes or no."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from attribution.text.languages.dictionary import dictionary_form
from attribution.text.languages.function_words import Language


@dataclass(frozen=True, slots=True)
class QuestionPatterns:
    """Patterns of one language.

    Attributes:
        polite: how a question begins that only asks politely: could you tell me.
        concludes: moods and adverbs of what is supposed; the conditional is found by `is_conditional`.
        reported: verbs after which a mood belongs to what somebody said: Where did Ana say she would live?
        inferential: words of an answer that is a yes or no, however sure.
        counts: how a number or duration is asked for; it begins the question.
        how_many: how a number of things is asked for.
        asks_a_name: what asks for a name.
    """

    polite: re.Pattern[str]
    concludes: re.Pattern[str]
    reported: re.Pattern[str]
    inferential: re.Pattern[str]
    counts: re.Pattern[str]
    how_many: re.Pattern[str]
    asks_a_name: re.Pattern[str]


def _questions(*patterns: str) -> QuestionPatterns:
    return QuestionPatterns(*(re.compile(pattern, re.I) for pattern in patterns))


QUESTIONS: dict[Language, QuestionPatterns] = {
    "en": _questions(
        r"^(?:could|would|can|will) you (?:please |kindly )?(?:tell|remind|say|let|help|explain|share|list|name)\b",
        r"\b(?:would|might|could|likely|probably|potentially|possibly|presumably|suspected (?!of|that)"
        r"|(?:be|is|are|was|were|being) considered)\b",
        r"\b(?:say|says|said|saying|tell|tells|told|mention\w*|promis\w+|hop(?:e|es|ed|ing)|think|thinks|thought|plann?\w*"
        r"|expect\w*|believ\w+|wish\w*|decid\w+|announc\w+|predict\w*|ask(?:s|ed)?|suggest\w*|wonder\w*|claim\w*"
        r"|explain\w*|fear\w*|dream\w*|swear|swore|agree\w*|know|knew|worr\w+)\b",
        r"\b(?:yes|likely|unlikely|probably|maybe|possibly|perhaps)\b|^no\b",
        r"(?:how (?:many|often|long)|after how many|what (?:number|amount))\b",
        r"how many\b",
        r"\b(?:who|whom|whose|where|name[ds]?|called|which (?:city|country|town|state|place))\b",
    ),
    "de": _questions(
        r"^(?:könntest|würdest|kannst) du\b|^(?:könnten|würden|können) sie (?:mir|uns|bitte)\b",
        r"\b(?:würden?|könnten?|dürften?|wäre|wären|wahrscheinlich|vermutlich|möglicherweise|vielleicht|wohl|eventuell"
        r"|gilt)\b",
        r"\b(?:sag\w+|gesagt|erzähl\w*|verspr[aio]ch\w*|versprochen|hoff\w*|gehofft|glaub\w*|geglaubt|dach\w+|gedacht"
        r"|denkt|plan\w*|geplant|meint\w*|gemeint|erwart\w*|angekündigt|kündigt\w*|erwähn\w*|frag\w*|gefragt|wünsch\w*"
        r"|behaupt\w*|erklär\w*|befürcht\w*)\b",
        r"\b(?:ja|wahrscheinlich|vermutlich|vielleicht|möglicherweise|wohl|unwahrscheinlich)\b|^nein\b",
        r"(?:wie (?:viele?|oft|lange)|nach wie vielen)\b",
        r"wie viele\b",
        r"\b(?:wer|wen|wem|wessen|wo|woher|wohin|hei(?:ß|ss)(?:t|en)|name[ns]?|nennt"
        r"|welche[mrns]? (?:stadt|land|ort))\b",
    ),
    "es": _questions(
        r"^¿?(?:podr[íi]as?|puedes|puede) (?:\w+(?:me|nos)|usted)\b|^¿?me (?:podr[íi]as?|puedes)\b",
        r"\b(?:probablemente|quizás?|tal vez|posiblemente|seguramente|a lo mejor|sería|serían)\b",
        r"\b(?:dij\w+|dic(?:e|en|ho)|cont(?:ó|aron|ado)|prometi\w+|promete|esper\w+|cre[eyí]\w*|pens\w+|piensa"
        r"|mencion\w+|anunci\w+|plane\w+|pregunt\w+|deci[dó]\w*|dese\w+|asegur\w+|explic\w+|tem[ií]\w*)\b",
        r"\b(?:probablemente|quizás?|tal vez|posiblemente|seguramente)\b|^(?:sí|no)\b",
        r"¿?(?:cuánt[oa]s?|con qué frecuencia|(?:hace|por|durante) cuánto)\b",
        r"¿?cuánt[oa]s\b",
        r"\b(?:quién|quiénes|dónde|adónde|llama[nr]?|nombres?|(?:qué|cuál) (?:ciudad|país|lugar|pueblo))\b",
    ),
    "fr": _questions(
        r"^(?:pourr(?:ais|iez)|peux|pouvez)-(?:tu|vous)\b|^est-ce que (?:tu|vous) pourr(?:ais|iez)\b",
        r"\b(?:probablement|peut-être|sans doute|vraisemblablement|éventuellement)\b",
        r"\b(?:dit|disait|dire|raconté|racontait|promis|promet\w*|esp[éè]r\w+|pens\w+|croi\w+|croy\w+|cru|mentionn\w+"
        r"|annonc\w+|prév\w+|demand\w+|souhait\w+|assur\w+|expliqu\w+|crai\w+|décid\w+)\b",
        r"\b(?:probablement|peut-être|sans doute|vraisemblablement)\b|^(?:oui|non)\b",
        r"(?:combien|à quelle fréquence|(?:depuis|pendant) combien|après combien)\b",
        r"combien d(?:e\b|['’])",
        r"\b(?:qui|où|appel\w+|noms?|(?:quelle|dans quelle) ville|quel (?:pays|lieu|endroit))\b",
    ),
}

_SPANISH_ENDINGS = ("íamos", "íais", "ías", "ían", "ía")
_SPANISH_IRREGULAR = "podr tendr har dir sabr vendr saldr pondr querr habr valdr cabr"
_SPANISH_STEMS = frozenset(_SPANISH_IRREGULAR.split())
_FRENCH_ENDINGS = ("aient", "ions", "iez", "ais", "ait")
_FRENCH_IRREGULAR = "ser aur ir fer pourr voudr devr saur verr viendr tiendr faudr vaudr enverr mourr courr recevr"
_FRENCH_STEMS = frozenset(_FRENCH_IRREGULAR.split())


def is_conditional(word: str, language: Language) -> bool:
    """Whether a lower-case word is a verb in the conditional: an infinitive with an ending, viviría or habiterait."""
    if language not in ("es", "fr"):
        return False
    endings, irregular = (_SPANISH_ENDINGS, _SPANISH_STEMS) if language == "es" else (_FRENCH_ENDINGS, _FRENCH_STEMS)
    stem = next((word[: -len(ending)] for ending in endings if word.endswith(ending)), "")
    if not stem.endswith("r"):
        return False
    verb = _unaccented(dictionary_form(word, language).lower())
    # A verb is its own infinitive; `quería` is the imperfect of querer, not the infinitive *quer.
    listed = any(
        stem == irregular_stem or (len(irregular_stem) > 4 and stem.endswith(irregular_stem))
        for irregular_stem in irregular
    )
    return listed or (verb != _unaccented(word) and _unaccented(stem) in (verb, verb.removesuffix("e")))


def _unaccented(word: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
