"""What can be said of a clip: concepts, their words, and rules for how much each stands out.

A concept holds for a clip or does not; its words are synonyms. Each word has a familiarity: how
readily it comes to people's minds, which makes some tags common and most rare. The concepts are in
concepts.toml.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from harmonium.arrays import Doubles
from harmonium.synthetic.instruments import INSTRUMENTS
from harmonium.synthetic.music import SyntheticClip
from harmonium.synthetic.recipes import RECIPES, ROLES, read_tables

_TABLES = read_tables("concepts.toml")
KINDS = tuple(_TABLES)


@dataclass(frozen=True, kw_only=True)
class Concept:
    """Something that can be said of a clip."""

    kind: str  # one of `KINDS`
    words: dict[str, float]  # what people call it, each with its familiarity
    mistaken_for: tuple[str, ...]  # the concepts that it is easily confused with
    instruments: tuple[str, ...] = ()  # for some, the instruments of which one must play


def _concepts() -> dict[str, Concept]:
    concepts = {}
    for kind, table in _TABLES.items():
        for name, entries in table.items():
            concepts[name] = Concept(
                kind=kind,
                words=entries["words"],
                mistaken_for=tuple(entries["mistaken_for"]),
                instruments=tuple(entries.get("instruments", ())),
            )
    return concepts


CONCEPTS = _concepts()

TAGS = {word: name for name, concept in CONCEPTS.items() for word in concept.words}
"""Every tag with its concept. A tag means one concept only."""


# What the rules ask about a clip

MODE_VALENCE = {"major": 0.45, "mixolydian": 0.25, "dorian": -0.15, "minor": -0.5}

ELECTRONIC = {name for name, instrument in INSTRUMENTS.items() if instrument.is_electronic}
ELECTRONIC |= {"drum machine"}
ACOUSTIC = {name for name, instrument in INSTRUMENTS.items() if instrument.is_acoustic}
ACOUSTIC |= {"brushes", "acoustic kit"}


def has_role(clip: SyntheticClip, role: str) -> bool:
    """Whether a part with this role plays."""
    return any(part.role == role for part in clip.parts)


def prominence(clip: SyntheticClip, *instruments: str) -> float:
    """How much any of these instruments stands out: by its role, and how loud it is for that."""
    greatest = 0.0
    for part in clip.parts:
        if part.instrument in instruments:
            role = ROLES[part.role]
            relative_level = 10 ** ((part.gain - role.gain) / 20)
            greatest = max(greatest, role.prominence * relative_level)
    return float(min(greatest, 1.0))


def genre(clip: SyntheticClip, *names: str) -> float:
    """How clearly the clip is of one of these genres."""
    main, *borrowed = clip.track.genres
    if main in names:
        share = 1.0
    elif any(name in names for name in borrowed):
        share = 0.6
    else:
        share = 0.0
    return 0.7 * share if clip.section == "breakdown" else share


def distortion(clip: SyntheticClip) -> float:
    """How much a distorted guitar stands out."""
    if clip.track.drive < 2.5:
        return 0.0
    return prominence(clip, "distorted guitar", "lead guitar")


def energy(clip: SyntheticClip) -> float:
    """About -1 (still) to 1 (wild)."""
    drums = 0.3 if has_role(clip, "drums") else -0.4
    pace = 0.3 * (clip.track.tempo - 108) / 40 + 0.25 * (clip.loudness + 17) / 6
    return pace + drums + 0.25 * distortion(clip) + RECIPES[clip.track.genres[0]].energy


def valence(clip: SyntheticClip) -> float:
    """About -1 (gloomy) to 1 (cheerful)."""
    pace = 0.4 * (clip.track.tempo - 105) / 40
    return MODE_VALENCE[clip.track.mode] + pace + RECIPES[clip.track.genres[0]].valence


def share(clip: SyntheticClip, instruments: set[str], *, if_none: float) -> float:
    """The share of the parts that play one of these instruments; voices do not count."""
    players = [part for part in clip.parts if part.role != "voice"]
    if not players:
        return if_none
    return sum(part.instrument in instruments for part in players) / len(players)


def above(value: float, threshold: float, width: float) -> float:
    """0 up to the threshold, then from 0.35 just above it to 1 at ``threshold + width``."""
    if value <= threshold:
        return 0.0
    return 0.35 + 0.65 * min((value - threshold) / width, 1.0)


def below(value: float, threshold: float, width: float) -> float:
    """The same for values below a threshold."""
    return above(-value, -threshold, width)


# The rules

Rule = Callable[[SyntheticClip], float]
"""A clip → how much the concept stands out, from 0 (it does not hold)."""


def _rock(clip: SyntheticClip) -> float:
    return max(genre(clip, "rock"), 0.6 * genre(clip, "punk", "metal", "indie"))


def _dance(clip: SyntheticClip) -> float:
    return 0.9 * genre(clip, "house", "techno") if has_role(clip, "drums") else 0.0


def _beat(clip: SyntheticClip) -> float:
    danced = genre(clip, "hip hop", "house", "techno", "pop", "soul")
    return min(prominence(clip, "drum machine"), danced)


def _drum_machine(clip: SyntheticClip) -> float:
    return 0.7 * prominence(clip, "drum machine")


def _no_voice(clip: SyntheticClip) -> float:
    return 0.6 if not has_role(clip, "voice") else 0.0


def _solo(clip: SyntheticClip) -> float:
    return 0.8 if clip.section == "solo" and has_role(clip, "lead") else 0.0


def _happy(clip: SyntheticClip) -> float:
    return above(valence(clip), 0.4, 0.5) if energy(clip) > -0.2 else 0.0


def _sad(clip: SyntheticClip) -> float:
    return below(valence(clip), -0.3, 0.5) if energy(clip) < 0.25 else 0.0


def _calm(clip: SyntheticClip) -> float:
    return below(energy(clip), -0.25, 0.6)


def _energetic(clip: SyntheticClip) -> float:
    return above(energy(clip), 0.45, 0.6)


def _aggressive(clip: SyntheticClip) -> float:
    is_hard = clip.track.drive > 5 or clip.track.mode == "minor"
    return above(energy(clip), 0.75, 0.6) if is_hard and distortion(clip) > 0 else 0.0


def _dark(clip: SyntheticClip) -> float:
    return below(valence(clip), -0.5, 0.5) if clip.track.mode in ("minor", "dorian") else 0.0


def _dreamy(clip: SyntheticClip) -> float:
    has_pad = prominence(clip, "synth pad", "strings", "bells") > 0
    return above(clip.track.room, 1.3, 1.5) if has_pad and energy(clip) < 0.1 else 0.0


def _fast(clip: SyntheticClip) -> float:
    return above(clip.track.tempo, 130, 40)


def _slow(clip: SyntheticClip) -> float:
    return below(clip.track.tempo, 86, 20)


def _loud(clip: SyntheticClip) -> float:
    return above(clip.loudness, -12.5, 3)


def _quiet(clip: SyntheticClip) -> float:
    return below(clip.loudness, -22, 6)


def _acoustic(clip: SyntheticClip) -> float:
    return above(share(clip, ACOUSTIC, if_none=1.0), 0.7, 0.3)


def _electronic(clip: SyntheticClip) -> float:
    return above(share(clip, ELECTRONIC, if_none=0.0), 0.45, 0.5)


def _noise(clip: SyntheticClip) -> float:
    return 0.7 if clip.track.lofi else 0.0


def _echo(clip: SyntheticClip) -> float:
    return above(clip.track.room, 1.6, 1.5)


def _repetitive(clip: SyntheticClip) -> float:
    is_looped = has_role(clip, "arp") or genre(clip, "techno", "house", "hip hop") > 0
    return 0.9 if is_looped and len(clip.track.progression) <= 2 else 0.0


def _heavy(clip: SyntheticClip) -> float:
    is_driven = distortion(clip) > 0 and clip.track.drive > 5
    return above(clip.loudness, -13.5, 4) if is_driven else 0.0


def _party(clip: SyntheticClip) -> float:
    danceable = genre(clip, "house", "techno", "hip hop", "funk", "pop", "reggae")
    return min(danceable, above(energy(clip), 0.2, 0.5)) if valence(clip) > -0.3 else 0.0


def _sleep(clip: SyntheticClip) -> float:
    return below(energy(clip), -0.8, 0.5) if not has_role(clip, "drums") else 0.0


def _background(clip: SyntheticClip) -> float:
    return below(energy(clip), -0.35, 0.6) if not has_role(clip, "voice") else 0.0


def _is_of_instruments(clip: SyntheticClip, instruments: tuple[str, ...]) -> float:
    return prominence(clip, *instruments)


def _is_of_genre(clip: SyntheticClip, name: str) -> float:
    return genre(clip, name)


def _is_of_era(clip: SyntheticClip, era: str) -> float:
    return 0.7 if clip.track.era == era else 0.0


def _rules() -> dict[str, Rule]:
    """The rule of each concept."""
    rules: dict[str, Rule] = {}
    for name, concept in CONCEPTS.items():
        if concept.instruments:
            rules[name] = partial(_is_of_instruments, instruments=concept.instruments)
        elif concept.kind == "era":
            rules[name] = partial(_is_of_era, era=name)
    for name in RECIPES:
        rules[name] = partial(_is_of_genre, name=name)
    return rules | {
        "rock": _rock,
        "dance": _dance,
        "beat": _beat,
        "drum machine": _drum_machine,
        "no voice": _no_voice,
        "solo": _solo,
        "happy": _happy,
        "sad": _sad,
        "calm": _calm,
        "energetic": _energetic,
        "aggressive": _aggressive,
        "dark": _dark,
        "dreamy": _dreamy,
        "fast": _fast,
        "slow": _slow,
        "loud": _loud,
        "quiet": _quiet,
        "acoustic": _acoustic,
        "electronic": _electronic,
        "distorted": distortion,
        "noise": _noise,
        "echo": _echo,
        "repetitive": _repetitive,
        "heavy": _heavy,
        "party": _party,
        "sleep": _sleep,
        "background": _background,
    }


RULES = _rules()


def salience(clip: SyntheticClip) -> Doubles:
    """How much each of `CONCEPTS` stands out in a clip, from 0 (it does not hold) to 1."""
    return np.clip([RULES[name](clip) for name in CONCEPTS], 0.0, 1.0)
