"""How each language asks to remember what is said, and what is said for courtesy: nothing that must be kept."""

from __future__ import annotations

import re

from attribution.text.languages.function_words import Language

_BEGINS = r"(?:(?<=^)|(?<=[.!?;:,(\n¿¡–—-])|(?<=[.!?;:,(\n¿¡–—-]\s))"
"""The beginning of a clause: elsewhere `remember` and `note` tell what somebody does."""


def _courtesies(request: str, remember: str, keep: str, that: str, ends: str, asides: str) -> re.Pattern[str]:
    """A pattern of what is left out.

    Args:
        request: words before what is requested: please, could you.
        remember: imperatives and infinitives that ask to remember.
        keep: those that do so only of `that`: save it.
        that: objects that mean what is said.
        ends: words after these: in mind, for me.
        asides: phrases that say nothing: by the way, thank you.
    """
    objects, ends = rf"(?:\s+(?:{that})\b)", rf"(?:,?\s+(?:{ends})(?!\w))*"
    requested = rf"(?:{remember})(?!\w){objects}*{ends}|(?:{keep})(?!\w){objects}+{ends}"
    # A verb is a request where a clause begins, or after words of request wherever they stand.
    orders = rf"(?:{_BEGINS}|\b(?:(?:{request}),?\s+)+)(?:{requested})"
    return re.compile(rf"{orders}|(?<!\w)(?:{asides})(?!\w)", re.IGNORECASE)


COURTESIES: dict[Language, re.Pattern[str]] = {
    "en": _courtesies(
        request=r"please|pls|plz|kindly|do|just|also|and|so|always|(?:can|could|would|will) you|you (?:should|must"
        r"|need to|can|may)"
        r"|i(?:'d| would)?(?: really)? (?:like|love|want|need) you to|(?:hope|trust|ask) (?:that )?you(?:'ll| can"
        r"| will)?"
        r"|make sure (?:that you|you|to)|be sure to|try to|it(?:'s| is| would be)?(?: very)? (?:important|good"
        r"|great|best)"
        r" (?:that you|if you(?: could| can)?|for you to|to)|i(?:'d| would) appreciate it if you(?: could| can)?",
        remember="remember|remind me|memori[sz]e|note|take note|make (?:a )?(?:mental )?note|keep in mind|bear in mind"
        "|(?:do not|don't|never) (?:ever )?(?:forget|lose track)",
        keep="save|store|record|keep|bear|write|jot|log|put|add|file",
        that="(?:of |about )?(?:that|this|it|these|them|the following)|down|in mind",
        ends=r"down|in mind|(?:to|in|into) (?:your |the )?(?:memory|notes|records)|for (?:me|us|later|next time"
        r"|the future"
        r"|future reference)|somewhere|on file|please|okay|ok|alright|will you|would you|thanks|from now on"
        r"|as well|too",
        asides=r"just so (?:that )?you(?:'re aware| know)|so (?:that )?you know|(?:just )?(?:letting"
        r"|to let) you know(?: that)?"
        r"|for your information|fyi|by the way|btw|for the record|for (?:your |future )*reference"
        r"|in case you(?:'re| were)?"
        r" (?:wondering|curious)|(?:as )?an? (?:quick |little |gentle |friendly )*reminder(?: that)?"
        r"|let me tell you(?: that)?"
        r"|i(?:'d| just| would)?(?: just)? (?:want(?:ed)?|like) (?:you to know|to (?:tell|remind"
        r"|let) you(?: know)?)(?: that)?"
        r"|you should know(?: that)?|(?:it's |it is )?(?:worth|important|good) (?:noting|knowing|to know"
        r"|to note)(?: that)?"
        r"|thank(?:s| you)(?: so| very)?(?: much| a lot| again| in advance)*(?: for (?:remembering|noting|saving"
        r"|storing"
        r"|keeping|recording|writing|listening|your help|understanding)(?: (?:that|this|it|down|in mind))*)?"
        r"|do you(?: still)? (?:remember|recall|know)|please|pls|plz|(?:hi|hello|hey|good (?:morning|afternoon"
        r"|evening))(?: there| again| everyone)?(?=\s*[,.!?]|$)",
    ),
    "de": _courtesies(
        request=r"bitte|mal|doch|auch|und|kannst du|könntest du|würdest du|willst du|können sie|könnten sie"
        r"|du (?:solltest|musst)"
        r"|(?:ich )?(?:möchte|will|bitte dich|hoffe)(?: nur)?,? dass du|es (?:ist|wäre) (?:wichtig|gut"
        r"|schön),? (?:dass|wenn) du",
        remember=r"merke? (?:dir|es dir)|merkt euch|merken sie sich|(?:dir )?(?:das "
        r"|es )?(?:bitte )?(?:zu )?merk(?:en|st)"
        r"|vergiss(?: (?:das|es|bitte|mir))* nicht|vergesst(?: (?:das|es|bitte))* nicht|vergessen sie(?: (?:das"
        r"|es|bitte))* nicht"
        r"|nicht vergessen|denke?(?: (?:bitte|immer|auch))* (?:daran|dran)|denken sie(?: bitte)? daran|beachte"
        r"|beachten sie"
        r"|erinnere? dich(?: bitte)? (?:daran|dran)",
        keep=r"behalte?|behalten sie|schreibe?|schreiben sie|halte?|halten sie|speichere?|speichern sie|notiere?"
        r"|notieren sie"
        r"|nimm|merke?",
        that="das|dies|es|dir|dich|mir|uns|euch|sich|bitte|mal|gut|unbedingt|folgendes",
        ends=r"bitte|gut|dass|das|es|im (?:kopf|hinterkopf|gedächtnis|sinn)|auf|fest|ab|für (?:mich|uns|später"
        r"|die zukunft"
        r"|das nächste mal)|in (?:deinen|den) (?:notizen|speicher)|zur kenntnis|ja|okay|ok|danke",
        asides=r"(?:nur )?(?:damit|dass) (?:du(?:'s| es| das)?|sie es) (?:weißt|wissen)|nur so nebenbei"
        r"|zur info(?:rmation)?"
        r"|zu deiner info(?:rmation)?|übrigens|nebenbei(?: bemerkt| gesagt)?|fürs protokoll|(?:nur )?(?:zur|als|eine)?"
        r"(?: kleine)? erinnerung|(?:du solltest|solltest du) wissen(?:, dass)?|ich wollte (?:dir|dich) (?:nur "
        r"|noch )*(?:sagen"
        r"|wissen lassen|daran erinnern)(?:, dass)?|(?:vielen |herzlichen )?dank(?:e)?(?: dir| ihnen| schön| sehr"
        r"| im voraus)*"
        r"(?: (?:fürs|für das) (?:merken|notieren|aufschreiben|speichern|zuhören|erinnern))?|weißt du(?: noch)?"
        r"|erinnerst du dich(?: noch)?(?: daran)?|bitte|(?:hallo|hi|hey|servus"
        r"|guten (?:morgen|tag|abend))(?: zusammen)?(?=\s*[,.!?]|$)",
    ),
    "es": _courtesies(
        request=r"por favor|y|también|siempre|puedes|podrías|puede|podría|deberías|debes|tienes que|quiero que"
        r"|quisiera que"
        r"|necesito que|espero que|me gustaría que|te pido que|asegúrate de|es importante que|sería bueno que",
        remember=r"recuerd[aeo]s?(?: que)?|recordar(?: que)?|recuérda(?:lo|la|me)|recuérde(?:lo|la|me)|recordarlo"
        r"|acuérd(?:ate|ese)(?: de)?(?: que)?|te acuerdes(?: de)?(?: que)?|(?:que )?no (?:te |se |lo )*olvid(?:es"
        r"|e|éis|ar)"
        r"(?: de)?(?: que)?|memori(?:za|ce)(?:s|lo)?|apúntal[oa]|apúntate|anótal[oa]|guárdal[oa]|regístral[oa]"
        r"|(?:tenl[oa]|téngal[oa]) (?:en (?:cuenta|mente)|presente)|ten(?:ga|gas)? (?:en cuenta|presente)(?: que)?"
        r"|tom[ae]s? nota(?: de)?(?: que)?",
        keep="apunt[ae]s?|anot[ae]s?|guard[ae]s?|registr[ae]s?|apuntar|anotar|guardar|escrib[ae]s?|escríbelo",
        that="(?:de )?(?:esto|eso|ello|lo siguiente|lo|que)",
        ends=r"por favor|bien|para (?:luego|después|más tarde|el futuro|la próxima(?: vez)?)|en tu (?:memoria|registro)"
        r"|vale|gracias|en cuenta|presente|que",
        asides=r"(?:solo |sólo )?para que (?:lo |te )?(?:sepas|conste)|que (?:lo )?sepas(?: que)?"
        r"|para tu información|por cierto"
        r"|dicho sea de paso|a propósito|como (?:un )?recordatorio|(?:solo |sólo )?(?:quería|quiero) (?:decirte"
        r"|contarte"
        r"|recordarte|que sepas)(?: que)?|debes saber(?: que)?|(?:muchas )?gracias(?: por (?:recordarlo|recordar"
        r"|anotarlo|apuntarlo"
        r"|guardarlo|acordarte|escuchar|tu ayuda))?|(?:te acuerdas|recuerdas|sabes)(?: de)?|de antemano|por favor"
        r"|(?:hola|buenos días|buenas (?:tardes|noches))"
        r"(?: a todos)?(?=\s*[,.!?]|$)",
    ),
    "fr": _courtesies(
        request=r"s'il (?:te|vous) plaît|stp|svp|et|aussi|toujours|peux-tu|pourrais-tu|tu (?:peux|pourrais|dois"
        r"|devrais)"
        r"|pouvez-vous|pourriez-vous|vous (?:pouvez|devez)|je (?:veux|voudrais|souhaite|aimerais) que tu"
        r"|j'aimerais que tu"
        r"|j'espère que tu|il faut que tu|il (?:est|serait) (?:important|bon) que tu|assure-toi de|veuillez|merci de",
        remember=r"souviens-toi|souvenez-vous|(?:te|vous|t'en) souven(?:ir|iez)|(?:te|t'en) souvien(?:nes|dras)"
        r"|rappelle-toi"
        r"|rappelez-vous|(?:te|vous) rappeler|n'oublie[sz]?(?:-le)? (?:pas|jamais)|ne (?:l')?oublie[sz]? pas"
        r"|ne pas oublier"
        r"|note[sz]?(?:-le|-la|-ça)?(?: bien)?|noter|retien(?:s|nes)(?:-le|-la)?|rete(?:nez|nir)(?:-le|-la)?"
        r"|mémorise[zr]?(?:-le)?"
        r"|enregistre[zr]?-l[ea]|garde[zr]?-l[ea]|pren(?:ds|ez|dre) (?:bien )?(?:en )?note",
        keep=r"garde[szr]?|conserve[szr]?|enregistre[szr]?|écris|écrivez|ajoute[szr]?|mets",
        that=r"(?:de )?(?:ça|cela|ceci|le|la|bien|ce qui suit)|que|qu'",
        ends=r"(?:s'il (?:te|vous) plaît)|bien|en (?:tête|mémoire)|à l'esprit|de côté|pour (?:moi|nous|plus tard"
        r"|l'avenir"
        r"|la prochaine fois)|dans (?:ta|votre) mémoire|d'accord|merci",
        asides=r"(?:juste )?pour (?:que tu (?:le )?saches|ta gouverne|ton information|info(?:rmation)?|rappel"
        r"|mémoire)|au fait"
        r"|soit dit en passant|(?:petit )?rappel|sache[sz]?(?: bien)?(?: que| qu')?|je (?:voulais|veux"
        r"|voudrais) (?:juste )?(?:te"
        r" (?:dire|rappeler|signaler)|que tu saches)(?: que| qu')?|(?:un grand |bien )?merci(?: (?:beaucoup|bien"
        r"|d'avance"
        r"|encore))*(?: de (?:t'en souvenir|le noter|le retenir|noter|retenir|m'écouter|ton aide))?"
        r"|(?:te souviens-tu|tu te souviens|sais-tu|tu sais)(?: de)?|s'il (?:te|vous) plaît|stp|svp"
        r"|(?:bonjour|bonsoir|salut|coucou)(?: à tous)?(?=\s*[,.!?]|$)",
    ),
}
