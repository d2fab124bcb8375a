"""Given names that are common words, too: will, mark and rose, in the languages that are read."""

from __future__ import annotations

from attribution.text.languages.function_words import FUNCTION_WORDS

_ENGLISH = """
    amber angel april archer aria art ash august autumn bailey bay belle bill bishop blaze bob brook buck bud
    candy carol cash charity chase cherry chip christian clay cliff colt constance cookie coral crystal daisy
    dale dawn dean destiny dick dolly don dot drake drew duke earl earnest eve faith felicity fern forest fox
    frank gay gene genesis ginger glen grace grant guy happy harmony harry haven hawk hazel heath heather heaven
    holly honey honor honour hope hunter iris ivy jack jade jasmine jay jimmy john josh joy judge june justice
    king lake lance lane lark lily major mark marshal max may melody mercy merry mike miles miller misty nick
    noble norm north olive opal page parker pat patience patty pearl peg penny peter pierce piper polly porter
    price prince prudence rain ray reed rich river rob robin rock rod rose rosemary royal ruby rush rusty sage
    sally sandy serenity sky skip star sterling stone storm sue sugar summer sunny tab tanner toby tom trace
    trinity trip tucker van verity victor viola violet wade ward warren west wiley will winter wolf wren
"""
_GERMAN = "ernst heide mark wolf rose christian engel viola stern falk hagen luft max"
_SPANISH = """
    ángel angustias blanca cielo clara consuelo cruz dolores esperanza estrella flor gloria jacinto justo leal luz mar
    mercedes milagros nieves olvido paloma paz pilar reyes rocío rosa rosario sol soledad trinidad valle
"""
_FRENCH = """
    aimé aimée ange aurore blanche claire clément constant désirée fleur franc gentil honoré juste lys marguerite
    olive olivier parfait pascal perle pierre prudence reine rose sage sylvestre violette
"""

WORD_NAMES = frozenset(f"{_ENGLISH} {_GERMAN} {_SPANISH} {_FRENCH}".casefold().split()).union(*FUNCTION_WORDS.values())
"""Names that are words, casefolded; function words among them, since any may be a name: Will, May, Don."""
