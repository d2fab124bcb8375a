"""What people are called for short in German, Spanish and French; English is the `nicknames` library's."""

from __future__ import annotations

from attribution.text.languages.function_words import Language

_GERMAN = """
    hans:johannes,johann hannes:johannes jo:johannes,johanna hanna:johanna sepp:josef,joseph beppo:josef jupp:josef
    steffi:stefanie,stephanie steffen:stefan uli:ulrich,ulrike uschi:ursula ulla:ursula,ulrike lena:magdalena,helena
    toni:anton,antonia gabi:gabriele,gabriela fritz:friedrich fiete:friedrich rudi:rudolf heinz:heinrich,karl-heinz
    heiner:heinrich willi:wilhelm,willibald susi:susanne,susanna sanne:susanne,susanna moni:monika christl:christine
    tina:christina,martina,bettina chris:christian,christina,christoph nele:cornelia conny:cornelia,konrad
    kurt:konrad bernd:bernhard jörg:georg schorsch:georg,jürgen franzi:franziska basti:sebastian bastian:sebastian
    wastl:sebastian lisa:elisabeth lisl:elisabeth sissi:elisabeth betti:elisabeth,bettina else:elisabeth
    trudi:gertrud gerti:gertrud,gertrude käthe:katharina kathi:katharina katja:katharina trine:katharina
    gitti:brigitte biggi:brigitte,birgit heidi:adelheid,heidemarie resi:theresa,therese leni:helene,magdalena
    hedi:hedwig manni:manfred matze:matthias hias:matthias michi:michael,michaela mäx:maximilian maxi:maximilian
    nik:nikolaus klaus:nikolaus,niklas niko:nikolaus,nikolas sascha:alexander,alexandra alex:alexander,alexandra
    xaver:franz-xaver vroni:veronika evi:eva marlies:marlise annette:anna anni:anna,anneliese bärbel:barbara
    babsi:barbara rosi:rosemarie,rosa sigi:siegfried,sigrid wolf:wolfgang wolfi:wolfgang geli:angelika
    angie:angelika,angela ralle:ralf,ralph kalle:karl lotte:charlotte charly:karl,charlotte
"""
_SPANISH = """
    pepe:josé pepito:josé chema:josé-maría pepa:josefa pepi:josefa,josefina fina:josefina
    paco:francisco pancho:francisco curro:francisco kiko:francisco,enrique fran:francisco,francisca paca:francisca
    paqui:francisca lola:dolores loli:dolores lolita:dolores nacho:ignacio charo:rosario kike:enrique quique:enrique
    maite:maría-teresa,maría mayte:maría-teresa,maría tere:teresa marisa:maría-luisa marisol:maría-soledad
    mari:maría maricarmen:maría-carmen menchu:carmen mamen:carmen concha:concepción conchi:concepción
    inma:inmaculada pilu:pilar pili:pilar chus:jesús,maría-jesús susi:susana chuy:jesús manolo:manuel
    manu:manuel,manuela lalo:eduardo edu:eduardo,eduarda beto:alberto,roberto,humberto tito:alberto,roberto
    memo:guillermo guille:guillermo toño:antonio toni:antonio,antonia nando:fernando fer:fernando,fernanda
    rafa:rafael,rafaela santi:santiago yago:santiago diego:santiago gabi:gabriel,gabriela lucho:luis luisito:luis
    juanjo:juan-josé juanma:juan-manuel juanito:juan alex:alejandro,alejandra sandra:alejandra ale:alejandro,alejandra
    jandro:alejandro moncho:ramón monchi:ramón nico:nicolás isa:isabel,isabela chabela:isabel bea:beatriz
    cris:cristina,cristóbal tina:cristina,martina,valentina quino:joaquín ximo:joaquín chimo:joaquín
    goyo:gregorio tavo:gustavo gus:gustavo javi:javier migue:miguel nuri:nuria merche:mercedes meche:mercedes
    lupe:guadalupe asun:asunción chelo:consuelo consu:consuelo vicky:victoria vero:verónica rosi:rosa,rosario
"""
_FRENCH = """
    manu:emmanuel,emmanuelle,manuel fred:frédéric,frédérique,alfred nico:nicolas,nicole dédé:andré,désiré
    gégé:gérard véro:véronique théo:théodore,théophile cath:catherine cathy:catherine kiki:christiane,christian
    chris:christophe,christian,christine titi:thierry,christian jo:joseph,joël,joëlle,georges jojo:joseph,georges
    mimi:michel,michèle,mireille,marie momo:maurice,mohamed riton:henri bébert:albert,robert,hubert bob:robert
    béa:béatrice isa:isabelle babeth:élisabeth betty:élisabeth lise:élisabeth lili:élisabeth,liliane
    margot:marguerite ninon:anne nanou:anne nanette:anne annette:anne manon:marie marion:marie
    mado:madeleine madou:madeleine lolo:laurent,laurence louison:louis,louise loulou:louis,louise toinou:antoine
    tonio:antoine toine:antoine alex:alexandre,alexandra,alexis sacha:alexandre sandra:alexandra sandrine:alexandra
    max:maxime,maximilien seb:sébastien bastien:sébastien steph:stéphane,stéphanie fanny:stéphanie,françoise
    françou:françoise fanfan:françois,françoise fanchon:françoise flo:florence,florent,florian
    caro:caroline,carole ced:cédric phil:philippe fifi:philippe,philippine pierrot:pierre
    jeannot:jean yannick:jean jacquot:jacques charlot:charles guigui:guillaume guitou:guy willy:guillaume
    domi:dominique dom:dominique,dominic juju:julien,julie,justine jules:julien vincé:vincent rémi:rémy
    greg:grégory,grégoire ben:benoît,benjamin benji:benjamin mat:mathieu,matthieu mathis:mathieu
    zabeth:élisabeth nini:eugénie,virginie gigi:ghislaine,virginie tati:tatiana clem:clément,clémence
    aurel:aurélien,aurélie val:valérie,valentin,valentine
"""

_NAMES: dict[Language, str] = {"de": _GERMAN, "es": _SPANISH, "fr": _FRENCH}

FORMAL_NAMES: dict[Language, dict[str, frozenset[str]]] = {
    language: {
        short: frozenset(formal.split(",")) for short, _, formal in (entry.partition(":") for entry in names.split())
    }
    for language, names in _NAMES.items()
}
"""By language, what a nickname can be short for; both casefolded, names of two words with a hyphen."""
