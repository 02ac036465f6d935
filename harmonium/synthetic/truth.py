"""What is true of a clip: every concept that holds, and how much it stands out."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller

from harmonium.synthetic.concepts import CONCEPTS
from harmonium.synthetic.genres import RECIPES
from harmonium.synthetic.instruments import INSTRUMENTS
from harmonium.synthetic.music import ROLE_GAIN, Part, SyntheticClip

MODE_VALENCE = {"major": 0.45, "mixolydian": 0.25, "dorian": -0.15, "minor": -0.5}

ELECTRONIC = {"drum machine", *(name for name, i in INSTRUMENTS.items() if i.electronic)}
ACOUSTIC = {
    *("brushes", "acoustic kit"),
    *(name for name, i in INSTRUMENTS.items() if i.acoustic),  # they need no electricity
}

# How much a part stands out by its role.
PROMINENCE = {
    "lead": 0.9,
    "voice": 1.0,
    "chords": 0.75,
    "drums": 0.8,
    "arp": 0.6,
    "bass": 0.45,
    "pad": 0.4,
}


@dataclass(frozen=True)
class ClipFacts:
    """What there is to hear in a clip: the facts that the rules below are about."""

    clip: SyntheticClip

    def has_role(self, role: str) -> bool:
        """Whether a part with this role plays."""
        return any(part.role == role for part in self.clip.parts)

    def instrument(self, *names: str) -> float:
        """How much any of these instruments stands out."""
        found = (_prominence(part) for part in self.clip.parts if part.instrument in names)
        return max(found, default=0.0)

    def genre(self, *names: str) -> float:
        """How clearly the clip is of one of these genres."""
        shares = (1.0, 0.6)
        found = (
            share for share, g in zip(shares, self.clip.track.genres, strict=False) if g in names
        )
        return next(found, 0.0) * (0.7 if self.clip.section == "breakdown" else 1.0)

    def era(self, decade: str) -> float:
        """How clearly the clip is of this decade."""
        return 0.7 if self.clip.track.artist.era == decade else 0.0

    @property
    def distortion(self) -> float:
        """How much a distorted guitar stands out."""
        if self.clip.track.drive < 2.5:
            return 0.0
        return self.instrument("distorted guitar", "lead guitar")

    @property
    def energy(self) -> float:
        """About -1 (still) to 1 (wild)."""
        track = self.clip.track
        drums = 0.3 if self.has_role("drums") else -0.4
        pace = 0.3 * (track.tempo - 108) / 40 + 0.25 * (self.clip.loudness + 17) / 6
        return pace + drums + 0.25 * self.distortion + RECIPES[track.genres[0]].energy

    @property
    def valence(self) -> float:
        """About -1 (gloomy) to 1 (cheerful)."""
        track = self.clip.track
        pace = 0.4 * (track.tempo - 105) / 40
        return MODE_VALENCE[track.mode] + pace + RECIPES[track.genres[0]].valence

    def share(self, instruments: set[str], *, if_none: float) -> float:
        """The share of the parts that play one of these instruments; voices do not count."""
        found = [part.instrument in instruments for part in self.clip.parts if part.role != "voice"]
        return sum(found) / len(found) if found else if_none


def _prominence(part: Part) -> float:
    """By the role, and by how loud the part is for one with this role."""
    louder = part.gain - ROLE_GAIN[part.role]
    return float(min(PROMINENCE[part.role] * 10 ** (louder / 20), 1.0))


def above(value: float, threshold: float, width: float) -> float:
    """0 up to the threshold, then from 0.35 just above it to 1 at ``threshold + width``."""
    if value <= threshold:
        return 0.0
    return 0.35 + 0.65 * min((value - threshold) / width, 1.0)


def below(value: float, threshold: float, width: float) -> float:
    """The same for values below a threshold."""
    return above(-value, -threshold, width)


def _aggressive(h: ClipFacts) -> float:
    harsh = h.distortion > 0 and (h.clip.track.drive > 5 or h.clip.track.mode == "minor")
    return above(h.energy, 0.75, 0.6) if harsh else 0.0


def _dreamy(h: ClipFacts) -> float:
    pad = h.instrument("synth pad", "strings", "bells") > 0
    return above(h.clip.track.room, 1.3, 1.5) if pad and h.energy < 0.1 else 0.0


def _repetitive(h: ClipFacts) -> float:
    short = len(h.clip.track.progression) <= 2
    looped = h.has_role("arp") or h.genre("techno", "house", "hip hop") > 0
    return 0.6 * short + 0.3 * looped if short and looped else 0.0


def _party(h: ClipFacts) -> float:
    danceable = h.genre("house", "techno", "hip hop", "funk", "pop", "reggae")
    return min(danceable, above(h.energy, 0.2, 0.5)) if h.valence > -0.3 else 0.0


RULES: dict[str, Callable[[ClipFacts], float]] = {
    **{
        name: methodcaller("instrument", *c.instruments)
        for name, c in CONCEPTS.items()
        if c.instruments
    },
    **{genre: methodcaller("genre", genre) for genre in RECIPES},
    "rock": lambda h: max(h.genre("rock"), 0.6 * h.genre("punk", "metal", "indie")),
    "dance": lambda h: 0.9 * h.genre("house", "techno") if h.has_role("drums") else 0.0,
    "beat": lambda h: min(
        h.instrument("drum machine"), h.genre("hip hop", "house", "techno", "pop", "soul")
    ),
    "drum machine": lambda h: 0.7 * h.instrument("drum machine"),
    "no voice": lambda h: 0.0 if h.has_role("voice") else 0.6,
    "solo": lambda h: 0.8 if h.clip.section == "solo" and h.has_role("lead") else 0.0,
    "happy": lambda h: above(h.valence, 0.4, 0.5) if h.energy > -0.2 else 0.0,
    "sad": lambda h: below(h.valence, -0.3, 0.5) if h.energy < 0.25 else 0.0,
    "calm": lambda h: below(h.energy, -0.25, 0.6),
    "energetic": lambda h: above(h.energy, 0.45, 0.6),
    "aggressive": _aggressive,
    "dark": lambda h: (
        below(h.valence, -0.5, 0.5) if h.clip.track.mode in ("minor", "dorian") else 0.0
    ),
    "dreamy": _dreamy,
    "fast": lambda h: above(h.clip.track.tempo, 130, 40),
    "slow": lambda h: below(h.clip.track.tempo, 86, 20),
    "loud": lambda h: above(h.clip.loudness, -12.5, 3),
    "quiet": lambda h: below(h.clip.loudness, -22, 6),
    "acoustic": lambda h: above(h.share(ACOUSTIC, if_none=1.0), 0.7, 0.3),
    "electronic": lambda h: above(h.share(ELECTRONIC, if_none=0.0), 0.45, 0.5),
    "distorted": lambda h: h.distortion,
    "noise": lambda h: 0.7 if h.clip.track.lofi else 0.0,
    "echo": lambda h: above(h.clip.track.room, 1.6, 1.5),
    "repetitive": _repetitive,
    "heavy": lambda h: (
        above(h.clip.loudness, -13.5, 4) if h.distortion and h.clip.track.drive > 5 else 0.0
    ),
    "party": _party,
    "sleep": lambda h: below(h.energy, -0.8, 0.5) if not h.has_role("drums") else 0.0,
    "background": lambda h: below(h.energy, -0.35, 0.6) if not h.has_role("voice") else 0.0,
    **{
        decade: methodcaller("era", decade)
        for decade, concept in CONCEPTS.items()
        if concept.kind == "era"
    },
}


def salience(clip: SyntheticClip) -> dict[str, float]:
    """How much each concept stands out in a clip, in (0, 1]; the others are not named."""
    heard = ClipFacts(clip)
    found = {name: float(rule(heard)) for name, rule in RULES.items()}
    return {name: min(value, 1.0) for name, value in found.items() if value > 0}
