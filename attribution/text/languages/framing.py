"""What people put around an answer without saying more: that they think so, and where they have it from."""

from __future__ import annotations

import re

from attribution.text.languages.function_words import Language


def _frames(begin: str, end: str) -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:(?:{begin})\b[\s,:]*)+(?=\w)|[\s,(–—-]+(?:{end})\)?[\s.!]*$", re.IGNORECASE)


_EN_AS_FAR = (
    r"as far as (?:I|we) (?:can (?:tell|see|remember|say)|know|recall|remember|understand)|to my knowledge"
    r"|if I(?:['’]m| am) not mistaken|if I (?:remember|recall)(?: (?:correctly|right|rightly))?"
    r"|from what I (?:can tell|remember|know|gathered?|see)|as I (?:recall|remember)"
    r"|I (?:think|believe|guess)"
    r"|(?:according to|based on|from) (?:the|our|their|my) (?:conversations?|chat|context|memor(?:y|ies)|messages?"
    r"|dialogue|information|notes)|it (?:seems|appears)|apparently|I(?:['’]m| am) (?:fairly|pretty|quite) sure"
)
_DE_AS_FAR = (
    r"(?:so ?weit|so ?viel) ich (?:wei(?:ß|ss)|sehe|sehen kann|mich erinnere)|meines Wissens|wenn ich mich nicht irre"
    r"|wenn ich mich (?:richtig|recht) erinnere"
    r"|(?:laut|nach) (?:dem Gespräch|der Unterhaltung|dem Chat|dem Kontext|den Erinnerungen)|ich (?:glaube|denke|meine)"
    r"|glaube ich|denke ich|anscheinend|offenbar"
)
_ES_AS_FAR = (
    r"(?:hasta donde|por lo que|que) (?:yo )?(?:sé|sepa|recuerdo)|si no me equivoco|si mal no recuerdo"
    r"|si no recuerdo mal"
    r"|(?:según|de acuerdo con) (?:la"
    r" conversación|el chat|el contexto|los recuerdos)|(?:yo )?creo(?: que)?|al parecer|parece que"
)
_FR_AS_FAR = (
    r"(?:autant|pour autant) que je (?:sache|m['’]en souvienne)|à ma connaissance|si je ne me trompe(?: pas)?"
    r"|si je me souviens bien"
    r"|(?:selon|d['’]après) (?:la conversation|le chat|le contexte|les souvenirs)"
    r"|je (?:crois|pense)(?: que)?|apparemment"
)
FRAMES: dict[Language, re.Pattern[str]] = {
    "en": _frames(
        rf"{_EN_AS_FAR}|(?:the|my) answer (?:is|would be|should be)|it(?:['’]s| is| was| would be)"
        r"|that(?:['’]s| is| was)",
        _EN_AS_FAR,
    ),
    "de": _frames(rf"{_DE_AS_FAR}|die Antwort (?:ist|lautet)|(?:es|das) (?:ist|war|wäre)", _DE_AS_FAR),
    "es": _frames(rf"{_ES_AS_FAR}|la respuesta es|(?:es|fue|era)", _ES_AS_FAR),
    "fr": _frames(rf"{_FR_AS_FAR}|la réponse est|c['’](?:est|était)", _FR_AS_FAR),
}
"""By language, what stands before and after an answer."""
POSSESSIVE: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\b(?:my|your|his|her|its|our|their)\b", re.IGNORECASE),
    "de": re.compile(r"\b(?:mein|dein|sein|ihr|unser|euer|eur)(?:e[mnrs]?)?\b", re.IGNORECASE),
    "es": re.compile(r"\b(?:mis?|tus?|sus?|nuestr[oa]s?|vuestr[oa]s?)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(?:mon|ma|mes|ton|ta|tes|son|sa|ses|notre|nos|votre|vos|leurs?)\b", re.IGNORECASE),
}
"""Words that stand for the owner's name: her uncle, Nora's uncle."""
