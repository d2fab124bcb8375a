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
        untold: phrases that say so only where nothing else is said: she never told.
        beside: words that may stand beside such a phrase without saying more: by what, or for how long.
    """

    denied: re.Pattern[str]
    affirmed: re.Pattern[str]
    unknown: re.Pattern[str]
    untold: re.Pattern[str]
    beside: re.Pattern[str]


def _denials(denied: str, affirmed: str, unknown: str, untold: str, beside: str) -> DenialPatterns:
    return DenialPatterns(*(re.compile(pattern, re.I) for pattern in (denied, affirmed, unknown, untold, beside)))


_EN_NOT = r"(?:not|never|nowhere|(?:do|does|did|is|was|are|were|has|have|had|can|could)nt|cannot)"
_EN_SOURCE = (
    r"(?:conversations?|dialogues?|chats?|discussions?|texts?|contexts?|messages?|transcripts?|memor(?:y|ies)"
    r"|information|notes?|records?|logs?|history|users?|speakers?|participants?|assistants?|agents?|bots?|ai)"
)
_EN_TELL = (
    r"(?:say|mention|specify|state|provide|tell|indicate|include|contain|give|disclose|reveal|share|discuss|answer"
    r"|cover|clarify|explain)"
)
_EN_ADVERB = r"(?:explicitly|directly|clearly|specifically|actually|really|yet|ever|been|be|being|otherwise)"


DENIALS: dict[Language, DenialPatterns] = {
    "en": _denials(
        r"\b(?:not|never|no longer|cannot|without|stopped|quit|nobody|no one|none|neither|nowhere|hardly|barely"
        r"|refuse[sd]?|den(?:y|ies|ied)|no(?= [a-z]))\b|n['’]t\b",
        r"(?:can['’]?t|cannot|couldn['’]?t) (?:wait|help|stop|be|have|imagine|believe|agree more|complain)|not only"
        r"|never been (?:more|so|happier|better)|(?:n['’]t|not|never) \w+ (?:anything|anyone|anybody|nothing) but"
        r"|\bno (?:problem|doubt|worr(?:y|ies)|wonder|matter|kidding)\b|\bwhy (?:not|don['’]t)\b|\bnot bad\b"
        r"|,\s*\w+n['’]t (?:i|you|he|she|it|we|they|there|that)\s*\?",
        r"\b(?:unknown|unanswerable|undecided|forgotten|unspecified|undisclosed|unmentioned|unstated|tbd"
        rf"|(?:no longer|{_EN_NOT})(?: {_EN_ADVERB})* (?:known|mentioned|specified|stated|given|provided|available|sure"
        r"|decided|disclosed|indicated|revealed|answerable)"
        rf"|(?:not|isnt|arent|wasnt) (?:in|part of|found in|contained in|covered in) (?:my |our |your "
        rf"|any )?{_EN_SOURCE}"
        r"|(?:not|dont|doesnt|didnt) have (?:this |that |any |such |enough )*(?:info(?:rmation)?|data|details?"
        r"|answer|records?)"
        r"|not aware of (?:it|this|that)|no way (?:to|of) know(?:ing)?"
        r"|no (?:relevant |such |further |explicit )?(?:info(?:rmation)?|records?|answer|memory|memories|data"
        r"|idea|mention"
        r"|details?)"
        r"|(?:not enough|insufficient) (?:info(?:rmation)?|data|context|details?|evidence)"
        r"|(?:unable|impossible|not possible) to (?:tell|say|know|answer|determine|infer|find out)"
        rf"|nothing (?:is |was )?(?:(?:said|known|mentioned|recorded) )?(?:about|on) (?:it|this|that)"
        rf"|{_EN_SOURCE} (?:(?:do|does|did|has|have) not|(?:do|does|did)nt|never)(?: {_EN_ADVERB})* {_EN_TELL}s?"
        r"|(?:do not|dont|cannot|cant) (?:know|say|tell|be (?:answered|determined|inferred|known)|answer|determine))\b",
        rf"\b(?:{_EN_NOT}(?: {_EN_ADVERB})* (?:{_EN_TELL}|know|said|told|discussed|shared|recorded|covered|addressed"
        r"|clear|clarified|determined|found|talked about|brought up|noted|described)"
        r"|no one (?:says?|said|knows?|tells|told|mentions?|mentioned)|nobody (?:says?|said|knows?|tells|told"
        r"|mentions?|mentioned)|unclear|undetermined|indeterminate|not applicable|(?:does|did) not come up)\b",
        rf"\b(?:{_EN_SOURCE}|questions?|anyone|anybody|anywhere|anything|it"
        r"|address|location|place|names?|dates?|reasons?|info|details?|data|evidence|available|provided|given"
        r"|based|according|answer(?:ed)?|topic|subject"
        r"|history|yet|still|currently|anymore|explicitly|specific(?:ally)?|unfortunately|sorry)\b",
    ),
    "de": _denials(
        r"\b(?:nicht|nichts|nie|niemals|niemand(?:em|en)?|kein(?:e[mnrs]?)?|ohne|weder|kaum|nirgend(?:s|wo)?"
        r"|weiger\w+|aufgehört)\b",
        r"\bnicht (?:nur|bloß|wahr|umsonst|schlecht|übel)\b|kaum (?:ab|er)warten|\bkein(?:e|en)? (?:problem|zweifel"
        r"|wunder|sorge|frage)\b|\bohne (?:zweifel|frage|weiteres)\b|\bwarum nicht\b|,\s*nicht\s*\?",
        r"\b(?:unbekannt|unentschieden|nicht (?:näher )?(?:bekannt|erwähnt|angegeben|genannt|sicher|mitgeteilt"
        r"|verfügbar|ersichtlich|spezifiziert)|(?:keine|nicht genug|nicht genügend"
        r"|zu wenig) (?:näheren? )?(?:angaben?|information(?:en)?|infos?|antwort|daten"
        r"|erwähnung)|ungewiss|nicht (?:beantwortbar|bestimmbar|feststellbar|ermittelbar)"
        r"|lässt sich (?:\w+ ){0,4}nicht (?:sagen|ableiten|beantworten|bestimmen|feststellen|ermitteln|entnehmen)"
        r"|wei(?:ß|ss) (?:es |ich (?:es )?|das )?nicht|keine ahnung|geht (?:\w+ ){0,4}nicht hervor"
        r"|(?:gespräch|unterhaltung|dialog|chat|text) (?:sagt|erwähnt|nennt)(?: es| das)?(?: dazu| darüber)? nichts?"
        r"|kann (?:ich |man )?(?:es |das )?nicht (?:sagen|beantworten))\b",
        r"\b(?:(?:nichts?|nie(?:mals)?) (?:gesagt|erzählt|verraten|besprochen|bekannt|bestimmbar"
        r"|zu (?:ermitteln|bestimmen|erfahren)|angesprochen|thematisiert|klar|festgehalten)"
        r"|(?:sagt|erzählt|verrät|erwähnt|nennt)e?n?(?: es| das| sie| ihn)? (?:nicht|nie)|unklar"
        r"|niemand (?:sagt|wei(?:ß|ss)) \w+|offen(?: gelassen)?)\b",
        r"\b(?:gesprächs?|dialogs?|chats?|unterhaltung|texte?s?|kontext|nachrichten|fragen?|verfügbar|vorhanden"
        r"|nutzer\w*|benutzer\w*|sprecher\w*|dazu|darüber|hierzu|davon|nichts|leider|angegeben|angaben?|informationen?"
        r"|bisher|bislang|derzeit|wurde|wird|gibt)\b",
    ),
    "es": _denials(
        r"\b(?:no|nunca|jamás|nadie|ningun[oa]s?|ningún|sin|tampoco|apenas|dej[óa](?:ron)? de|se neg\w+)\b",
        r"\bno s[oó]lo\b|\bno solamente\b|\bno veo la hora\b|\bno hay (?:problema|duda)\b"
        r"|\bsin (?:duda|embargo|falta)\b|¿no\s*\?|\bno\s*\?|\bpor qué no\b|\bno est[áa] mal\b",
        r"\b(?:desconocid[oa]s?|indecis[oa]|no (?:lo )?(?:sé|sabe|sabemos|se sabe|consta)"
        r"|no (?:se|está|es|fue|ha sido|han sido) (?:ha )?"
        r"(?:menciona|indica|especifica|dice|proporciona|facilita)(?:do|da)?"
        r"|no (?:está |es |estaba )?(?:mencionad|especificad|indicad|proporcionad|facilitad|disponible)[oa]?s?"
        r"|no hay (?:suficientes? )?(?:información|datos|respuesta|mención)|(?:información|datos) insuficientes?"
        r"|imposible (?:de )?(?:saber|decir|determinar|responder)|sin (?:información|datos|especificar|respuesta)"
        r"|(?:conversación|texto|diálogo|chat) no (?:lo |la )?(?:dice|menciona|indica|especifica|aclara)"
        r"|no (?:puedo|se puede) (?:saber|decir|responder|determinar))\b",
        r"\b(?:no (?:lo |la |se )?(?:dice|dijo|cuenta|contó|menciona|mencionó|aclara|sabe|ha dicho|proporcionó"
        r"|especificó|indicó"
        r"|reveló|compartió|facilitó)"
        r"|nadie (?:lo |la )?(?:dice|dijo|sabe|menciona)|no está claro|sin aclarar)\b",
        r"\b(?:conversación|diálogo|chat|textos?|contexto|mensajes?|preguntas?|disponibles?|todavía|aún|actualmente"
        r"|usuari[oa]s?|hablantes?|información|datos|respuesta|ello|proporcionad[oa]s?)\b",
    ),
    "fr": _denials(
        r"\bne\b|\bn['’]|\b(?:pas|jamais|aucune?|sans|rien|refus\w+|arrêté de)\b",
        r"\bn(?:e |['’])\w+ que\b|\bnon seulement\b|\bpas (?:seulement|mal)\b|\b(?:n['’]y a )?pas de (?:problème|souci"
        r"|doute)\b|\bsans (?:doute|problème|faute|souci)\b|n['’]est-ce pas|\bpourquoi pas\b",
        r"\b(?:inconnue?s?|indécise?s?|(?:ne |n['’])?(?:sais|sait|savons) pas"
        r"|(?:pas|non|jamais) (?:été )?(?:mentionn|précis|indiqu|spécifi|communiqu|renseign|fourni)(?:és?|ées?|es?)?"
        r"|(?:pas|non) (?:connue?s?|sûre?s?|disponibles?)"
        r"|aucune (?:information|donnée|réponse|idée|mention)|pas (?:assez |suffisamment )?d(?:e |['’]"
        r"| )(?:informations?|réponse|données)|informations? insuffisantes?"
        r"|impossible (?:à|de) (?:dire|savoir|déterminer|répondre)"
        r"|(?:conversation|texte|dialogue|discussion) ne (?:le |la |l )?(?:dit|mentionne|précise|indique) pas"
        r"|ne (?:peux|peut) pas (?:dire|savoir|répondre|déterminer))\b",
        r"\b(?:ne (?:le |la |l )?(?:dit|raconte|mentionne|précise|sait) (?:pas|jamais)"
        r"|ne? (?:en )?(?:a|est) (?:pas|jamais) (?:été )?(?:dit|raconté|précisé|abordé|clair)"
        r"|personne ne (?:le |la |l )?(?:dit|sait|mentionne)|pas clair)\b",
        r"\b(?:conversation|dialogue|discussion|textes?|contexte|messages?|questions?|disponibles?|encore"
        r"|utilisat\w+|interlocut\w+|information|réponse|sujet|actuellement)\b",
    ),
}
