"""The words of each language that carry no content, and by which the language is known."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "de", "es", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "fr")

_ENGLISH = """
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs this that these
    those who whom whose which what when where why how is am are was were be been being do does did done have has had
    having will would shall should can could may might must and or but if so than then too very just also of at by for
    with about into to from in on off out over up down as not no nor s t im ive id ill thats dont didnt doesnt isnt
    there here some any all more most much many such own same other both each only now ever never
    name named names called call the a an
"""
_GERMAN = """
    ich mich mir mein meine meinen meinem meiner meines du dich dir dein deine deinen deinem deiner deines er ihn ihm
    sein seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es wir uns unser unsere unseren unserem
    unserer euch euer eure der die das den dem des ein eine einen einem einer eines dieser diese dieses diesen diesem
    jener jene jenes wer wen wem wessen was welche welcher welches welchen welchem wann wo wohin woher warum wieso wie
    bin bist ist sind seid war warst waren wart gewesen habe hast hat haben habt hatte hatten hattest gehabt werde
    wirst wird werden wurde wurden worden würde würden würdest kann kannst können könnte könnten konnte konnten muss
    müssen musste mussten soll sollen sollte sollten will willst wollen wollte wollten darf dürfen möchte möchten und
    oder aber sondern wenn ob dass weil so als dann auch sehr nur noch schon doch mal ja nein von vom zu zum zur an am
    auf aus bei beim für mit nach über unter um in im ins durch gegen ohne vor seit bis nicht kein keine keinen keinem
    keiner nie niemals da dort hier alle alles etwas mehr viel viele wieviel man sich selbst selber heißt heissen heisst
    heißen hieß hiess nennt nennen genannt name namens
"""
_SPANISH = """
    yo me mi mis mí conmigo tú te ti tu tus él lo la le se su sus ella ello nosotros nosotras nos nuestro nuestra
    nuestros nuestras vosotros os vuestro vuestra ellos ellas los las les usted ustedes este esta esto estos estas ese
    esa eso esos esas aquel aquella aquello aquellos el un una unos unas uno quién quien quienes cuál cuáles qué que
    cuándo cuando dónde donde por porqué para cómo como cuánto cuánta cuántos cuántas soy eres es somos son era eras
    eran ser sido fue fueron estoy estás está estamos están estaba estaban estar estado he has ha hemos han había
    habían haber hay hubo voy vas va vamos van y e o u pero sino si sí no ni nunca de del al a con en desde hasta sobre
    entre hacia sin muy más mucho mucha muchos muchas tan también solo sólo ya ahí aquí allí todo toda todos todas algo
    algún alguna algunos algunas otro otra otros otras mismo misma pues así cada llama llaman llamado llamada nombre
    tuyo mío suyo
"""
_FRENCH = """
    je j me m moi mon ma mes tu te t toi ton ta tes il lui elle on se s soi son sa ses nous notre nos vous votre vos
    ils elles eux leur leurs le la l les un une des du de d ce c cet cette ces ça cela ceci qui que qu quoi quel quelle
    quels quelles quand où pourquoi comment combien est es suis sommes êtes sont était étaient étais été être sera fut
    ai as a avons avez ont avait avaient avoir eu aura vais va allons allez vont et ou mais donc or ni si oui non ne n
    pas jamais à au aux avec en dans par pour sur sous sans chez entre vers depuis très plus moins aussi trop peu
    beaucoup bien tout toute tous toutes quelque quelques autre autres même mêmes y là ici alors puis appelle appelé
    appelée nom nommé nommée lorsque comme
"""

_ITALIAN = """
    io mi mio mia miei mie tu ti tuo tua suo sua lui lei noi ci nostro nostra voi vi loro il lo la i gli le l un uno una
    di a da in con su per tra fra del della dei degli delle dello al alla ai alle allo dal dalla nel nella nei nelle sul
    sulla e ed o ma se che chi cosa come dove quando perché quale quanto quanti non no sì sono sei è siamo siete era
    erano stato stata essere ho hai ha abbiamo hanno aveva avuto avere questo questa quello quella molto più anche
    già si anni anno d c
"""
_PORTUGUESE = """
    eu me mim meu minha meus minhas tu te teu tua você vocês ele ela eles elas nós nos nosso nossa lhe seu sua seus suas
    dele dela o a os as um uma uns umas de do da dos das em no na num numa ao à aos às pelo pela por para com sem sobre
    até e ou mas se que quem qual quais como onde quando quanto quantos porque porquê não sim nem sou és é são somos era
    eram fui foi foram ser estou está estão estava tenho tem têm tinha ter havia há isso isto este esta esse essa aquele
    aquela muito mais também já ainda ano
"""
_ROMANIAN = """
    eu mă mi tu te el ea noi ne voi vă ei ele un o unei unui de la în pe cu din pentru și sau dar că ce cine unde când
    cum care sunt ești este e suntem am ai are avem au a era fost mea meu mele mei lui nu da se s al ale cel cea mai
"""
_DUTCH = """
    ik me mij mijn je jij jouw u hij hem zijn zij ze haar wij we ons onze jullie hun de het een en of maar dat die dit
    deze wat wie waar wanneer waarom hoe welke is ben bent was waren heb heeft had hebben hebt ging van in op met voor
    naar bij aan om uit over niet geen ook nog al er dan als nu heet
"""
_SCANDINAVIAN = """
    jag jeg mig meg min mitt du dig deg din han hon hun vi oss os ni de dem en ett et den det och og eller men att at
    som vad hva hvad vem hvem var hvor när når hur hvordan är er blev ble har hade havde i på av af til till med för for
    om från fra inte ikke mina mine sin heter hedder
"""
NEAR_FUNCTION_WORDS = tuple(
    frozenset(words.split()) for words in (_ITALIAN, _PORTUGUESE, _ROMANIAN, _DUTCH, _SCANDINAVIAN)
)
"""The same of languages that are not read, but share many words with one that is."""

FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    language: frozenset(words.casefold().split())
    for language, words in zip(LANGUAGES, (_ENGLISH, _GERMAN, _SPANISH, _FRENCH), strict=True)
}
"""By language the words without content, casefolded."""
