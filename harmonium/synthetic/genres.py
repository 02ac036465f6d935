"""What the genres are made of: one recipe each, from which tracks are drawn.

A recipe is data. Each of its parts is written as a role, the chance that a track has it, and the
choices ``instrument/pattern weight``. The instruments are those of ``instruments.py``, ``voice.py``
and ``drums.py``, the patterns those of ``patterns.py``.
"""

from dataclasses import dataclass, field

PartChoices = tuple[tuple[str, str, float], ...]  # instrument, pattern, weight

ERAS = ("60s", "70s", "80s", "90s", "today")

MODES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "minor": (0, 2, 3, 5, 7, 8, 10),
}

# Scale degrees counted from 0, one chord a bar.
PROGRESSIONS = {
    "axis": (0, 4, 5, 3),
    "fifties": (0, 5, 3, 4),
    "three": (0, 3, 4, 0),
    "plagal": (0, 3, 0, 4),
    "sway": (0, 3),
    "step": (0, 6),
    "drone": (0,),
    "epic": (0, 5, 2, 6),
    "descent": (0, 6, 5, 6),
    "turnaround": (1, 4, 0, 5),
    "cadence": (0, 3, 6, 2, 5, 1, 4, 0),
    "blues": (0, 0, 0, 0, 3, 3, 0, 0, 4, 3, 0, 4),
}


@dataclass(frozen=True)
class GenreRecipe:
    """The ranges and chances that a track of one genre is drawn from.

    Attributes
    ----------
    weight : how common the genre is.
    tempo : range in beats per minute.
    modes : chances of the modes.
    progressions : names in ``PROGRESSIONS``.
    parts : for each role, the chance that a track has it, and its options.
    loudness : range of the clip's RMS level in dB below full scale.
    room : range of the reverberation time in seconds.
    swing : how late the off-beats are, 0 (straight) to 1 (triplets), and the steps it acts on.
    drive : range of the distortion of guitars marked as such.
    sevenths : whether chords have four notes.
    lofi : chance of a narrow, hissing, crackling recording.
    eras : chances of the decades.
    neighbours : genres to borrow from.
    male : chance that a singer is a man.
    """

    weight: float
    tempo: tuple[float, float]
    modes: dict[str, float]
    progressions: tuple[str, ...]
    parts: dict[str, tuple[float, PartChoices]]
    loudness: tuple[float, float]
    room: tuple[float, float]
    neighbours: tuple[str, ...]
    swing: float = 0.0
    swing_steps: int = 2
    drive: tuple[float, float] = (2.0, 4.0)
    sevenths: bool = False
    lofi: float = 0.08
    eras: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ERAS, 1.0))
    male: float = 0.55


def _parts(*roles: str) -> dict[str, tuple[float, PartChoices]]:
    """The parts of a recipe from texts of the form ``role chance: choice, choice, …``."""
    parts = {}
    for text in roles:
        head, _, listed = text.partition(": ")
        role, chance = head.split()
        parts[role] = float(chance), tuple(_choice(choice) for choice in listed.split(", "))
    return parts


def _choice(text: str) -> tuple[str, str, float]:
    """An instrument, a pattern and a weight from ``instrument/pattern weight``."""
    what, _, weight = text.rpartition(" ")
    instrument, pattern = what.split("/")
    return instrument, pattern, float(weight)


def _eras(*weights: float) -> dict[str, float]:
    return dict(zip(ERAS, weights, strict=True))


RECIPES: dict[str, GenreRecipe] = {
    "rock": GenreRecipe(
        weight=11,
        tempo=(98, 152),
        modes={"major": 4, "mixolydian": 3, "minor": 3, "dorian": 1},
        progressions=("axis", "three", "plagal", "descent", "step"),
        parts=_parts(
            "drums 0.97: acoustic kit/rock 3, acoustic kit/straight 2",
            "bass 0.95: electric bass/eighths 3, electric bass/driving 2",
            "chords 1: distorted guitar/chug 3, distorted guitar/riff 3, electric guitar/strum 2",
            "lead 0.6: lead guitar/medium 4, organ/medium 1",
            "pad 0.2: organ/whole 2, piano/quarters 1",
            "voice 0.8: voice/sung 1",
        ),
        loudness=(-16, -10),
        room=(0.4, 1.0),
        drive=(3, 8),
        eras=_eras(1, 3, 2, 3, 2),
        neighbours=("blues", "indie", "punk", "metal", "country", "folk"),
        male=0.75,
    ),
    "indie": GenreRecipe(
        weight=6,
        tempo=(88, 150),
        modes={"major": 5, "minor": 3, "mixolydian": 1},
        progressions=("axis", "fifties", "sway", "epic"),
        parts=_parts(
            "drums 0.9: acoustic kit/rock 2, acoustic kit/straight 1",
            "bass 0.9: electric bass/eighths 1, electric bass/pop 1",
            "chords 1: electric guitar/strum 3, electric guitar/pick 2, acoustic guitar/strum 2, "
            "distorted guitar/eighths 1",
            "lead 0.5: electric guitar/medium 2, synth lead/slow 1",
            "pad 0.4: synth pad/whole 1, organ/whole 1",
            "voice 0.85: voice/sung 1",
        ),
        loudness=(-19, -13),
        room=(0.6, 2.0),
        lofi=0.25,
        eras=_eras(0.3, 0.3, 1, 3, 4),
        neighbours=("rock", "pop", "folk"),
    ),
    "punk": GenreRecipe(
        weight=4,
        tempo=(155, 205),
        modes={"major": 6, "minor": 2, "mixolydian": 1},
        progressions=("three", "axis", "fifties", "plagal"),
        parts=_parts(
            "drums 1: acoustic kit/polka 3, acoustic kit/straight 1",
            "bass 0.95: electric bass/eighths 1",
            "chords 1: distorted guitar/downstrokes 1",
            "lead 0.25: lead guitar/medium 1",
            "voice 0.9: voice/shout 1",
        ),
        loudness=(-13, -9),
        room=(0.2, 0.6),
        drive=(6, 14),
        lofi=0.25,
        eras=_eras(0, 4, 3, 3, 1),
        neighbours=("rock", "metal", "indie"),
        male=0.8,
    ),
    "metal": GenreRecipe(
        weight=5,
        tempo=(110, 190),
        modes={"minor": 8, "dorian": 1},
        progressions=("descent", "epic", "step", "drone"),
        parts=_parts(
            "drums 1: acoustic kit/double kick 2, acoustic kit/straight 1",
            "bass 0.95: electric bass/eighths 1, electric bass/gallop 1",
            "chords 1: distorted guitar/gallop 2, distorted guitar/chug 2",
            "lead 0.6: lead guitar/fast 1",
            "voice 0.75: voice/shout 2, voice/sung 1",
        ),
        loudness=(-12, -8.5),
        room=(0.4, 1.0),
        drive=(12, 25),
        lofi=0.02,
        eras=_eras(0, 1, 4, 3, 3),
        neighbours=("rock", "punk"),
        male=0.9,
    ),
    "pop": GenreRecipe(
        weight=11,
        tempo=(92, 132),
        modes={"major": 7, "minor": 3},
        progressions=("axis", "fifties", "epic", "turnaround"),
        parts=_parts(
            "drums 0.95: acoustic kit/straight 2, drum machine/straight 2, drum machine/house 2",
            "bass 0.95: electric bass/pop 2, synth bass/eighths 2",
            "chords 1: piano/quarters 3, acoustic guitar/strum 2, electric piano/pop 2, "
            "electric guitar/pick 1",
            "lead 0.35: synth lead/medium 2, bells/slow 1",
            "pad 0.6: synth pad/whole 2, strings/whole 2",
            "voice 0.95: voice/sung 1",
        ),
        loudness=(-15, -10),
        room=(0.5, 1.4),
        lofi=0.02,
        eras=_eras(1, 2, 4, 3, 4),
        neighbours=("soul", "house", "indie", "rock", "hip hop"),
        male=0.4,
    ),
    "folk": GenreRecipe(
        weight=6,
        tempo=(72, 128),
        modes={"major": 5, "dorian": 2, "minor": 2, "mixolydian": 2},
        progressions=("three", "plagal", "axis", "step"),
        parts=_parts(
            "drums 0.2: brushes/shaker 1",
            "bass 0.45: upright bass/halves 1",
            "chords 1: acoustic guitar/pick 3, acoustic guitar/strum 2",
            "lead 0.5: flute/medium 2, fiddle/medium 2",
            "voice 0.8: voice/sung 1",
        ),
        loudness=(-26, -18),
        room=(0.4, 1.2),
        lofi=0.2,
        eras=_eras(4, 3, 0.5, 1, 3),
        neighbours=("country", "indie", "classical"),
    ),
    "country": GenreRecipe(
        weight=5,
        tempo=(88, 140),
        modes={"major": 8, "mixolydian": 2},
        progressions=("three", "plagal", "fifties"),
        parts=_parts(
            "drums 0.8: brushes/train 2, acoustic kit/straight 1",
            "bass 0.9: upright bass/halves 1, electric bass/halves 2",
            "chords 1: acoustic guitar/strum 3, acoustic guitar/pick 1",
            "lead 0.7: fiddle/medium 2, electric guitar/medium 2",
            "pad 0.15: piano/halves 1",
            "voice 0.9: voice/sung 1",
        ),
        loudness=(-20, -14),
        room=(0.4, 1.0),
        eras=_eras(2, 3, 2, 3, 2),
        neighbours=("folk", "rock", "blues"),
        male=0.6,
    ),
    "blues": GenreRecipe(
        weight=5,
        tempo=(62, 126),
        modes={"mixolydian": 5, "dorian": 3},
        progressions=("blues",),
        parts=_parts(
            "drums 0.8: acoustic kit/shuffle 1, brushes/shuffle 1",
            "bass 0.85: electric bass/shuffle 1, upright bass/walking 1",
            "chords 1: electric guitar/shuffle 2, acoustic guitar/shuffle 1, piano/shuffle 1",
            "lead 0.7: electric guitar/swing 2, lead guitar/swing 1",
            "pad 0.3: organ/whole 1",
            "voice 0.6: voice/sung 1",
        ),
        loudness=(-21, -14),
        room=(0.4, 1.0),
        swing=0.9,
        drive=(2, 4),
        sevenths=True,
        lofi=0.3,
        eras=_eras(4, 3, 1, 1, 1),
        neighbours=("rock", "jazz", "soul"),
        male=0.75,
    ),
    "jazz": GenreRecipe(
        weight=7,
        tempo=(72, 196),
        modes={"major": 4, "dorian": 4, "minor": 1},
        progressions=("turnaround", "cadence"),
        parts=_parts(
            "drums 0.85: brushes/ride 1, acoustic kit/ride 1",
            "bass 0.95: upright bass/walking 1",
            "chords 0.95: piano/comping 4, jazz guitar/comping 2, organ/comping 1",
            "lead 0.9: saxophone/swing 4, trumpet/swing 3, flute/swing 1, vibraphone/swing 1",
            "voice 0.2: voice/sung 1",
        ),
        loudness=(-25, -16),
        room=(0.5, 1.2),
        swing=0.85,
        sevenths=True,
        lofi=0.2,
        eras=_eras(5, 2, 1, 1, 1),
        neighbours=("blues", "soul", "classical"),
        male=0.3,
    ),
    "soul": GenreRecipe(
        weight=5,
        tempo=(70, 112),
        modes={"major": 4, "dorian": 3, "minor": 3},
        progressions=("turnaround", "fifties", "sway", "epic"),
        parts=_parts(
            "drums 0.95: acoustic kit/backbeat 2, drum machine/backbeat 1",
            "bass 0.95: electric bass/pop 2, electric bass/funk 1",
            "chords 1: electric piano/comping 3, electric guitar/skank 1",
            "lead 0.5: saxophone/slow 1, trumpet/medium 1",
            "pad 0.5: strings/whole 1, organ/whole 1",
            "voice 0.9: voice/sung 1",
        ),
        loudness=(-18, -13),
        room=(0.5, 1.4),
        swing=0.3,
        swing_steps=1,
        sevenths=True,
        eras=_eras(3, 4, 2, 2, 1),
        neighbours=("funk", "pop", "hip hop", "jazz"),
        male=0.4,
    ),
    "funk": GenreRecipe(
        weight=4,
        tempo=(94, 122),
        modes={"dorian": 6, "mixolydian": 4},
        progressions=("drone", "sway", "step"),
        parts=_parts(
            "drums 1: acoustic kit/funk 1",
            "bass 1: electric bass/funk 1",
            "chords 0.95: electric guitar/scratch 3, electric piano/stabs 1",
            "lead 0.6: trumpet/stabs 2, saxophone/medium 1",
            "pad 0.25: organ/stabs 1",
            "voice 0.55: voice/sung 1, voice/shout 1",
        ),
        loudness=(-16, -11),
        room=(0.3, 0.8),
        swing=0.25,
        swing_steps=1,
        sevenths=True,
        eras=_eras(1, 5, 2, 1, 1),
        neighbours=("soul", "hip hop", "house"),
        male=0.65,
    ),
    "reggae": GenreRecipe(
        weight=4,
        tempo=(66, 92),
        modes={"major": 5, "minor": 4},
        progressions=("sway", "plagal", "step", "axis"),
        parts=_parts(
            "drums 1: acoustic kit/one drop 1",
            "bass 1: electric bass/dub 1",
            "chords 1: electric guitar/skank 2, organ/skank 1",
            "lead 0.35: trumpet/slow 1, organ/medium 1",
            "voice 0.8: voice/sung 1",
        ),
        loudness=(-18, -12),
        room=(0.8, 2.0),
        swing=0.4,
        eras=_eras(1, 5, 3, 1, 1),
        neighbours=("soul", "hip hop", "pop"),
        male=0.8,
    ),
    "hip hop": GenreRecipe(
        weight=8,
        tempo=(78, 104),
        modes={"minor": 6, "dorian": 3, "major": 1},
        progressions=("sway", "drone", "epic", "step"),
        parts=_parts(
            "drums 1: drum machine/boom bap 3, drum machine/trap 2",
            "bass 0.95: synth bass/hip hop 3, electric bass/pop 1",
            "chords 0.8: electric piano/halves 2, piano/halves 2, strings/stabs 1, "
            "synth pad/whole 1",
            "lead 0.3: bells/slow 1, synth lead/slow 1, flute/slow 1",
            "voice 0.9: voice/rap 1",
        ),
        loudness=(-15, -10),
        room=(0.2, 0.7),
        swing=0.35,
        swing_steps=1,
        sevenths=True,
        lofi=0.2,
        eras=_eras(0, 0, 1, 5, 4),
        neighbours=("soul", "funk", "pop", "techno"),
        male=0.8,
    ),
    "house": GenreRecipe(
        weight=6,
        tempo=(118, 130),
        modes={"minor": 5, "dorian": 3, "major": 2},
        progressions=("sway", "epic", "descent", "drone"),
        parts=_parts(
            "drums 1: drum machine/house 1",
            "bass 1: synth bass/offbeat 2, synth bass/house 2",
            "chords 0.95: synth stab/offbeat 2, piano/stabs 2",
            "lead 0.3: synth lead/medium 1",
            "pad 0.4: synth pad/whole 1, strings/whole 1",
            "arp 0.4: synth pluck/arpeggio 1",
            "voice 0.35: voice/sung 1",
        ),
        loudness=(-14, -9.5),
        room=(0.4, 1.4),
        sevenths=True,
        lofi=0.02,
        eras=_eras(0, 0.3, 2, 5, 4),
        neighbours=("techno", "pop", "soul"),
        male=0.2,
    ),
    "techno": GenreRecipe(
        weight=6,
        tempo=(126, 150),
        modes={"minor": 9, "dorian": 1},
        progressions=("drone", "step"),
        parts=_parts(
            "drums 1: drum machine/techno 1",
            "bass 1: synth bass/sixteenths 2, synth bass/offbeat 1",
            "chords 0.5: synth stab/stabs 1",
            "arp 0.8: synth pluck/arpeggio 2, synth lead/arpeggio 1",
            "pad 0.4: synth pad/whole 1",
            "voice 0.08: voice/sung 1",
        ),
        loudness=(-13, -9),
        room=(0.3, 1.6),
        lofi=0.05,
        eras=_eras(0, 0, 1, 5, 4),
        neighbours=("house", "ambient"),
    ),
    "ambient": GenreRecipe(
        weight=6,
        tempo=(54, 84),
        modes={"major": 4, "dorian": 3, "minor": 4},
        progressions=("drone", "sway", "epic"),
        parts=_parts(
            "drums 0.1: drum machine/sparse 1",
            "bass 0.4: synth bass/whole 1",
            "pad 1: synth pad/whole 3, strings/whole 1",
            "chords 0.35: electric piano/halves 1, piano/slow pick 1",
            "lead 0.45: bells/sparse 2, flute/sparse 1",
            "arp 0.3: synth pluck/slow arpeggio 1",
            "voice 0.08: voice/sparse 1",
        ),
        loudness=(-29, -20),
        room=(2.2, 4.0),
        sevenths=True,
        lofi=0.2,
        eras=_eras(0, 1, 3, 3, 4),
        neighbours=("classical", "techno"),
        male=0.2,
    ),
    "classical": GenreRecipe(
        weight=6,
        tempo=(60, 138),
        modes={"major": 6, "minor": 5},
        progressions=("cadence", "three", "fifties"),
        parts=_parts(
            "chords 0.9: piano/alberti 4, piano/pick 2, harp/slow arpeggio 1",
            "pad 0.55: strings/halves 1, strings/whole 1",
            "lead 0.8: violin/slow 2, flute/medium 2, piano/medium 2, trumpet/slow 0.5",
            "bass 0.5: cello/halves 1, cello/whole 1",
            "voice 0.08: voice/sparse 1",
        ),
        loudness=(-31, -20),
        room=(1.4, 2.8),
        lofi=0.05,
        eras=_eras(0, 0, 0, 0, 1),
        neighbours=("ambient", "folk", "jazz"),
        male=0.2,
    ),
}
