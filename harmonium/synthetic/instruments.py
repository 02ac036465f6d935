"""What plays the notes: instruments, three drum kits and voices; and the mix of a clip.

An instrument is a function from a pitch to a tone long enough for its longest note, an attack, a
release and, for some, a treatment of everything it plays (an amplifier, a chorus). A voice is a
source rich in harmonics, the resonances of a vowel, and consonants of noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harmonium.arrays import Doubles
from harmonium.synthetic.music import Part, SyntheticClip
from harmonium.synthetic.score import Note, notes_of
from harmonium.synthetic.tones import (
    RATE,
    Samples,
    active_rms,
    amplifier,
    band_pass,
    chorus,
    fade,
    harmonic_tone,
    high_pass,
    limit,
    low_pass,
    n_harmonics,
    noise,
    old_recording,
    phase_of,
    pitch_to_hertz,
    plucked_string,
    reverberate,
    rms,
    struck_bar,
    times,
    tremolo,
)


@dataclass(frozen=True)
class Patch:
    """One particular instrument: its brightness around 1, its drive, its seed."""

    brightness: float = 1.0
    drive: float = 3.0
    seed: int = 0


Tone = Callable[[float, int, Patch], Samples]
Treatment = Callable[[Samples, Patch], Samples]


@dataclass(frozen=True)
class Instrument:
    """How notes are played on an instrument."""

    tone: Tone  # (frequency in hertz, number of samples, patch) → samples
    attack: float = 0.004  # seconds in which a note comes in
    release: float = 0.08  # seconds in which it dies away when it is let go
    treatment: str | None = None  # a name in TREATMENTS, applied to all that it plays
    wet: float = 0.25  # how much of it goes to the reverberation
    electronic: bool = False  # whether it is a synthesiser
    acoustic: bool = False  # whether it needs no electricity


def _series(frequency: float, slope: float, *, most: int = 32) -> Doubles:
    """Amplitudes 1/k^slope of the harmonics that fit."""
    k = np.arange(1, n_harmonics(frequency, most=most) + 1)
    return np.asarray(k**-slope, np.float64)


def _piano(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    body = 3.2 * (262 / frequency) ** 0.6
    envelope = 0.55 * np.exp(-t / 0.22) + 0.45 * np.exp(-t / body)
    bright = (0.45 + 0.45 * np.exp(-t / 0.35)) * min(1.0, 0.9 * patch.brightness**0.3)
    series = _series(frequency, 0.55, most=20)
    series *= 1 + 0.5 * np.cos(np.arange(1, len(series) + 1))  # no two harmonics alike
    tone = harmonic_tone(phase_of(frequency, n), series, bright)
    hammer = np.exp(-t / 0.008) * low_pass(noise(n, patch.seed), 1_200)
    return (tone * envelope + 0.25 * hammer).astype(np.float32)


def _electric_piano(frequency: float, n: int, patch: Patch) -> Samples:
    """A tine: nearly a sine that barks when struck, with a bell far above."""
    t = times(n)
    bark = 0.25 + 0.45 * patch.brightness * np.exp(-t / 0.4)
    tone = harmonic_tone(
        phase_of(frequency, n), _series(frequency, 0.3, most=6), np.minimum(bark, 0.9)
    )
    bell = struck_bar(frequency, n, ratios=[7.0], levels=[0.12], decays=[0.15])
    return (np.exp(-t / 1.6) * tone + bell).astype(np.float32)


def _organ(frequency: float, n: int, patch: Patch) -> Samples:
    drawbars = np.array([0.8, 0.7, 0.6, 0.5, 0.0, 0.35, 0.0, 0.3]) * patch.brightness ** np.arange(
        8
    )
    tone = harmonic_tone(phase_of(frequency / 2, n), drawbars)
    click = np.exp(-times(n) / 0.004) * noise(n, patch.seed)
    return (tone + 0.2 * click).astype(np.float32)


def _string(
    *, decay: float, damping: float, softness: float, position: float = 0.18, steel: bool = True
) -> Tone:
    """A plucked string; steel is damped less where the instrument is brighter."""

    def tone(frequency: float, n: int, patch: Patch) -> Samples:
        return plucked_string(
            frequency,
            n,
            decay=decay,
            damping=damping / patch.brightness if steel else damping,
            softness=softness,
            position=position,
            seed=patch.seed,
        )

    return tone


_steel_string = _string(decay=3.5, damping=0.45, softness=0.12)
_nylon_string = _string(decay=2.2, damping=1.0, softness=0.9, steel=False)
_harp = _string(decay=4.0, damping=0.8, softness=0.6, position=0.45, steel=False)
_electric_string = _string(decay=4.5, damping=0.6, softness=0.4)
_electric_bass = _string(decay=3.0, damping=1.6, softness=1.6)


def _lead_string(frequency: float, n: int, patch: Patch) -> Samples:
    """A string held by feedback, with the vibrato of the left hand."""
    t = times(n)
    phase = phase_of(frequency, n, vibrato=0.35, scoop=-0.6)
    bright = 0.82 + 0.1 * np.exp(-t / 0.1)
    return harmonic_tone(phase, _series(frequency, 0.6, most=20), bright)


def _upright_bass(frequency: float, n: int, patch: Patch) -> Samples:
    tone = plucked_string(frequency, n, decay=1.3, damping=4.0, softness=4.0, seed=patch.seed)
    thump = np.exp(-times(n) / 0.02) * low_pass(noise(n, patch.seed), 300)
    return (tone + 0.3 * thump).astype(np.float32)


def _filtered_saw(slope: float, *, shut: float, sweep: float, seconds: float) -> Tone:
    """A saw-tooth through a filter that shuts."""

    def tone(frequency: float, n: int, patch: Patch) -> Samples:
        bright = shut + sweep * np.exp(-times(n) / (seconds * patch.brightness))
        return harmonic_tone(phase_of(frequency, n), _series(frequency, slope, most=24), bright)

    return tone


_synth_bass = _filtered_saw(0.8, shut=0.55, sweep=0.38, seconds=0.18)
_synth_stab = _filtered_saw(0.7, shut=0.6, sweep=0.35, seconds=0.12)
_saw_pluck = _filtered_saw(0.6, shut=0.4, sweep=0.55, seconds=0.09)


def _bowed(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    series = _series(frequency, 0.75, most=24)
    k = np.arange(1, len(series) + 1) * frequency
    series *= 0.5 + np.exp(-(((k - 500) / 300) ** 2)) + 0.8 * np.exp(-(((k - 2_500) / 900) ** 2))
    phase = phase_of(frequency, n, vibrato=0.25, vibrato_rate=5.8)
    bow = 1 + 0.15 * np.minimum(1, t / 0.4)
    return (bow * harmonic_tone(phase, series, min(0.97 * patch.brightness**0.1, 0.99))).astype(
        np.float32
    )


def _flute(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    phase = phase_of(frequency, n, vibrato=0.2, vibrato_rate=5.0)
    series = np.array([1.0, 0.35, 0.12, 0.04])[: n_harmonics(frequency, most=4)]
    breath = band_pass(noise(n, patch.seed), frequency, min(4 * frequency, 9_000))
    chiff = 0.12 + 0.5 * np.exp(-t / 0.05)
    return (harmonic_tone(phase, series, 0.9) + 0.35 * chiff * breath).astype(np.float32)


def _trumpet(frequency: float, n: int, patch: Patch) -> Samples:
    """Brass grows brighter as it grows louder."""
    t = times(n)
    bright = 0.9 - 0.35 * np.exp(-t / 0.06) - 0.06 * np.minimum(1, t)
    phase = phase_of(frequency, n, vibrato=0.15, scoop=-0.5)
    return harmonic_tone(phase, _series(frequency, 0.25, most=16), bright * patch.brightness**0.1)


def _saxophone(frequency: float, n: int, patch: Patch) -> Samples:
    series = _series(frequency, 0.6, most=24)
    k = np.arange(1, len(series) + 1) * frequency
    series *= 0.3 + np.exp(-(((k - 900) / 500) ** 2)) + 0.5 * np.exp(-(((k - 2_300) / 700) ** 2))
    phase = phase_of(frequency, n, vibrato=0.3, vibrato_rate=4.8, scoop=-0.9)
    reed = band_pass(noise(n, patch.seed), 1_000, 5_000)
    return (harmonic_tone(phase, series, 0.96) + 0.06 * reed).astype(np.float32)


def _bells(frequency: float, n: int, patch: Patch) -> Samples:
    return struck_bar(
        frequency,
        n,
        ratios=[0.5, 1.0, 2.0, 2.76, 4.1, 5.43],
        levels=[0.3, 0.7, 0.4, 0.45 * patch.brightness, 0.25, 0.2],
        decays=[2.5, 2.0, 1.0, 0.8, 0.4, 0.25],
    )


def _vibraphone(frequency: float, n: int, patch: Patch) -> Samples:
    return struck_bar(
        frequency, n, ratios=[1.0, 4.0, 10.0], levels=[1.0, 0.25, 0.06], decays=[1.8, 0.5, 0.08]
    )


def _synth_lead(frequency: float, n: int, patch: Patch) -> Samples:
    """A square wave: odd harmonics only."""
    series = _series(frequency, 1.0, most=20)
    series[1::2] *= 0.15
    bright = np.minimum(0.99, 0.9 + 0.09 * np.exp(-times(n) / 0.2)) * min(1, patch.brightness**0.05)
    return harmonic_tone(phase_of(frequency, n, vibrato=0.15), series, bright)


def _synth_pluck(frequency: float, n: int, patch: Patch) -> Samples:
    return (np.exp(-times(n) / 0.35) * _saw_pluck(frequency, n, patch)).astype(np.float32)


def _synth_pad(frequency: float, n: int, patch: Patch) -> Samples:
    """Two saw-tooths a little apart, through a filter that breathes."""
    t = times(n)
    series = _series(frequency, 1.0, most=16)
    bright = (0.72 + 0.16 * np.sin(2 * np.pi * 0.15 * t)) * min(1.05, patch.brightness**0.2)
    lower, upper = (phase_of(frequency * ratio, n) for ratio in (0.9975, 1.0025))
    return harmonic_tone(lower, series, bright) + harmonic_tone(upper, series, bright)


TREATMENTS: dict[str, Treatment] = {
    "amplified": lambda x, patch: amplifier(x, drive=patch.drive),
    "warm": lambda x, patch: amplifier(x, drive=0.6),
    "ensemble": lambda x, patch: chorus(x, seed=patch.seed),
    "rotary": lambda x, patch: tremolo(x, rate=6.2, depth=0.25),
    "soft tremolo": lambda x, patch: tremolo(x, rate=4.5, depth=0.2),
}

INSTRUMENTS: dict[str, Instrument] = {
    "piano": Instrument(_piano, release=0.12, acoustic=True),
    "electric piano": Instrument(_electric_piano, release=0.12, treatment="soft tremolo"),
    "organ": Instrument(_organ, 0.01, 0.05, "rotary"),
    "acoustic guitar": Instrument(_steel_string, release=0.15, acoustic=True),
    "harp": Instrument(_harp, release=0.6, wet=0.5, acoustic=True),
    "electric guitar": Instrument(_electric_string, release=0.1, treatment="warm"),
    "jazz guitar": Instrument(_nylon_string, release=0.1),
    "distorted guitar": Instrument(_electric_string, release=0.05, treatment="amplified", wet=0.12),
    "lead guitar": Instrument(_lead_string, 0.008, 0.08, "amplified", wet=0.35),
    "electric bass": Instrument(_electric_bass, release=0.06, wet=0.03),
    "upright bass": Instrument(_upright_bass, release=0.08, wet=0.1, acoustic=True),
    "synth bass": Instrument(_synth_bass, release=0.04, wet=0.03, electronic=True),
    "cello": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "violin": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "fiddle": Instrument(_bowed, 0.03, 0.08, acoustic=True),
    "strings": Instrument(_bowed, 0.18, 0.35, "ensemble", wet=0.5, acoustic=True),
    "flute": Instrument(_flute, 0.04, 0.09, wet=0.4, acoustic=True),
    "trumpet": Instrument(_trumpet, 0.025, 0.07, wet=0.35, acoustic=True),
    "saxophone": Instrument(_saxophone, 0.03, 0.07, wet=0.35, acoustic=True),
    "bells": Instrument(_bells, release=0.9, wet=0.6),
    "vibraphone": Instrument(_vibraphone, release=0.4, treatment="soft tremolo", acoustic=True),
    "synth lead": Instrument(_synth_lead, 0.006, 0.06, wet=0.35, electronic=True),
    "synth pluck": Instrument(_synth_pluck, 0.002, 0.06, wet=0.4, electronic=True),
    "synth stab": Instrument(_synth_stab, 0.004, 0.07, "ensemble", wet=0.3, electronic=True),
    "synth pad": Instrument(_synth_pad, 0.35, 0.7, "ensemble", wet=0.6, electronic=True),
}


KITS = ("acoustic kit", "drum machine", "brushes")


def play_drums(
    notes: list[Note], kit: str, n: int, *, brightness: float = 1.0, seed: int = 0
) -> Samples:
    """The strokes of a part on one kit, in n samples."""
    out = np.zeros(n, np.float32)
    strokes: dict[str, Samples] = {}
    for note in notes:
        if note.kind not in strokes:
            level = np.float32(DRUMS[note.kind][0])
            strokes[note.kind] = level * stroke(note.kind, kit, brightness, seed)
        add_at(out, strokes[note.kind] * np.float32(note.force**1.3), round(note.start * RATE))
    return out


def add_at(out: Samples, sound: Samples, start: int) -> None:
    """Add a sound to ``out`` from a sample on, which may lie before the beginning."""
    first = max(-start, 0)
    last = min(len(sound), len(out) - start)
    if first < last:
        out[start + first : start + last] += sound[first:last]


@lru_cache(maxsize=64)
def stroke(drum: str, kit: str, brightness: float, seed: int) -> Samples:
    """One stroke on a drum of a kit, its peak near one."""
    sound = DRUMS[drum][1](kit, brightness, seed)
    sound = sound * np.minimum(1, times(len(sound))[::-1] / 0.01).astype(np.float32)
    return (sound / (np.abs(sound).max() + 1e-9)).astype(np.float32)


def _decay(seconds: float, fall: float) -> np.ndarray:
    return np.exp(-times(int(seconds * RATE)) / fall)


def _kick(kit: str, brightness: float, seed: int) -> Samples:
    """A membrane whose pitch drops, and the click of the beater."""
    low, sweep, fall = {
        "acoustic kit": (58.0, 90.0, 0.11),
        "drum machine": (46.0, 160.0, 0.22),
        "brushes": (62.0, 40.0, 0.09),
    }[kit]
    envelope = _decay(0.6, fall * (0.8 + 0.2 * brightness))
    t = times(len(envelope))
    phase = low * t + sweep * 0.03 * (1 - np.exp(-t / 0.03))
    click = low_pass(noise(len(t), seed), 3_500) * np.exp(-t / 0.004)
    amount = 0.1 if kit == "brushes" else 0.5 * brightness
    return (np.sin(2 * np.pi * phase) * envelope + amount * click).astype(np.float32)


def _snare(kit: str, brightness: float, seed: int) -> Samples:
    """Skin and wires; a brush only sweeps the wires."""
    tone, fall, wires = {
        "acoustic kit": (0.6, 0.11, 1.0),
        "drum machine": (0.5, 0.08, 0.8),
        "brushes": (0.12, 0.07, 0.6),
    }[kit]
    envelope = _decay(0.4, fall)
    n = len(envelope)
    skin = struck_bar(188, n, ratios=[1, 1.59], levels=[1, 0.6], decays=[0.07, 0.04])
    if kit == "brushes":
        envelope = envelope * np.minimum(1, times(n) / 0.012)
    hiss = band_pass(noise(n, seed + 1), 1_400, min(6_500 * brightness, 10_000))
    return (tone * skin + 2 * wires * envelope * hiss).astype(np.float32)


def _clap(kit: str, brightness: float, seed: int) -> Samples:
    """Several hands a few milliseconds apart."""
    t = times(int(0.3 * RATE))
    envelope = np.exp(-t / 0.09) * 0.5
    for delay in (0.0, 0.011, 0.023):
        envelope += np.where(t >= delay, np.exp(-(t - delay) / 0.006), 0)
    return (envelope * band_pass(noise(len(t), seed + 2), 900, 3_200)).astype(np.float32)


def _cymbal(
    seconds: float, fall: float, low: float, metal: float
) -> Callable[[str, float, int], Samples]:
    """Noise above ``low`` hertz, with a few clashing tones."""

    def sound(kit: str, brightness: float, seed: int) -> Samples:
        envelope = _decay(seconds, fall * (0.8 + 0.2 * brightness))
        n = len(envelope)
        base = 2_300 + 700 * brightness
        ring = struck_bar(base, n, ratios=_CLANG, levels=[0.4] * 8, decays=[fall] * 8)
        hiss = high_pass(noise(n, seed + 3), min(low * brightness**0.3, 9_500), order=4)
        amount = metal * (0.4 if kit == "brushes" else 1.0)
        return (envelope * hiss + amount * ring).astype(np.float32)

    return sound


# Partials of a metal plate: no two of them in tune.
_CLANG = [1.0, 1.17, 1.34, 1.56, 1.73, 1.98, 2.21, 2.53]


def _shaker(kit: str, brightness: float, seed: int) -> Samples:
    t = times(int(0.12 * RATE))
    envelope = np.minimum(1, t / 0.02) * np.exp(-t / 0.035)
    return (envelope * high_pass(noise(len(t), seed + 4), 4_500)).astype(np.float32)


def _tom(kit: str, brightness: float, seed: int) -> Samples:
    envelope = _decay(0.5, 0.14)
    t = times(len(envelope))
    phase = 98 * t + 30 * 0.05 * (1 - np.exp(-t / 0.05))
    return (np.sin(2 * np.pi * phase) * envelope).astype(np.float32)


# Each drum's level beside the others, and one stroke on it: (kit, brightness, seed) → samples.
DRUMS: dict[str, tuple[float, Callable[[str, float, int], Samples]]] = {
    "kick": (0.85, _kick),
    "snare": (0.85, _snare),
    "clap": (0.7, _clap),
    "tom": (0.7, _tom),
    "hat": (0.32, _cymbal(0.09, 0.022, 7_000, 0.15)),
    "pedal": (0.2, _cymbal(0.07, 0.015, 5_500, 0.15)),
    "open": (0.36, _cymbal(0.4, 0.12, 6_500, 0.15)),
    "ride": (0.25, _cymbal(0.7, 0.22, 5_500, 0.35)),
    "crash": (0.45, _cymbal(1.6, 0.45, 3_500, 0.1)),
    "shaker": (0.3, _shaker),
}


# Centre frequencies in hertz of a man's resonances; a woman's tract is shorter by a sixth.
VOWELS = {
    "a": (730, 1_090, 2_440, 3_400),
    "e": (530, 1_840, 2_480, 3_500),
    "i": (290, 2_250, 2_960, 3_600),
    "o": (500, 880, 2_540, 3_300),
    "u": (330, 760, 2_240, 3_200),
}
LEVELS = (1.0, 0.55, 0.25, 0.1)
BANDWIDTHS = (80.0, 100.0, 130.0, 180.0)
FEMALE_SHIFT = 1.17

SYLLABLES = tuple(
    (consonant, vowel) for consonant in ("", "s", "t", "l", "k", "", "m", "sh") for vowel in VOWELS
)


def sing(
    notes: list[Note], n: int, *, female: bool, style: str, brightness: float = 1.0, seed: int = 0
) -> Samples:
    """One syllable per note, in n samples; styles are those of the vocal patterns."""
    out = np.zeros(n, np.float32)
    spoken = style == "rap"
    effort = {"shout": 1.35, "rap": 1.15}.get(style, 1.0) * brightness**0.5
    for note in notes:
        consonant, vowel = SYLLABLES[int(note.kind) % len(SYLLABLES)]
        length = min(note.length, 0.22) if spoken else note.length
        sound = _syllable(
            pitch_to_hertz(note.pitch), round(length, 2), vowel, female, spoken, effort
        )
        add_at(out, sound * np.float32(note.force), round(note.start * RATE))
        if consonant:
            burst = _consonant(consonant, seed) * np.float32(note.force * (1.3 if spoken else 0.8))
            add_at(out, burst, round(note.start * RATE) - len(burst) // 2)
    return out


@lru_cache(maxsize=64)
def _syllable(
    frequency: float, length: float, vowel: str, female: bool, spoken: bool, effort: float
) -> Samples:
    n = int((length + 0.08) * RATE)
    t = times(n)
    if spoken:
        phase = phase_of(frequency, n, scoop=2.5)
    else:
        phase = phase_of(frequency, n, vibrato=0.45, vibrato_rate=5.6, delay=0.3, scoop=-1.2)
    amplitudes = vowel_spectrum(frequency, vowel, female=female, effort=effort)
    swell = 0.93 + 0.05 * np.minimum(1, t / 0.15)
    tone = harmonic_tone(phase, amplitudes, swell)
    breath = 0.02 * band_pass(noise(n, 5), 1_500, 6_000)
    attack = np.minimum(1, t / 0.035)
    release = np.clip((length + 0.08 - t) / 0.08, 0, 1)
    return ((tone + breath) * attack * release).astype(np.float32)


def vowel_spectrum(frequency: float, vowel: str, *, female: bool, effort: float = 1.0) -> Doubles:
    """Amplitudes of the harmonics of a sung vowel.

    The source falls as 1/k^(1.1 / effort); the tract multiplies it with the sum of its resonances,
    L / (1 + ((f - F) / B)²) each.
    """
    k = np.arange(1, n_harmonics(frequency, ceiling=5_500, most=44) + 1)
    shift = FEMALE_SHIFT if female else 1.0
    tract = np.full(len(k), 0.02)
    for centre, level, width in zip(VOWELS[vowel], LEVELS, BANDWIDTHS, strict=True):
        tract += level / (1 + ((k * frequency - shift * centre) / width) ** 2)
    amplitudes = tract / k ** (0.6 / effort)
    return amplitudes / np.sqrt(np.sum(amplitudes**2))


@lru_cache(maxsize=32)
def _consonant(kind: str, seed: int) -> Samples:
    seconds, low, level = {
        "s": (0.09, 5_000, 0.22),
        "sh": (0.09, 2_200, 0.22),
        "t": (0.025, 3_000, 0.4),
        "k": (0.03, 1_400, 0.4),
        "l": (0.04, 400, 0.05),
        "m": (0.06, 200, 0.05),
    }[kind]
    n = int(seconds * RATE)
    shape = np.sin(np.linspace(0, np.pi, n)) if seconds > 0.035 else np.exp(-times(n) / 0.007)
    sound = high_pass(noise(n, seed % 1_000 + len(kind)), low)
    return (level * shape * sound).astype(np.float32)


# How much of the drums and of a voice goes to the reverberation.
DRUM_WET = 0.12
VOICE_WET = 0.3
# A level below which strokes are meant to be soft, and are not brought up in the mix.
QUIETEST_DRUMS = 0.12


def render(clip: SyntheticClip, seconds: float) -> Samples:
    """The clip's sound, mono at ``RATE``, |x| < 1: (seconds · RATE,) float32."""
    n = round(seconds * RATE)
    dry = np.zeros(n, np.float32)
    send = np.zeros(n, np.float32)
    for part in clip.parts:
        sound, wet = _play(clip, part, n)
        quietest = QUIETEST_DRUMS if part.role == "drums" else 1e-9
        sound *= np.float32(10 ** (part.gain / 20) / max(active_rms(sound), quietest))
        dry += sound
        send += np.float32(wet) * sound
    mix = dry + reverberate(send, clip.track.room, seed=clip.track.seed)
    if clip.track.lofi:
        mix = old_recording(mix, seed=clip.seed)
    mix *= np.float32(10 ** (clip.loudness / 20) / (rms(mix) + 1e-9))
    return fade(limit(mix))


def _play(clip: SyntheticClip, part: Part, n: int) -> tuple[Samples, float]:
    notes = notes_of(clip, part, n / RATE)
    if part.instrument in KITS:
        drums = play_drums(notes, part.instrument, n, brightness=part.brightness, seed=part.seed)
        return drums, DRUM_WET
    if part.role == "voice":
        female = part.instrument == "female voice"
        voice = sing(
            notes, n, female=female, style=part.pattern, brightness=part.brightness, seed=part.seed
        )
        return voice, VOICE_WET
    instrument = INSTRUMENTS[part.instrument]
    patch = Patch(part.brightness, clip.track.drive, part.seed)
    sound = play_notes(notes, instrument, patch, n)
    if instrument.treatment is not None:
        sound = TREATMENTS[instrument.treatment](sound, patch)
    return sound, instrument.wet


def play_notes(notes: list[Note], instrument: Instrument, patch: Patch, n: int) -> Samples:
    """All notes of a part; each pitch is computed once, as long as its longest note."""
    out = np.zeros(n, np.float32)
    longest: dict[float, float] = {}
    for note in notes:
        longest[note.pitch] = max(longest.get(note.pitch, 0.0), note.length)
    tones = {
        pitch: instrument.tone(
            pitch_to_hertz(pitch), int((length + instrument.release) * RATE) + 1, patch
        )
        for pitch, length in longest.items()
    }
    for note in notes:
        size = int((note.length + instrument.release) * RATE)
        sound = tones[note.pitch][:size] * np.float32(note.force**1.3)
        add_at(out, _shaped(sound, instrument), round(note.start * RATE))
    return out


def _shaped(sound: Samples, instrument: Instrument) -> Samples:
    """Bring a note in and let it die away."""
    attack = min(int(instrument.attack * RATE), len(sound))
    release = min(int(instrument.release * RATE), len(sound))
    sound[:attack] *= _ramp(attack)
    sound[len(sound) - release :] *= _ramp(release)[::-1] ** 2
    return sound


@lru_cache(maxsize=64)
def _ramp(n: int) -> Samples:
    return np.linspace(0, 1, n, dtype=np.float32)
