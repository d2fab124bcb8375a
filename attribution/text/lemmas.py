"""Forms of one word that endings do not show: irregular verbs and plurals, and colloquial synonyms."""

from __future__ import annotations

_IRREGULAR = """
    be:been go:went,gone come:came take:took,taken give:gave,given get:got,gotten make:made buy:bought bring:brought
    think:thought teach:taught catch:caught seek:sought find:found tell:told sell:sold feel:felt keep:kept sleep:slept
    leave:left meet:met lead:led read:read send:sent spend:spent lend:lent build:built lose:lost win:won sit:sat
    stand:stood understand:understood hear:heard hold:held run:ran swim:swum,swam sing:sang,sung ring:rang,rung
    drink:drank,drunk begin:began,begun see:saw,seen eat:ate,eaten fall:fell,fallen speak:spoke,spoken
    break:broke,broken choose:chose,chosen wake:woke,woken write:wrote,written drive:drove,driven ride:rode,ridden
    rise:rose,risen grow:grew,grown know:knew,known throw:threw,thrown draw:drew,drawn fly:flew,flown wear:wore,worn
    forget:forgot,forgotten hide:hid,hidden bite:bit,bitten do:did,done say:said pay:paid fight:fought hang:hung
    dig:dug stick:stuck shine:shone shoot:shot steal:stole,stolen freeze:froze,frozen become:became mean:meant
    learn:learnt dream:dreamt die:dying lie:lying tie:tying
    child:children,kid,kids person:people,persons,individual,individuals,folk,folks man:men woman:women foot:feet
    tooth:teeth mouse:mice goose:geese life:lives wife:wives knife:knives leaf:leaves half:halves shelf:shelves
    mother:mom,moms,mum,mums,mommy,mama father:dad,dads,daddy,papa grandmother:grandma,granny,nana
    grandfather:grandpa,granddad brother:bro sister:sis photo:photos,photograph,photographs,pic,pics,picture,pictures
    bicycle:bike,bikes television:tv,telly telephone:phone,phones movie:film,films,movies vacation:holiday,holidays
    good:better,best bad:worse,worst
"""
LEMMAS = {
    form: lemma
    for lemma, _, forms in (entry.partition(":") for entry in _IRREGULAR.split())
    for form in forms.split(",")
}
"""Form → the word it is a form of."""
