"""What people tell about themselves: in which words it is said, stored and asked, and with which values."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    *("Aino", "Bastian", "Corentin", "Dagny", "Eamon", "Frauke", "Giulia", "Hanneke", "Isaac", "Jolanta", "Kasimir"),
    *("Leocadia", "Marisol", "Nikolai", "Odile", "Pascal", "Quirin", "Rosalind", "Stellan", "Thora", "Ugo", "Violeta"),
    *("Wanda", "Ximena", "Ysolde", "Zdenek"),
)

IDLE = (
    "How have you been lately?",
    "Nothing much going on here, the weather is dull.",
    "Ha, that sounds like you.",
    "Good to hear. Let us talk again soon.",
    "Sorry for the late reply, the week was long.",
    "I see what you mean.",
)
"""Turns that tell nothing that is asked."""


@dataclass(frozen=True)
class Matter:
    """Something a person has one value of.

    Attributes:
        name: of the matter.
        spoken: what the person says, with `{v}`.
        changed: what the person says when it has changed.
        stored: what a model may extract of it, with `{who}` and `{v}`; the words differ from what is said.
        asked: the question, with `{who}`.
        near: entries that are about the same words as the question and do not answer it, with `{other}`.
        values: of the matter.
    """

    name: str
    spoken: tuple[str, ...]
    changed: str
    stored: tuple[str, ...]
    asked: str
    near: tuple[str, ...]
    values: tuple[str, ...]


MATTERS = (
    Matter(
        "trade",
        ("I work as a {v}, mostly outdoors.", "Being a {v} is hard on the back, I can tell you."),
        "I gave up my old trade, these days I am a {v}.",
        ("{who} works as a {v}.", "{who} earns a living as a {v}."),
        "What does {who} do for a living?",
        ("{other} wonders what {who} does for a living.", "{who} and {other} spoke about making a living."),
        ("farrier", "cooper", "glazier", "beekeeper", "tiler", "luthier", "roofer", "baker", "surveyor"),
    ),
    Matter(
        "town",
        ("We have lived in {v} since the spring.", "My flat in {v} is small, but the stove works."),
        "I moved, my new place is in {v}.",
        ("{who} lives in {v}.", "{who}'s home is in {v}."),
        "Where does {who} live?",
        ("{other} plans to visit the place where {who} lives.", "{who} lives near a river, says {other}."),
        ("Bergen", "Lublin", "Girona", "Tartu", "Namur", "Perugia", "Aarhus", "Graz", "Cork"),
    ),
    Matter(
        "dog",
        ("My dog {v} chewed up the sofa again.", "I got a puppy, she answers to {v}."),
        "We renamed the dog, it is {v} now.",
        ("{who} has a dog called {v}.", "The dog of {who} is named {v}."),
        "What is the name of {who}'s dog?",
        ("{other} likes {who}'s dog.", "{other} forgot the name of {who}'s dog."),
        ("Biscuit", "Pickle", "Nacho", "Waffle", "Truffle", "Mocha", "Clover", "Pepper", "Ziggy"),
    ),
    Matter(
        "instrument",
        ("I practise the {v} every evening.", "The neighbours complain when I play my {v}."),
        "I sold the old thing and play the {v} instead.",
        ("{who} plays the {v}.", "{who}'s instrument is the {v}."),
        "Which instrument does {who} play?",
        ("{other} heard {who} play an instrument.", "{who} wants to play for {other}."),
        ("bassoon", "harp", "oboe", "cello", "tuba", "mandolin", "zither", "viola", "banjo"),
    ),
    Matter(
        "allergy",
        ("I cannot touch {v}, my face swells up.", "The doctor says that it is {v} I react to."),
        "They tested me again: it is {v} that I react to.",
        ("{who} is allergic to {v}.", "{who} has an allergy to {v}."),
        "What is {who} allergic to?",
        ("{other} asked what {who} is allergic to.", "{who} told {other} about being allergic."),
        ("walnuts", "shrimp", "celery", "mustard", "sesame", "pollen", "latex", "lupin", "kiwi"),
    ),
    Matter(
        "language",
        ("My evening class in {v} is going well.", "I try to read a page of {v} each day."),
        "I switched courses and study {v} now.",
        ("{who} is learning {v}.", "{who} takes lessons in {v}."),
        "Which language is {who} learning?",
        ("{other} thinks learning a language suits {who}.", "{who} told {other} that learning takes time."),
        ("Basque", "Finnish", "Welsh", "Swahili", "Latvian", "Korean", "Maltese", "Tagalog", "Quechua"),
    ),
    Matter(
        "car",
        ("I drive a {v} van, you cannot miss it.", "They resprayed my car, all {v}."),
        "My new car is {v}, for a change.",
        ("{who}'s car is {v}.", "{who} drives a {v} car."),
        "What colour is {who}'s car?",
        ("{other} borrowed {who}'s car.", "{other} asked about the colour of {who}'s car."),
        ("turquoise", "maroon", "orange", "silver", "beige", "purple", "yellow", "olive", "crimson"),
    ),
    Matter(
        "sister",
        ("My sister {v} is staying with me.", "I called {v}, my only sister."),
        "Well, my sister goes by {v} since her wedding.",
        ("{who}'s sister is named {v}.", "{who} has a sister called {v}."),
        "What is {who}'s sister called?",
        ("{other} met {who}'s sister.", "{who}'s sister sent {other} a card."),
        ("Ottilie", "Bronwen", "Carmela", "Delphine", "Eudora", "Floriane", "Griet", "Henrike", "Ilse"),
    ),
    Matter(
        "dish",
        ("Nothing beats {v} on a Sunday.", "If I could choose my last meal it would be {v}."),
        "I have gone off it; what I love most is {v} now.",
        ("{who}'s favourite dish is {v}.", "{who} likes {v} best of all dishes."),
        "What is {who}'s favourite dish?",
        ("{other} cooked {who}'s favourite dish.", "{who} and {other} argued about a favourite dish."),
        ("goulash", "paella", "ramen", "pierogi", "risotto", "falafel", "moussaka", "bibimbap", "stew"),
    ),
    Matter(
        "month",
        ("My birthday falls in {v}, so no party outdoors.", "I turn forty in {v}."),
        "I was wrong about my papers: I was born in {v}.",
        ("{who} was born in {v}.", "{who}'s birthday is in {v}."),
        "In which month is {who}'s birthday?",
        ("{other} missed {who}'s birthday.", "{who} invited {other} to a birthday."),
        ("January", "February", "April", "June", "July", "August", "October", "November", "December"),
    ),
    Matter(
        "key",
        ("The spare key is under the {v}, if you need it.", "I hid my spare key behind the {v}."),
        "I moved the spare key, look by the {v}.",
        ("{who} keeps the spare key by the {v}.", "The spare key of {who} is at the {v}."),
        "Where does {who} keep the spare key?",
        ("{other} needed {who}'s spare key.", "{who} has a spare key, which {other} asked for."),
        ("flowerpot", "woodpile", "letterbox", "rain barrel", "doghouse", "toolbox", "birdhouse", "gutter", "bench"),
    ),
    Matter(
        "club",
        ("On Tuesdays I am at the {v} club.", "Our {v} club won last night."),
        "I left them and joined the {v} club.",
        ("{who} is a member of a {v} club.", "{who} belongs to the {v} club."),
        "What kind of club does {who} belong to?",
        ("{other} would like to see the club that {who} belongs to.", "{who} took {other} along to the club."),
        ("chess", "rowing", "fencing", "curling", "archery", "judo", "sailing", "climbing", "darts"),
    ),
)
