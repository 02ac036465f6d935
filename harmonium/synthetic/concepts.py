"""The words that listeners have for what they hear.

A concept is something that is or is not true of a clip; its words are synonyms. Each word has a
familiarity: how readily it comes to people's minds, which makes some tags common and most rare.
"""

from dataclasses import dataclass

KINDS = ("genre", "instrument", "emotion", "sound", "occasion", "era")


@dataclass(frozen=True)
class Concept:
    """Something that can be said of a clip.

    Attributes
    ----------
    kind : one of ``KINDS``.
    words : the tags that mean it, with their familiarity.
    mistaken_for : concepts that people name when they hear this one and are wrong.
    """

    kind: str
    words: dict[str, float]
    mistaken_for: tuple[str, ...] = ()


CONCEPTS: dict[str, Concept] = {
    # genre
    "rock": Concept("genre", {"rock": 1.0}, ("metal", "indie", "punk")),
    "indie": Concept("genre", {"indie": 0.4, "alternative": 0.35}, ("rock", "pop", "folk")),
    "punk": Concept("genre", {"punk": 0.4}, ("rock", "metal")),
    "metal": Concept("genre", {"metal": 0.45, "heavy metal": 0.2}, ("punk", "rock")),
    "pop": Concept("genre", {"pop": 0.8}, ("indie", "soul", "dance")),
    "folk": Concept("genre", {"folk": 0.45}, ("country", "indie")),
    "country": Concept("genre", {"country": 0.5}, ("folk", "blues")),
    "blues": Concept("genre", {"blues": 0.4}, ("jazz", "country")),
    "jazz": Concept("genre", {"jazz": 0.7}, ("blues", "soul")),
    "soul": Concept("genre", {"soul": 0.35, "r&b": 0.3}, ("pop", "funk", "jazz")),
    "funk": Concept("genre", {"funk": 0.45}, ("soul", "reggae")),
    "reggae": Concept("genre", {"reggae": 0.4}, ("funk", "hip hop")),
    "hip hop": Concept("genre", {"hip hop": 0.8, "rap": 0.6}, ("soul", "reggae")),
    "dance": Concept("genre", {"dance": 0.7}, ("hip hop", "pop")),
    "house": Concept("genre", {"house": 0.3}, ("techno",)),
    "techno": Concept("genre", {"techno": 0.6}, ("house",)),
    "ambient": Concept("genre", {"ambient": 0.5}, ("classical",)),
    "classical": Concept("genre", {"classical": 0.5}, ("ambient",)),
    # instrument
    "drums": Concept("instrument", {"drums": 1.0, "percussion": 0.3}, ("drum machine", "bass")),
    "beat": Concept("instrument", {"beat": 0.6}, ("fast",)),
    "drum machine": Concept("instrument", {"drum machine": 0.35}, ("synth",)),
    "guitar": Concept("instrument", {"guitar": 1.0}, ("bass", "piano")),
    "acoustic guitar": Concept("instrument", {"acoustic guitar": 0.5}, ("electric guitar",)),
    "electric guitar": Concept("instrument", {"electric guitar": 0.5}, ("acoustic guitar",)),
    "bass": Concept("instrument", {"bass": 0.6}, ("guitar", "beat")),
    "piano": Concept("instrument", {"piano": 0.9}, ("electric piano", "guitar")),
    "electric piano": Concept("instrument", {"keyboard": 0.5}, ("piano", "organ")),
    "organ": Concept("instrument", {"organ": 0.4}, ("synth", "electric piano")),
    "strings": Concept("instrument", {"strings": 0.5, "violin": 0.35}, ("synth", "voice")),
    "synth": Concept("instrument", {"synth": 0.8, "synthesizer": 0.25}, ("strings", "organ")),
    "flute": Concept("instrument", {"flute": 0.45}, ("saxophone", "synth")),
    "brass": Concept("instrument", {"horns": 0.35, "trumpet": 0.45}, ("saxophone",)),
    "saxophone": Concept("instrument", {"saxophone": 0.4, "sax": 0.3}, ("brass",)),
    "bells": Concept("instrument", {"bells": 0.35}, ("piano", "synth")),
    "voice": Concept("instrument", {"vocals": 0.9, "voice": 0.5, "singing": 0.4}, ("strings",)),
    "male voice": Concept("instrument", {"male": 0.8, "male vocals": 0.4}, ("female voice",)),
    "female voice": Concept("instrument", {"female": 0.9, "female vocals": 0.5}, ("male voice",)),
    "no voice": Concept("instrument", {"instrumental": 0.8}, ("ambient",)),
    "solo": Concept("instrument", {"solo": 0.4}, ("electric guitar",)),
    # emotion
    "happy": Concept("emotion", {"happy": 0.7, "upbeat": 0.6}, ("energetic",)),
    "sad": Concept("emotion", {"sad": 0.6, "melancholy": 0.3}, ("calm", "dark")),
    "calm": Concept(
        "emotion", {"calm": 0.5, "mellow": 0.6, "relaxing": 0.45, "soft": 0.4}, ("sad", "slow")
    ),
    "energetic": Concept("emotion", {"energetic": 0.6}, ("happy", "fast", "aggressive")),
    "aggressive": Concept("emotion", {"aggressive": 0.35, "angry": 0.3}, ("loud", "dark")),
    "dark": Concept("emotion", {"dark": 0.4}, ("sad", "aggressive")),
    "dreamy": Concept("emotion", {"dreamy": 0.3, "atmospheric": 0.3}, ("sad", "ambient")),
    # sound
    "fast": Concept("sound", {"fast": 0.7}, ("energetic", "loud")),
    "slow": Concept("sound", {"slow": 0.7}, ("calm", "sad")),
    "loud": Concept("sound", {"loud": 0.5}, ("distorted", "aggressive")),
    "quiet": Concept("sound", {"quiet": 0.45}, ("calm", "slow")),
    "acoustic": Concept("sound", {"acoustic": 0.6}, ("folk", "acoustic guitar")),
    "electronic": Concept("sound", {"electronic": 0.8, "electronica": 0.3}, ("dance", "synth")),
    "distorted": Concept("sound", {"distortion": 0.35, "distorted": 0.25}, ("noise", "loud")),
    "noise": Concept("sound", {"noise": 0.35, "lofi": 0.2}, ("distorted",)),
    "echo": Concept("sound", {"echo": 0.25, "reverb": 0.15}, ("dreamy",)),
    "repetitive": Concept("sound", {"repetitive": 0.4, "loop": 0.2}, ("beat",)),
    "heavy": Concept("sound", {"heavy": 0.4}, ("loud", "dark")),
    # occasion
    "party": Concept("occasion", {"party": 0.5}, ("dance", "happy")),
    "sleep": Concept("occasion", {"sleep": 0.3}, ("calm",)),
    "background": Concept("occasion", {"background": 0.3}, ("calm",)),
    # era
    "60s": Concept("era", {"60s": 0.3}, ("70s",)),
    "70s": Concept("era", {"70s": 0.35}, ("60s", "80s")),
    "80s": Concept("era", {"80s": 0.6}, ("70s", "90s")),
    "90s": Concept("era", {"90s": 0.4}, ("80s",)),
}

# Every tag with its concept. A tag means one concept only.
TAGS: dict[str, str] = {word: name for name, concept in CONCEPTS.items() for word in concept.words}
