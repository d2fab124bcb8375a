"""Given names that are common words, too: will, mark and rose, in the languages that are read."""

from __future__ import annotations

from attribution.text.languages.function_words import FUNCTION_WORDS

_ENGLISH = """
    ace amber angel april archer aria art ash august autumn bailey baker basil bay belle bill bishop blaze bliss
    bob brook buck bud butler candy carol carter case cash chance charity chase cherry chip christian clay cliff
    colt constance cook cookie coral crystal daisy dale dawn dean destiny dick dolly don dot drake drew duke
    earl earnest eve faith felicity fern forest fox frank gay gene genesis ginger glen grace grant guy happy
    harmony harry haven hawk hazel heath heather heaven holly honey honor honour hope hunter iris ivy jack jade
    jasmine jay jimmy john josh joy judge june justice key king lake lance lane lark lily long lucky major mark
    marshal mason max may melody mercy merry mike miles miller misty nick noble norm north olive opal page
    parker pat patience patty pearl peg penny peter pierce piper polly poppy porter price prince prudence rain
    ray reed rich river rob robin rock rod rose rosemary royal ruby rush rusty sage sally sandy serenity skip
    sky song star sterling stone storm sue sugar summer sunny tab tanner toby tom trace trinity trip tucker van
    verity victor viola violet wade ward warren west wiley will willow winter wolf wren young
"""
_GERMAN = "ernst heide mark wolf rose christian engel viola stern falk hagen luft max"
_SPANISH = """
    alba alma amor ángel angustias aurora blanca cielo clara consuelo cruz dolores esperanza estrella flor
    gloria jacinto justo leal luna luz mar mercedes milagros nieves olvido paloma paz pilar reyes remedios rocío
    rosa rosario salvador socorro sol soledad trinidad valle victoria
"""
_FRENCH = """
    aimé aimée ange aurore blanche claire clément constant désirée fleur franc gentil honoré juste lys marguerite
    olive olivier parfait pascal perle pierre prudence reine rose sage sylvestre violette
"""

WORD_NAMES = frozenset(f"{_ENGLISH} {_GERMAN} {_SPANISH} {_FRENCH}".casefold().split()).union(*FUNCTION_WORDS.values())
"""Names that are words, casefolded; function words among them, since any may be a name: Will, May, Don."""
