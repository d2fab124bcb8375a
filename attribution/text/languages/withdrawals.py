"""How each language takes something back: what no longer holds, and orders to forget what was said."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attribution.text.languages.function_words import Language


@dataclass(frozen=True, slots=True)
class WithdrawalPatterns:
    """Patterns of one language.

    Attributes:
        ended: phrases that always say that something no longer holds.
        order: imperatives of the verbs of removal, where a clause begins or after words of request.
        statement: objects that mean what was said: that, what I told you.
        removal: all forms of the verbs of removal, without those that only report: forgot, ignored.
        facts: what can be said and taken back: an address, a statement, a plan.
        keeping: verbs with which something is kept.
        hidden: how it is kept.
    """

    ended: re.Pattern[str]
    order: re.Pattern[str]
    statement: re.Pattern[str]
    removal: re.Pattern[str]
    facts: re.Pattern[str]
    keeping: re.Pattern[str]
    hidden: re.Pattern[str]

    def take_back(self, clause: str, *, denied: bool) -> bool:
        """Whether a clause takes something back. What it denies (don't forget my address!) is not taken back."""
        if self.ended.search(clause):
            return True
        ordered = self.order.search(clause) is not None and self.statement.search(clause) is not None
        removed = self.removal.search(clause) is not None and self.facts.search(clause) is not None
        about = self.keeping.search(clause) is not None or self.facts.search(clause) is not None
        return not denied and (ordered or removed or (about and self.hidden.search(clause) is not None))


def _withdrawals(
    ended: str, request: str, order: str, statement: str, removal: str, facts: str, keeping: str, hidden: str
) -> WithdrawalPatterns:
    order = rf"(?:^\W*|[,:]\s*|\b(?:{request}),?\s+)(?:{order})\b"
    some = [rf"\b(?:{removal})\b|{order}", rf"\b(?:{facts})\b", rf"\b(?:{keeping})\b", rf"\b(?:{hidden})"]
    patterns = (re.compile(pattern, re.I) for pattern in (rf"\b(?:{ended})\b", order, rf"\b(?:{statement})", *some))
    return WithdrawalPatterns(*patterns)


_END = r"(?=\s*(?:$|[,.!?:;]|please\b|now\b|from\b|again\b))"

WITHDRAWALS: dict[Language, WithdrawalPatterns] = {
    "en": _withdrawals(
        ended=r"no longer|(?:not|n['’]t)\b[^.;]*\b(?:any ?more|any longer)"
        r"|chang\w+ (?:my|your|his|her|our|their) minds?"
        r"|(?:take|takes|taking|took|taken) (?:it|that|this|(?:what|everything)\b[^.;]*"
        r"|(?:my|his|her|their) words?) back"
        r"|(?:take|takes|taking|took|taken) back (?:what|that|it|this|everything)|cancel\w*|call(?:s|ed|ing)? off"
        r"|retract\w*|unsaid|off the record|undecided|unknown|scratch (?:that|this|it)|strike (?:that|this|it)"
        r"|never ?mind (?:what|that|the)|pretend (?:that )?(?:i|we) never|forget (?:that )?(?:i|we) (?:ever )?\w+"
        r"|(?:wipe|erase|delete|remove|strike|struck)\w*\b[^.;]*\bfrom (?:your|the|my|its|our|all) (?:memor|record"
        r"|note|file)\w+"
        r"|(?:want|ask|prefer|wish|like)\w*\b[^.;]*\b(?:forgotten|erased|deleted|unsaid|stricken)",
        request=r"please|kindly|just|now|actually|let['’]s|(?:can|could|would) you|you (?:can|should|may)"
        r"|(?:me|you|us|assistant|system) to|(?:ask|want|request|need|prefer)(?:s|ed)?(?: \w+){0,2} to"
        r"|would like(?: \w+)? to",
        order="forget|erase|delete|disregard|ignore|scratch|strike|withdraw|drop|discard|remove",
        statement=rf"(?:that|this|it){_END}|about (?:it|that|this|what)\b"
        r"|what(?:ever)? \w+ (?:\w+ )?(?:said|told|wrote|mentioned|shared|asked)\b",
        removal="forgotten|eras(?:e[sd]?|ing)|delet(?:e[sd]?|ing)|remov(?:e[sd]?|ing)|disregard(?:s|ed)?"
        "|dropped|discard(?:s|ed)?|withdr(?:ew|awn|aws?)|struck|stricken",
        facts="address(?:es)?|(?:phone |telephone )?numbers?|e-?mails?|birthday|salary|statements?|remarks?|comments?"
        "|claims?|requests?|information|info|details?|facts?|data|records?|entr(?:y|ies)|memor(?:y|ies)|mentions?"
        "|messages?|answers?|plans?|ideas?|appointments?|names?",
        keeping="keep|keeps|kept|keeping|stay|stays|remain|remains",
        hidden=r"(?<!in )(?:private|secret|confidential)(?! \w+(?<!and)(?<!for)(?<!from)(?<!now)(?<!until)\b)",
    ),
    "de": _withdrawals(
        ended=r"nicht (?:mehr|länger)|kein(?:e[mnrs]?)? mehr|abgesagt|sag(?:e|t|te|ten)\b[^.;]*\bab"
        r"|storniert|annulliert"
        r"|nehm\w* zurück|n(?:ehm\w*|immt|ahm) (?:das|es|alles|mein\w*|sein\w*|ihr\w*)\b[^.;]*\bzurück|zurückgenommen"
        r"|widerr(?:uf|ief)\w*|tu[et]? (?:\w+ )?so,? als (?:hätte|ob)"
        r"|(?:möchte|will|wollte|wünscht|bittet|bat)\w*\b[^.;]*\b(?:vergessen|gelöscht|gestrichen) (?:wird|werden"
        r"|wissen)"
        r"|(?:lösch|streich|entfern)\w*\b[^.;]*\baus (?:deine|dem|den|meine|ihre)\w* (?:gedächtnis|speicher|notizen"
        r"|akten)"
        r"|anders überlegt|meinung geändert|unentschieden|unbekannt",
        request="bitte|dann|also|nun|jetzt|einfach",
        order="vergiss|vergesst|vergessen sie|streiche?|streicht|streichen sie|lösche?|löscht|löschen sie|ignoriere?"
        "|ignorieren sie|entferne|entfernen sie",
        statement=r"(?:das|dies|es)(?=\s*(?:$|[,.!?:;]|bitte\b|wieder\b|aus\b))|was\b[^.;]*\b(?:sag|erzähl|schr[ie]+b"
        r"|erwähn)\w*"
        r"|was\b[^.;]*\bge(?:sagt|schrieben)\b",
        removal="gelöscht|löschen|gestrichen|streichen|entfernt|entfernen|zurückgezogen|zurückziehen|zieht|zog"
        "|verworfen"
        "|vergessen (?:werden|wird|wurde)",
        facts=r"adressen?|\w*nummern?|angaben?|aussagen?|bemerkung(?:en)?|äußerung(?:en)?|einträge?|eintrag"
        r"|notiz(?:en)?"
        r"|pl[aä]ne?|ideen?|information(?:en)?|daten|antwort(?:en)?|gehalt|namen?|e-?mails?|geburtstag|termine?",
        keeping=r"bleib\w*|behalt\w*|behält|gehalten|behandel\w*",
        hidden=r"(?:privat|geheim|vertraulich)\b",
    ),
    "es": _withdrawals(
        ended=r"ya no|cambi\w+ de (?:opinión|idea|parecer)|cancel(?:ad[oa]s?|ó|aron|ar|amos|an?|é)"
        r"|anul(?:ad[oa]s?|ó|ar)|(?:me|se) retract[oó]|desconocid[oa]s?|indecis[oa]s?|retir[oóa]\w* lo que"
        r"|(?:haz|hagan?|hacer) como si (?:no|nunca)|(?:borr|elimin|quit)\w*\b[^.;]*\bde (?:tu|su|la|tus"
        r"|sus) (?:memoria|notas|registros?)"
        r"|(?:quiere|pid|prefer|dese)\w*\b[^.;]*\b(?:olvidad|borrad|eliminad)[oa]s?|olvíd\w+",
        request="por favor|entonces|ahora|mejor|y|que se",
        order="olvida|olvide|olviden|borra|borre|borren|bórral[oa]s?|elimina|elimine|eliminen|ignora|ignore|tacha"
        "|descarta",
        statement=r"(?:eso|esto)\b|lo que\b[^.;]*\b(?:dij\w+|dicho|cont\w+|escrib\w+|mencion\w+)",
        removal="borrar|borrad[oa]s?|borró|eliminar|eliminad[oa]s?|eliminó|retirar|retirad[oa]s?|retiró|descartar"
        "|descartad[oa]s?|olvidar",
        facts="direcci(?:ón|ones)|números?|teléfonos?|declaraci(?:ón|ones)|comentarios?|datos?|información|plan(?:es)?"
        "|ideas?|notas?|mensajes?|respuestas?|sueldo|salario|nombres?|correos?|citas?|cumpleaños",
        keeping=r"qued\w+|manten\w+|mantien\w+|permane\w+|guard\w+|sea",
        hidden=r"(?:(?:en )?(?:privad|secret)[oa]s?|confidencial(?:es)?)\b",
    ),
    "fr": _withdrawals(
        ended=r"n(?:e |['’])\w+(?: \w+)? plus(?! (?:que|de \d))|chang\w+ d['’](?:avis|idée)|annul(?:ée?s?|er|e|ons|ez)"
        r"|(?:me|se) rétract\w+|retir\w+ ce qu|(?:fais|faites|faire) comme si"
        r"|(?:effac|supprim|ray)\w*\b[^.;]*\bde (?:ta|votre|sa|la|tes|vos) (?:mémoire|notes?|dossiers?)"
        r"|(?:veut|souhaite|demand|préfèr)\w*\b[^.;]*\b(?:oubliée?s?|effacée?s?|supprimée?s?)|inconnue?s?|indécise?s?",
        request="(?:te|vous) plaît|alors|donc|maintenant|et|veuillez",
        order="oublie|oubliez|efface|effacez|supprime|supprimez|ignore|ignorez|raye|rayez",
        statement=r"(?:ça|cela|ceci)\b|ce qu(?:e |['’])[^.;]*\b(?:dit|dis|raconté|écrit|mentionné)\b",
        removal="effacer|effacée?s?|supprimer|supprimée?s?|retirer|retirée?s?|oublier",
        facts="adresses?|numéros?|téléphones?|déclarations?|remarques?|données?|informations?|plans?|idées?|projets?"
        "|messages?|réponses?|salaires?|noms?|e-?mails?|rendez-vous|anniversaires?",
        keeping=r"rest\w+|gard\w+|demeur\w+|soit",
        hidden=r"(?:privée?s?|secr(?:et|ète)s?|confidentiel\w*)\b",
    ),
}
