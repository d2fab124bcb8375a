"""How each language denies something, what only looks like a denial, and how it says that something is unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attribution.text.languages.function_words import Language


@dataclass(frozen=True, slots=True)
class DenialPatterns:
    """Patterns of one language.

    Attributes:
        denied: words that deny what is said beside them.
        affirmed: phrases with such a word that deny nothing: can't wait, not only, no doubt, isn't it?
        unknown: phrases that say that something is not known.
        beside: words that may stand beside such a phrase without saying more: by what, or for how long.
    """

    denied: re.Pattern[str]
    affirmed: re.Pattern[str]
    unknown: re.Pattern[str]
    beside: re.Pattern[str]


def _denials(denied: str, affirmed: str, unknown: str, beside: str) -> DenialPatterns:
    return DenialPatterns(*(re.compile(pattern, re.I) for pattern in (denied, affirmed, unknown, beside)))


DENIALS: dict[Language, DenialPatterns] = {
    "en": _denials(
        r"\b(?:not|never|no longer|cannot|without|stopped|quit|nobody|no one|none|neither|nowhere|hardly|barely"
        r"|refuse[sd]?|den(?:y|ies|ied)|no(?= [a-z]))\b|n['’]t\b",
        r"(?:can['’]?t|cannot|couldn['’]?t) (?:wait|help|stop|be|have|imagine|believe|agree more|complain)|not only"
        r"|never been (?:more|so|happier|better)|(?:n['’]t|not|never) \w+ (?:anything|anyone|anybody|nothing) but"
        r"|\bno (?:problem|doubt|worr(?:y|ies)|wonder|matter|kidding)\b|\bwhy (?:not|don['’]t)\b|\bnot bad\b"
        r"|,\s*\w+n['’]t (?:i|you|he|she|it|we|they|there|that)\s*\?",
        r"\b(?:unknown|unanswerable|undecided|forgotten"
        r"|not? (?:longer )?(?:known|mentioned|specified|stated|given|provided|available|sure|decided)"
        r"|no (?:information|record|answer|memory|data|idea)|not enough (?:information|data)"
        r"|(?:do not|dont|cannot|cant) (?:know|say|tell|be answered|answer|determine))\b",
        r"\b(?:conversations?|dialogues?|chats?|discussions?|texts?|contexts?|messages?|transcripts?|questions?"
        r"|information|available|provided|yet|still|currently|anymore)\b",
    ),
    "de": _denials(
        r"\b(?:nicht|nichts|nie|niemals|niemand(?:em|en)?|kein(?:e[mnrs]?)?|ohne|weder|kaum|nirgend(?:s|wo)?"
        r"|weiger\w+|aufgehört)\b",
        r"\bnicht (?:nur|bloß|wahr|umsonst|schlecht|übel)\b|kaum (?:ab|er)warten|\bkein(?:e|en)? (?:problem|zweifel"
        r"|wunder|sorge|frage)\b|\bohne (?:zweifel|frage|weiteres)\b|\bwarum nicht\b|,\s*nicht\s*\?",
        r"\b(?:unbekannt|unentschieden|nicht (?:bekannt|erwähnt|angegeben|genannt|sicher)"
        r"|keine (?:angaben?|informationen?|antwort|daten)|wei(?:ß|ss) (?:es |ich (?:es )?|das )?nicht|keine ahnung"
        r"|kann (?:ich |man )?(?:es |das )?nicht (?:sagen|beantworten))\b",
        r"\b(?:gesprächs?|dialogs?|chats?|unterhaltung|texte?s?|kontext|nachrichten|fragen?|verfügbar|vorhanden"
        r"|bisher|bislang|derzeit)\b",
    ),
    "es": _denials(
        r"\b(?:no|nunca|jamás|nadie|ningun[oa]s?|ningún|sin|tampoco|apenas|dej[óa](?:ron)? de|se neg\w+)\b",
        r"\bno s[oó]lo\b|\bno solamente\b|\bno veo la hora\b|\bno hay (?:problema|duda)\b"
        r"|\bsin (?:duda|embargo|falta)\b|¿no\s*\?|\bno\s*\?|\bpor qué no\b|\bno est[áa] mal\b",
        r"\b(?:desconocid[oa]|indecis[oa]|no (?:lo )?(?:sé|sabe|sabemos|se sabe|consta)"
        r"|no se (?:menciona|indica|especifica|dice)|no hay (?:información|datos|respuesta)|sin (?:información|datos)"
        r"|no (?:puedo|se puede) (?:saber|decir|responder))\b",
        r"\b(?:conversación|diálogo|chat|textos?|contexto|mensajes?|preguntas?|disponibles?|todavía|aún|actualmente)\b",
    ),
    "fr": _denials(
        r"\bne\b|\bn['’]|\b(?:pas|jamais|aucune?|sans|rien|refus\w+|arrêté de)\b",
        r"\bn(?:e |['’])\w+ que\b|\bnon seulement\b|\bpas (?:seulement|mal)\b|\b(?:n['’]y a )?pas de (?:problème|souci"
        r"|doute)\b|\bsans (?:doute|problème|faute|souci)\b|n['’]est-ce pas|\bpourquoi pas\b",
        r"\b(?:inconnue?s?|indécise?s?|(?:ne |n['’])?(?:sais|sait|savons) pas|pas (?:mentionnée?|précisée?|indiquée?"
        r"|connue?|sûre?)|aucune (?:information|donnée|réponse|idée)|pas d['’]informations?"
        r"|ne (?:peux|peut) pas (?:dire|savoir|répondre))\b",
        r"\b(?:conversation|dialogue|discussion|textes?|contexte|messages?|questions?|disponibles?|encore"
        r"|actuellement)\b",
    ),
}
