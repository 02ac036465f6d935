"""What is heard: tones, instruments, three drum kits and voices; and the mix of a clip.

Tones are harmonic oscillators, plucked strings, struck bars and noise: float32 samples at ``RATE``
with a peak or RMS near one. Loudness is decided in the mix.

An instrument is a function from a pitch to a tone long enough for its longest note, an attack, a
release and, for some, an amplifier. A drum is a skin and noise. A voice is a source rich in
harmonics and the resonances of a vowel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.signal import butter, fftconvolve, sosfilt

from harmonium.arrays import Doubles, Numbers
from harmonium.arrays import Floats as Samples
from harmonium.synthetic.music import Note, Part, SyntheticClip, notes_of

RATE = 22_050


@lru_cache(maxsize=1)
def _noise_table() -> Samples:
    noises = np.random.default_rng(1971).standard_normal(1 << 19, dtype=np.float32)
    noises.setflags(write=False)
    return noises


def times(n: int) -> Doubles:
    """The time of each of n samples, in seconds."""
    return np.arange(n) / RATE


def pitch_to_hertz(pitch: float) -> float:
    """440 · 2^((p - 69) / 12), p a MIDI note number."""
    return float(440.0 * 2.0 ** ((pitch - 69.0) / 12.0))


def phase_of(
    frequency: float,
    n: int,
    *,
    vibrato: float = 0.0,
    vibrato_rate: float = 5.5,
    delay: float = 0.25,
    scoop: float = 0.0,
) -> Doubles:
    """Cycles completed at each of n samples, φ(t) = ∫ f(t) dt.

    The vibrato, in semitones, reaches its full depth after about ``delay`` seconds. The pitch
    slides to its place from ``scoop`` semitones away in the first tenth of a second.
    """
    if not vibrato and not scoop:
        return frequency * times(n)
    t = times(n).astype(np.float32)
    bend = vibrato * np.minimum(1.0, t / delay) ** 2 * np.sin(2 * np.pi * vibrato_rate * t)
    bend += scoop * np.exp(-t / 0.04)
    return np.cumsum(frequency / RATE * np.exp2(bend / 12.0), dtype=np.float64)


def harmonic_tone(
    phase: Doubles, amplitudes: Doubles, brightness: Doubles | float = 1.0
) -> Samples:
    """Σ_k a_k r(t)^k sin(2πk φ(t)), by Horner's rule on z = r e^{2πiφ}.

    The brightness r(t) ≤ 1, (n,) or one number, takes harmonic k down by r^k, as a closing low-pass
    filter would: it decays for struck and plucked sounds, and rises in the attack of blown ones.
    The caller keeps the amplitudes, (K,), below the Nyquist frequency.
    """
    angle = (2 * np.pi * (phase % 1.0)).astype(np.float32)
    z = np.empty(len(angle), np.complex64)
    z.real, z.imag = np.cos(angle), np.sin(angle)
    z *= np.asarray(brightness, np.float32)
    total = np.full(len(z), amplitudes[-1], np.complex64)
    for amplitude in amplitudes[-2::-1].tolist():
        total *= z
        total += amplitude
    total *= z
    return total.imag.copy()


def n_harmonics(frequency: float, *, ceiling: float = 9_000.0, most: int = 32) -> int:
    """How many harmonics of a frequency lie below the ceiling; at least one, at most ``most``."""
    return int(np.clip(ceiling / frequency, 1, most))


def plucked_string(
    frequency: float,
    n: int,
    *,
    decay: float = 1.5,  # seconds in which the fundamental falls by 60 dB
    damping: float = 1.0,  # how often the averaging acts in one period; more is duller
    softness: float = 0.0,  # 0 for a plectrum, 1 and more for a soft thumb
    position: float = 0.18,  # where the string is plucked, as a share of its length
    seed: int = 0,  # of the noise burst
) -> Samples:
    """A plucked string after Karplus and Strong, all periods at once.

    Their loop averages two neighbouring samples of each period of N samples, which multiplies
    harmonic k by cos(πk/N) per period. So period p is the inverse transform of X_k · g_k^p, with X
    the spectrum of the noise burst that plucks the string (every harmonic equally strong, with a
    random phase, so that none is missing) and g the gain of the loop. The periods are stretched to
    the frequency by linear interpolation.
    """
    period = max(int(RATE / frequency), 4)
    n_periods = int(np.ceil(n * frequency / RATE)) + 2
    k = np.arange(period // 2 + 1)
    burst = np.exp(2j * np.pi * np.random.default_rng(seed).random(len(k)))
    burst *= np.abs(np.sin(np.pi * k * position)) * np.exp(-softness * k * frequency / 1_500)
    burst[0] = 0
    log_gain = damping * np.log(np.maximum(np.cos(np.pi * k / period), 1e-6))
    log_gain -= np.log(1_000.0) / (decay * frequency)
    spectrum = burst * np.exp(np.arange(n_periods)[:, None] * log_gain)  # (n_periods, N/2 + 1)
    wave = np.fft.irfft(spectrum, period).ravel()
    place = period * frequency / RATE * np.arange(n)
    left = place.astype(np.int64)
    share = place - left
    stretched = (wave[left] * (1 - share) + wave[left + 1] * share).astype(np.float32)
    return stretched / np.float32(np.abs(wave).max() + 1e-9)


def noise(n: int, seed: int) -> Samples:
    """White noise of unit variance: the stretch of one long table that the seed names."""
    table = _noise_table()
    if n > len(table):
        return np.resize(table, n)
    start = seed * 7_919 % (len(table) - n + 1)
    return table[start : start + n]


@lru_cache(maxsize=256)
def _sections(kind: str, order: int, *hertz: int) -> Numbers:
    """Second-order sections of a Butterworth filter; designing one costs more than applying it."""
    ends = hertz if len(hertz) > 1 else hertz[0]
    return butter(order, ends, kind, fs=RATE, output="sos").astype(np.float32)


def _filtered(kind: str, x: Samples, *hertz: float, order: int = 2) -> Samples:
    return sosfilt(_sections(kind, order, *map(round, hertz)), x)


low_pass, high_pass = partial(_filtered, "lowpass"), partial(_filtered, "highpass")
band_pass = partial(_filtered, "bandpass", order=1)  # Butterworth filters at these frequencies


def rms(x: Samples) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)) + 1e-20))


def active_rms(x: Samples) -> float:
    """The RMS over the samples at which anything sounds: rests do not make a part quieter."""
    square = np.square(x[: len(x) // 64 * 64].reshape(-1, 64)).mean(axis=1)
    sounding = square > 1e-3 * square.max() if len(square) else square > 0
    return float(np.sqrt(square[sounding].mean())) if sounding.any() else rms(x)


def amplifier(x: Samples, *, drive: float) -> Samples:
    """tanh(drive · x / rms) of a sound freed of its bass, then a loudspeaker.

    The loudspeaker emphasises 1.5 to 4 kHz, and passes neither deep bass nor high treble.
    """
    tight = x - np.float32(0.6) * low_pass(x, 250)
    shaped = np.tanh(tight * np.float32(drive / (active_rms(tight) + 1e-9)))
    return low_pass(high_pass(shaped, 80) + band_pass(shaped, 1_500, 4_000), 5_200)


@lru_cache(maxsize=8)
def room_response(seconds: float, seed: int) -> Samples:
    """The impulse response of a room: noise that decays by 60 dB in ``seconds``, highs first."""
    n = int(RATE * min(seconds, 3.0))
    t = times(n)
    tail = noise(n, seed) * np.exp(-np.log(1_000.0) * t / seconds).astype(np.float32)
    dull = low_pass(tail, 2_500)
    mix = np.exp(-t / (0.3 * seconds)).astype(np.float32)
    response = (tail * mix + dull * (1 - mix)) * np.minimum(1, t / 0.015).astype(np.float32)
    return response / np.float32(np.sqrt(np.sum(response**2)) + 1e-9)


def old_recording(x: Samples, *, seed: int) -> Samples:
    """A narrow band, hiss, and the crackle of a worn record, about 26 dB below the music."""
    rng = np.random.default_rng(seed)
    level = np.float32(rms(x))
    narrow = high_pass(low_pass(x, 3_600, order=4), 130)
    hiss = noise(len(x), seed) * level * np.float32(0.045)
    crackle = np.zeros(len(x), np.float32)
    hits = rng.integers(len(x), size=int(14 * len(x) / RATE))
    crackle[hits] = rng.laplace(0, 1.2, len(hits)) * level
    return narrow + hiss + high_pass(crackle, 900)


def limit(x: Samples, *, knee: float = 0.6, ceiling: float = 0.98) -> Samples:
    """Leave what is below the knee, and compress the rest so that nothing exceeds the ceiling."""
    over = np.abs(x) - knee
    bent = knee + (ceiling - knee) * np.tanh(np.maximum(over, 0) / (ceiling - knee))
    return np.where(over > 0, np.copysign(bent, x), x).astype(np.float32)


def fade(x: Samples) -> Samples:
    """Fade the ends in and out, so that a cut does not click."""
    n = min(int(0.01 * RATE), len(x) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
    x[:n] *= ramp
    x[len(x) - n :] *= ramp[::-1]
    return x


Tone = Callable[[float, int, Part], Numbers]


@dataclass(frozen=True)
class Instrument:
    """How notes are played on an instrument."""

    tone: Tone  # (frequency in hertz, number of samples, part) → samples
    attack: float = 0.004  # seconds in which a note fades in
    release: float = 0.08  # seconds in which it fades out when released
    wet: float = 0.25  # how much of it goes to the reverberation
    drive: float | None = None  # of its amplifier; 0: the track's
    electronic: bool = False  # whether it is a synthesiser
    acoustic: bool = False  # whether it is acoustic


def _fall(n: int, seconds: float) -> Doubles:
    """e^(-t / seconds) at each of n samples."""
    return np.exp(-times(n) / seconds)


def _held(
    frequency: float,
    n: int,
    part: Part,
    *,
    slope: float,
    most: int = 24,
    floor: float = 1.0,
    peaks: Sequence[tuple[float, float, float]] = (),
    even: float = 1.0,
    bright: float = 0.95,
    attack: float = 0.0,
    breath: float = 0.0,
    **bend: float,
) -> Samples:
    """A tone that is blown, bowed or held, with harmonics 1/k^slope.

    They are times a floor with peaks of (level, centre, width), even ones times ``even``. In the
    attack the brightness is ``attack`` higher, or lower. ``breath`` is the level of noise.
    """
    k = np.arange(1, n_harmonics(frequency, most=most) + 1)
    series = np.full(len(k), floor)
    for level, centre, width in peaks:
        series += level * np.exp(-(((k * frequency - centre) / width) ** 2))
    series *= np.where(k % 2, 1.0, even) / k**slope
    brightness = np.minimum(bright * part.brightness**0.1, 0.99) + attack * _fall(n, 0.07)
    tone = harmonic_tone(phase_of(frequency, n, **bend), series, np.minimum(brightness, 0.99))
    if not breath:
        return tone
    return tone + np.float32(breath) * band_pass(noise(n, part.seed), 1_000, 5_000)


def _struck(
    frequency: float, n: int, part: Part, *, fall: float, slope: float, bright: float, hammer: float
) -> Doubles:
    """Strings or tines under a hammer: bright at first, and higher ones fade faster."""
    k = np.arange(1, n_harmonics(frequency, most=20) + 1)
    series = (1 + 0.5 * np.cos(k)) / k**slope  # no two harmonics are alike
    brightness = np.minimum(bright * (0.5 + 0.5 * _fall(n, 0.35)) * part.brightness**0.3, 0.95)
    envelope = 0.5 * _fall(n, 0.22) + 0.5 * _fall(n, fall * (262 / frequency) ** 0.6)
    knock = _fall(n, 0.008) * low_pass(noise(n, part.seed), 1_200)
    return harmonic_tone(frequency * times(n), series, brightness) * envelope + hammer * knock


def _bar(
    frequency: float, n: int, part: Part, *, partials: Sequence[tuple[float, float, float]]
) -> Samples:
    """Partials of (ratio to the frequency, which need not be a whole number, level, decay)."""
    t = times(n)
    t32 = t.astype(np.float32)
    total = np.zeros(n, np.float32)
    for ratio, level, decay in partials:
        if ratio * frequency < 0.45 * RATE:
            angle = (2 * np.pi * ((ratio * frequency * t) % 1.0)).astype(np.float32)
            total += level * np.exp(-t32 / decay) * np.sin(angle)
    return total


def _string(
    frequency: float, n: int, part: Part, *, damping: float, steel: bool = True, **string: float
) -> Samples:
    """A plucked string; steel is damped less where the instrument is brighter."""
    damping = damping / part.brightness if steel else damping
    return plucked_string(frequency, n, damping=damping, seed=part.seed, **string)


def _saw(
    frequency: float, n: int, part: Part, *, shut: float, sweep: float, seconds: float, fall: float
) -> Doubles:
    """A saw-tooth through a closing filter."""
    k = np.arange(1, n_harmonics(frequency, most=24) + 1)
    bright = np.minimum(shut + sweep * _fall(n, seconds * part.brightness), 0.99)
    return harmonic_tone(frequency * times(n), 1 / k**0.7, bright) * _fall(n, fall)


_piano = partial(_struck, fall=3.2, slope=0.55, bright=0.9, hammer=0.25)
_electric_piano = partial(_struck, fall=1.6, slope=1.2, bright=0.7, hammer=0.05)
_organ = partial(_held, slope=0.4, most=8, bright=0.9, breath=0.02)
_steel_string = partial(_string, decay=3.5, damping=0.45, softness=0.12)
_nylon_string = partial(_string, decay=2.2, damping=1.0, softness=0.9, steel=False)
_electric_string = partial(_string, decay=4.5, damping=0.6, softness=0.4)
_bowed = partial(
    _held, slope=0.75, floor=0.5, peaks=[(1.0, 500, 300), (0.8, 2_500, 900)], vibrato=0.25
)
_bells = partial(_bar, partials=[(0.5, 0.3, 2.5), (1, 0.7, 2), (2.76, 0.45, 0.8), (5.4, 0.2, 0.3)])
_vibraphone = partial(_bar, partials=[(1.0, 1.0, 1.8), (4.0, 0.25, 0.5), (10.0, 0.06, 0.08)])
_saxophone = partial(
    _held, slope=0.6, floor=0.3, peaks=[(1, 900, 500), (0.5, 2_300, 700)], breath=0.06, scoop=-0.9
)

INSTRUMENTS: dict[str, Instrument] = {
    "piano": Instrument(_piano, release=0.12, acoustic=True),
    "electric piano": Instrument(_electric_piano, release=0.12),
    "organ": Instrument(_organ, 0.01, 0.05),
    "acoustic guitar": Instrument(_steel_string, release=0.15, acoustic=True),
    "harp": Instrument(_nylon_string, release=0.6, wet=0.5, acoustic=True),
    "electric guitar": Instrument(_electric_string, release=0.1, drive=0.6),
    "jazz guitar": Instrument(_nylon_string, release=0.1),
    "distorted guitar": Instrument(_electric_string, release=0.05, wet=0.12, drive=0),
    "lead guitar": Instrument(
        partial(_held, slope=0.6, bright=0.85, vibrato=0.35, scoop=-0.6), 0.008, wet=0.35, drive=0
    ),
    "electric bass": Instrument(partial(_string, decay=3.0, damping=1.6, softness=1.6), wet=0.03),
    "upright bass": Instrument(
        partial(_string, decay=1.3, damping=4.0, softness=4.0), wet=0.1, acoustic=True
    ),
    "synth bass": Instrument(
        partial(_saw, shut=0.55, sweep=0.38, seconds=0.18, fall=9.0), wet=0.03, electronic=True
    ),
    "cello": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "violin": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "fiddle": Instrument(_bowed, 0.03, 0.08, acoustic=True),
    "strings": Instrument(_bowed, 0.18, 0.35, wet=0.5, acoustic=True),
    "flute": Instrument(
        partial(_held, slope=1.5, most=4, breath=0.12, vibrato=0.2), 0.04, wet=0.4, acoustic=True
    ),
    "trumpet": Instrument(
        partial(_held, slope=0.25, most=16, bright=0.87, attack=-0.35, vibrato=0.15, scoop=-0.5),
        0.025,
        wet=0.35,
        acoustic=True,
    ),
    "saxophone": Instrument(_saxophone, 0.03, wet=0.35, acoustic=True),
    "bells": Instrument(_bells, release=0.9, wet=0.6),
    "vibraphone": Instrument(_vibraphone, release=0.4, acoustic=True),
    "synth lead": Instrument(
        partial(_held, slope=1.0, even=0.15, attack=0.04, vibrato=0.15), 0.006, electronic=True
    ),
    "synth pluck": Instrument(
        partial(_saw, shut=0.4, sweep=0.55, seconds=0.09, fall=0.35), wet=0.4, electronic=True
    ),
    "synth stab": Instrument(
        partial(_saw, shut=0.6, sweep=0.35, seconds=0.12, fall=9.0), wet=0.3, electronic=True
    ),
    "synth pad": Instrument(
        partial(_held, slope=1.0, bright=0.8, vibrato=0.1, vibrato_rate=0.7),
        0.35,
        0.7,
        0.6,
        electronic=True,
    ),
}


KITS = {  # pitch of the skins, how long they ring, how much the wires and cymbals sound
    "acoustic kit": (1.0, 1.0, 1.0),
    "drum machine": (0.8, 2.0, 0.8),
    "brushes": (1.07, 0.8, 0.5),
}


def play_drums(notes: list[Note], part: Part, n: int) -> Samples:
    """The strokes of a part on one kit, in n samples."""
    out = np.zeros(n, np.float32)
    for note in notes:
        level = np.float32(DRUMS[note.kind].level)
        sound = level * stroke(note.kind, part.instrument, part.brightness, part.seed)
        add_at(out, sound * np.float32(note.force**1.3), round(note.start * RATE))
    return out


def add_at(out: Samples, sound: Samples, start: int) -> None:
    """Add a sound to ``out`` starting at a sample, which may lie before the beginning."""
    first = max(-start, 0)
    last = min(len(sound), len(out) - start)
    if first < last:
        out[start + first : start + last] += sound[first:last]


@lru_cache(maxsize=64)
def stroke(name: str, kit: str, brightness: float, seed: int) -> Samples:
    """One stroke on a drum of a kit, its peak near one; the pitch of a skin drops."""
    drum, (pitch, ring, wires) = DRUMS[name], KITS[kit]
    n = int(drum.seconds * RATE)
    low = drum.band[0] * brightness**0.3
    high = min(max(drum.band[1] * brightness, 1.2 * low), 10_900)
    sound = wires * drum.rattle * _fall(n, drum.rattle_fall) * band_pass(noise(n, seed), low, high)
    if drum.skin:
        phase = drum.skin * pitch * (times(n) + 0.05 * (1 - _fall(n, 0.03)))
        sound += np.sin(2 * np.pi * phase) * _fall(n, drum.skin_fall * ring)
    sound *= np.minimum(1, times(n)[::-1] / 0.01)
    return (sound / (np.abs(sound).max() + 1e-9)).astype(np.float32)


class Drum(NamedTuple):
    """A skin that rings, and a rattle: noise above or between frequencies."""

    level: float  # beside the other drums
    seconds: float
    skin: float = 0.0  # hertz; 0: no skin
    skin_fall: float = 0.1  # seconds
    rattle: float = 1.0  # how much noise there is
    rattle_fall: float = 0.1
    band: tuple[float, float] = (1_400.0, 6_500.0)  # hertz


DRUMS = {
    "kick": Drum(0.85, 0.6, 58, 0.11, 0.3, 0.004, (100, 3_500)),
    "snare": Drum(0.85, 0.4, 188, 0.07, 2.0, 0.11),
    "clap": Drum(0.7, 0.3, rattle_fall=0.05, band=(900, 3_200)),
    "tom": Drum(0.7, 0.5, 98, 0.14, 0.1, 0.01),
    "hat": Drum(0.32, 0.09, rattle_fall=0.022, band=(7_000, 10_500)),
    "pedal": Drum(0.2, 0.07, rattle_fall=0.015, band=(5_500, 10_500)),
    "open": Drum(0.36, 0.4, rattle_fall=0.12, band=(6_500, 10_500)),
    "ride": Drum(0.25, 0.7, 2_900, 0.22, 0.7, 0.22, (5_500, 10_500)),
    "crash": Drum(0.45, 1.6, rattle_fall=0.45, band=(3_500, 10_500)),
    "shaker": Drum(0.3, 0.12, rattle_fall=0.035, band=(4_500, 10_500)),
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


def sing(notes: list[Note], part: Part, n: int) -> Samples:
    """One vowel per note, in n samples; styles are those of the vocal patterns."""
    out = np.zeros(n, np.float32)
    spoken, female = part.pattern == "rap", part.instrument == "female voice"
    effort = {"shout": 1.35, "rap": 1.15}.get(part.pattern, 1.0) * part.brightness**0.5
    for note in notes:
        vowel = tuple(VOWELS)[int(note.kind) % len(VOWELS)]
        length = min(note.length, 0.22) if spoken else note.length
        hertz = pitch_to_hertz(note.pitch)
        sound = _syllable(hertz, round(length, 2), vowel, female, spoken, effort)
        add_at(out, sound * np.float32(note.force), round(note.start * RATE))
    return out


@lru_cache(maxsize=64)
def _syllable(
    frequency: float, length: float, vowel: str, female: bool, spoken: bool, effort: float
) -> Samples:
    n = int((length + 0.08) * RATE)
    t = times(n)
    sung = {"vibrato": 0.45, "vibrato_rate": 5.6, "delay": 0.3, "scoop": -1.2}
    phase = phase_of(frequency, n, **({"scoop": 2.5} if spoken else sung))
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


DRUM_WET, VOICE_WET = 0.12, 0.3  # how much of them goes to the reverberation
QUIETEST_DRUMS = 0.12  # softer strokes are meant to be soft, and the mix does not raise them


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
    walls = room_response(round(clip.track.room, 2), clip.track.seed)
    mix = dry + fftconvolve(send, walls)[:n]
    if clip.track.lofi:
        mix = old_recording(mix, seed=clip.seed)
    mix *= np.float32(10 ** (clip.loudness / 20) / (rms(mix) + 1e-9))
    return fade(limit(mix))


def _play(clip: SyntheticClip, part: Part, n: int) -> tuple[Samples, float]:
    notes = notes_of(clip, part, n / RATE)
    if part.instrument in KITS:
        return play_drums(notes, part, n), DRUM_WET
    if part.role == "voice":
        return sing(notes, part, n), VOICE_WET
    instrument = INSTRUMENTS[part.instrument]
    sound = _play_notes(notes, instrument, part, n)
    if instrument.drive is not None:
        sound = amplifier(sound, drive=instrument.drive or clip.track.drive)
    return sound, instrument.wet


def _play_notes(notes: list[Note], instrument: Instrument, part: Part, n: int) -> Samples:
    """All notes of a part; each pitch is computed once, as long as its longest note."""
    out = np.zeros(n, np.float32)
    longest: dict[float, float] = {}
    for note in notes:
        longest[note.pitch] = max(longest.get(note.pitch, 0.0), note.length)
    tones = {
        pitch: instrument.tone(
            pitch_to_hertz(pitch), int((length + instrument.release) * RATE) + 1, part
        ).astype(np.float32, copy=False)
        for pitch, length in longest.items()
    }
    for note in notes:
        size = int((note.length + instrument.release) * RATE)
        sound = tones[note.pitch][:size] * np.float32(note.force**1.3)
        attack = min(int(instrument.attack * RATE), len(sound))
        release = min(int(instrument.release * RATE), len(sound))
        sound[:attack] *= _ramp(attack)
        sound[len(sound) - release :] *= _ramp(release)[::-1] ** 2
        add_at(out, sound, round(note.start * RATE))
    return out


@lru_cache(maxsize=64)
def _ramp(n: int) -> Samples:
    return np.linspace(0, 1, n, dtype=np.float32)
