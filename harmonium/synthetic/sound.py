"""What is heard: tones, instruments, three drum kits and voices; and the mix of a clip.

Tones are harmonic oscillators, plucked strings, struck bars and noise: float32 samples at ``RATE``
with a peak or RMS near one. Loudness is decided in the mix.

An instrument is a function from a pitch to a tone long enough for its longest note, an attack, a
release and, for some, a treatment of everything it plays (an amplifier, a chorus). A voice is a
source rich in harmonics, the resonances of a vowel, and consonants of noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, fftconvolve, sosfilt

from harmonium.arrays import Doubles
from harmonium.arrays import Floats as Samples
from harmonium.synthetic.music import Note, Part, SyntheticClip, notes_of

RATE = 22_050


# Tones


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


def struck_bar(frequency: float, n: int, partials: Sequence[tuple[float, float, float]]) -> Samples:
    """Partials of (ratio to the frequency, which need not be a whole number, level, decay)."""
    t = times(n)
    t32 = t.astype(np.float32)
    total = np.zeros(n, np.float32)
    for ratio, level, decay in partials:
        if ratio * frequency < 0.45 * RATE:
            angle = (2 * np.pi * ((ratio * frequency * t) % 1.0)).astype(np.float32)
            total += level * np.exp(-t32 / decay) * np.sin(angle)
    return total


def noise(n: int, seed: int) -> Samples:
    """White noise of unit variance: the stretch of one long table that the seed names."""
    table = _noise_table()
    if n > len(table):
        return np.resize(table, n)
    start = seed * 7_919 % (len(table) - n + 1)
    return table[start : start + n]


@lru_cache(maxsize=256)
def _sections(order: int, hertz: float | tuple[float, float], kind: str) -> NDArray[np.float32]:
    """Second-order sections of a Butterworth filter; designing one costs more than applying it."""
    return butter(order, hertz, kind, fs=RATE, output="sos").astype(np.float32)


def low_pass(x: Samples, hertz: float, *, order: int = 2) -> Samples:
    """Butterworth low-pass filter."""
    return sosfilt(_sections(order, round(hertz), "lowpass"), x)


def high_pass(x: Samples, hertz: float, *, order: int = 2) -> Samples:
    """Butterworth high-pass filter."""
    return sosfilt(_sections(order, round(hertz), "highpass"), x)


def band_pass(x: Samples, low: float, high: float) -> Samples:
    """Butterworth band-pass filter."""
    return sosfilt(_sections(1, (round(low), round(high)), "bandpass"), x)


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


def chorus(x: Samples, *, seed: int) -> Samples:
    """The sound and two delayed copies whose delays sway: many players instead of one."""
    total = x.copy()
    start = np.random.default_rng(seed).uniform(0, 1, 2)
    for rate, phase in zip((0.7, 1.1), start, strict=True):
        seconds = np.float32(0.012) + np.float32(0.0025) * _sway(len(x), rate, phase)
        delay = seconds * np.float32(RATE)
        whole = np.ceil(delay).astype(np.int64)
        share = (whole - delay).astype(np.float32)
        before = int(whole.max())  # silence before the beginning
        padded = np.concatenate([np.zeros(before, np.float32), x, np.zeros(1, np.float32)])
        left = np.arange(before, before + len(x)) - whole
        total += padded[left] * (1 - share) + padded[left + 1] * share
    return total


def _sway(n: int, rate: float, phase: float = 0.0) -> Samples:
    """sin(2π (rate · t + phase))."""
    return np.sin((2 * np.pi * (rate * times(n) + phase)).astype(np.float32))


def tremolo(x: Samples, *, rate: float, depth: float) -> Samples:
    """A level that sways ``rate`` times a second."""
    return x * (1 - np.float32(depth) * (0.5 + 0.5 * _sway(len(x), rate)))


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


def reverberate(x: Samples, seconds: float, *, seed: int) -> Samples:
    """The sound that comes back from the walls, without the direct one."""
    return fftconvolve(x, room_response(round(seconds, 2), seed))[: len(x)]


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
    """Leave what is below the knee, and bend what is above so that nothing passes the ceiling."""
    over = np.abs(x) - knee
    bent = knee + (ceiling - knee) * np.tanh(np.maximum(over, 0) / (ceiling - knee))
    return np.where(over > 0, np.copysign(bent, x), x).astype(np.float32)


def fade(x: Samples) -> Samples:
    """Bring in and let out the ends, so that a cut is not a click."""
    n = min(int(0.01 * RATE), len(x) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
    x[:n] *= ramp
    x[len(x) - n :] *= ramp[::-1]
    return x


# Instruments

Tone = Callable[[float, int, Part], NDArray[np.floating]]


@dataclass(frozen=True)
class Instrument:
    """How notes are played on an instrument."""

    tone: Tone  # (frequency in hertz, number of samples, part) → samples
    attack: float = 0.004  # seconds in which a note comes in
    release: float = 0.08  # seconds in which it dies away when it is let go
    treatment: str | None = None  # a name in TREATMENTS, applied to all that it plays
    wet: float = 0.25  # how much of it goes to the reverberation
    electronic: bool = False  # whether it is a synthesiser
    acoustic: bool = False  # whether it needs no electricity


def _fall(n: int, seconds: float) -> Doubles:
    """e^(-t / seconds) at each of n samples."""
    return np.exp(-times(n) / seconds)


def _series(
    frequency: float,
    slope: float,
    most: int,
    floor: float = 1.0,
    peaks: Sequence[tuple[float, float, float]] = (),
) -> Doubles:
    """1/k^slope of the harmonics that fit, times a floor with peaks of (level, centre, width)."""
    k = np.arange(1, n_harmonics(frequency, most=most) + 1)
    shape = np.full(len(k), floor)
    for level, centre, width in peaks:
        shape += level * np.exp(-(((k * frequency - centre) / width) ** 2))
    return shape * k**-slope


def _tone(
    frequency: float, n: int, series: Doubles, bright: Doubles | float = 1.0, **bend: float
) -> Samples:
    return harmonic_tone(phase_of(frequency, n, **bend), series, bright)


def _piano(frequency: float, n: int, part: Part) -> Doubles:
    envelope = 0.55 * _fall(n, 0.22) + 0.45 * _fall(n, 3.2 * (262 / frequency) ** 0.6)
    bright = (0.45 + 0.45 * _fall(n, 0.35)) * min(1.0, 0.9 * part.brightness**0.3)
    series = _series(frequency, 0.55, 20)
    series *= 1 + 0.5 * np.cos(np.arange(1, len(series) + 1))  # no two harmonics alike
    hammer = _fall(n, 0.008) * low_pass(noise(n, part.seed), 1_200)
    return _tone(frequency, n, series, bright) * envelope + 0.25 * hammer


def _electric_piano(frequency: float, n: int, part: Part) -> Doubles:
    """A tine: nearly a sine that barks when struck, with a bell far above."""
    bark = np.minimum(0.25 + 0.45 * part.brightness * _fall(n, 0.4), 0.9)
    bell = struck_bar(frequency, n, [(7.0, 0.12, 0.15)])
    return _fall(n, 1.6) * _tone(frequency, n, _series(frequency, 0.3, 6), bark) + bell


def _organ(frequency: float, n: int, part: Part) -> Doubles:
    drawbars = np.array([0.8, 0.7, 0.6, 0.5, 0.0, 0.35, 0.0, 0.3]) * part.brightness ** np.arange(8)
    return _tone(frequency / 2, n, drawbars) + 0.2 * (_fall(n, 0.004) * noise(n, part.seed))


def _string(
    frequency: float, n: int, part: Part, *, damping: float, steel: bool = True, **string: float
) -> Samples:
    """A plucked string; steel is damped less where the instrument is brighter."""
    damping = damping / part.brightness if steel else damping
    return plucked_string(frequency, n, damping=damping, seed=part.seed, **string)


def _lead_string(frequency: float, n: int, part: Part) -> Samples:
    """A string held by feedback, with the vibrato of the left hand."""
    bright = 0.82 + 0.1 * _fall(n, 0.1)
    return _tone(frequency, n, _series(frequency, 0.6, 20), bright, vibrato=0.35, scoop=-0.6)


def _upright_bass(frequency: float, n: int, part: Part) -> Doubles:
    tone = plucked_string(frequency, n, decay=1.3, damping=4.0, softness=4.0, seed=part.seed)
    return tone + 0.3 * (_fall(n, 0.02) * low_pass(noise(n, part.seed), 300))


def _saw(
    frequency: float, n: int, part: Part, *, slope: float, shut: float, sweep: float, seconds: float
) -> Samples:
    """A saw-tooth through a filter that shuts."""
    bright = shut + sweep * _fall(n, seconds * part.brightness)
    return _tone(frequency, n, _series(frequency, slope, 24), bright)


def _bowed(frequency: float, n: int, part: Part) -> Doubles:
    series = _series(frequency, 0.75, 24, 0.5, [(1.0, 500, 300), (0.8, 2_500, 900)])
    bow = 1 + 0.15 * np.minimum(1, times(n) / 0.4)
    bright = min(0.97 * part.brightness**0.1, 0.99)
    return bow * _tone(frequency, n, series, bright, vibrato=0.25, vibrato_rate=5.8)


def _flute(frequency: float, n: int, part: Part) -> Doubles:
    series = np.array([1.0, 0.35, 0.12, 0.04])[: n_harmonics(frequency, most=4)]
    breath = band_pass(noise(n, part.seed), frequency, min(4 * frequency, 9_000))
    chiff = 0.12 + 0.5 * _fall(n, 0.05)
    tone = _tone(frequency, n, series, 0.9, vibrato=0.2, vibrato_rate=5.0)
    return tone + 0.35 * chiff * breath


def _trumpet(frequency: float, n: int, part: Part) -> Samples:
    """Brass grows brighter as it grows louder."""
    bright = 0.9 - 0.35 * _fall(n, 0.06) - 0.06 * np.minimum(1, times(n))
    bright = bright * part.brightness**0.1
    return _tone(frequency, n, _series(frequency, 0.25, 16), bright, vibrato=0.15, scoop=-0.5)


def _saxophone(frequency: float, n: int, part: Part) -> Samples:
    series = _series(frequency, 0.6, 24, 0.3, [(1.0, 900, 500), (0.5, 2_300, 700)])
    tone = _tone(frequency, n, series, 0.96, vibrato=0.3, vibrato_rate=4.8, scoop=-0.9)
    return tone + 0.06 * band_pass(noise(n, part.seed), 1_000, 5_000)


def _bells(frequency: float, n: int, part: Part) -> Samples:
    low = [(0.5, 0.3, 2.5), (1.0, 0.7, 2.0), (2.0, 0.4, 1.0), (2.76, 0.45 * part.brightness, 0.8)]
    return struck_bar(frequency, n, [*low, (4.1, 0.25, 0.4), (5.43, 0.2, 0.25)])


def _vibraphone(frequency: float, n: int, part: Part) -> Samples:
    return struck_bar(frequency, n, [(1.0, 1.0, 1.8), (4.0, 0.25, 0.5), (10.0, 0.06, 0.08)])


def _synth_lead(frequency: float, n: int, part: Part) -> Samples:
    """A square wave: odd harmonics only."""
    series = _series(frequency, 1.0, 20)
    series[1::2] *= 0.15
    bright = np.minimum(0.99, 0.9 + 0.09 * _fall(n, 0.2)) * min(1, part.brightness**0.05)
    return _tone(frequency, n, series, bright, vibrato=0.15)


def _synth_pluck(frequency: float, n: int, part: Part) -> Doubles:
    saw = _saw(frequency, n, part, slope=0.6, shut=0.4, sweep=0.55, seconds=0.09)
    return _fall(n, 0.35) * saw


def _synth_pad(frequency: float, n: int, part: Part) -> Samples:
    """Two saw-tooths a little apart, through a filter that breathes."""
    series = _series(frequency, 1.0, 16)
    bright = (0.72 + 0.16 * np.sin(2 * np.pi * 0.15 * times(n))) * min(1.05, part.brightness**0.2)
    lower, upper = (_tone(frequency * ratio, n, series, bright) for ratio in (0.9975, 1.0025))
    return lower + upper


_electric_string = partial(_string, decay=4.5, damping=0.6, softness=0.4)
_steel_string = partial(_string, decay=3.5, damping=0.45, softness=0.12)
_nylon_string = partial(_string, decay=2.2, damping=1.0, softness=0.9, steel=False)
_harp = partial(_string, decay=4.0, damping=0.8, softness=0.6, position=0.45, steel=False)
_electric_bass = partial(_string, decay=3.0, damping=1.6, softness=1.6)
_synth_bass = partial(_saw, slope=0.8, shut=0.55, sweep=0.38, seconds=0.18)
_synth_stab = partial(_saw, slope=0.7, shut=0.6, sweep=0.35, seconds=0.12)

TREATMENTS: dict[str, Callable[[Samples, Part, float], Samples]] = {
    "amplified": lambda x, part, drive: amplifier(x, drive=drive),
    "warm": lambda x, part, drive: amplifier(x, drive=0.6),
    "ensemble": lambda x, part, drive: chorus(x, seed=part.seed),
    "rotary": lambda x, part, drive: tremolo(x, rate=6.2, depth=0.25),
    "soft tremolo": lambda x, part, drive: tremolo(x, rate=4.5, depth=0.2),
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


KITS = {  # of the kick: hertz, sweep, fall; of the snare: skin, fall, wires
    "acoustic kit": ((58.0, 90.0, 0.11), (0.6, 0.11, 1.0)),
    "drum machine": ((46.0, 160.0, 0.22), (0.5, 0.08, 0.8)),
    "brushes": ((62.0, 40.0, 0.09), (0.12, 0.07, 0.6)),
}


def play_drums(notes: list[Note], part: Part, n: int) -> Samples:
    """The strokes of a part on one kit, in n samples."""
    out = np.zeros(n, np.float32)
    for note in notes:
        level = np.float32(DRUMS[note.kind][0])
        sound = level * stroke(note.kind, part.instrument, part.brightness, part.seed)
        add_at(out, sound * np.float32(note.force**1.3), round(note.start * RATE))
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
    sound = DRUMS[drum][1](kit, brightness, seed).astype(np.float32)
    sound = sound * np.minimum(1, times(len(sound))[::-1] / 0.01).astype(np.float32)
    return (sound / (np.abs(sound).max() + 1e-9)).astype(np.float32)


def _kick(kit: str, brightness: float, seed: int) -> Doubles:
    """A membrane whose pitch drops, and the click of the beater."""
    low, sweep, fall = KITS[kit][0]
    n = int(0.6 * RATE)
    phase = low * times(n) + sweep * 0.03 * (1 - _fall(n, 0.03))
    click = low_pass(noise(n, seed), 3_500) * _fall(n, 0.004)
    amount = 0.1 if kit == "brushes" else 0.5 * brightness
    return np.sin(2 * np.pi * phase) * _fall(n, fall * (0.8 + 0.2 * brightness)) + amount * click


def _snare(kit: str, brightness: float, seed: int) -> Doubles:
    """Skin and wires; a brush only sweeps the wires."""
    tone, fall, wires = KITS[kit][1]
    n = int(0.4 * RATE)
    envelope = _fall(n, fall)
    skin = struck_bar(188, n, [(1, 1, 0.07), (1.59, 0.6, 0.04)])
    if kit == "brushes":
        envelope = envelope * np.minimum(1, times(n) / 0.012)
    hiss = band_pass(noise(n, seed + 1), 1_400, min(6_500 * brightness, 10_000))
    return tone * skin + 2 * wires * envelope * hiss


def _clap(kit: str, brightness: float, seed: int) -> Doubles:
    """Several hands a few milliseconds apart."""
    n = int(0.3 * RATE)
    t, envelope = times(n), _fall(n, 0.09) * 0.5
    for delay in (0.0, 0.011, 0.023):
        envelope += np.where(t >= delay, np.exp(-(t - delay) / 0.006), 0)
    return envelope * band_pass(noise(n, seed + 2), 900, 3_200)


def _cymbal(
    kit: str, brightness: float, seed: int, *, seconds: float, fall: float, low: float, metal: float
) -> Doubles:
    """Noise above ``low`` hertz, with a few clashing tones, no two of them in tune."""
    n = int(seconds * RATE)
    clang = (1.0, 1.17, 1.34, 1.56, 1.73, 1.98, 2.21, 2.53)
    ring = struck_bar(2_300 + 700 * brightness, n, [(ratio, 0.4, fall) for ratio in clang])
    hiss = high_pass(noise(n, seed + 3), min(low * brightness**0.3, 9_500), order=4)
    amount = metal * (0.4 if kit == "brushes" else 1.0)
    return _fall(n, fall * (0.8 + 0.2 * brightness)) * hiss + amount * ring


def _shaker(kit: str, brightness: float, seed: int) -> Doubles:
    n = int(0.12 * RATE)
    envelope = np.minimum(1, times(n) / 0.02) * _fall(n, 0.035)
    return envelope * high_pass(noise(n, seed + 4), 4_500)


def _tom(kit: str, brightness: float, seed: int) -> Doubles:
    n = int(0.5 * RATE)
    phase = 98 * times(n) + 30 * 0.05 * (1 - _fall(n, 0.05))
    return np.sin(2 * np.pi * phase) * _fall(n, 0.14)


# Each drum's level beside the others, and one stroke on it: (kit, brightness, seed) → samples.
DRUMS: dict[str, tuple[float, Callable[[str, float, int], Doubles]]] = {
    "kick": (0.85, _kick),
    "snare": (0.85, _snare),
    "clap": (0.7, _clap),
    "tom": (0.7, _tom),
    "hat": (0.32, partial(_cymbal, seconds=0.09, fall=0.022, low=7_000, metal=0.15)),
    "pedal": (0.2, partial(_cymbal, seconds=0.07, fall=0.015, low=5_500, metal=0.15)),
    "open": (0.36, partial(_cymbal, seconds=0.4, fall=0.12, low=6_500, metal=0.15)),
    "ride": (0.25, partial(_cymbal, seconds=0.7, fall=0.22, low=5_500, metal=0.35)),
    "crash": (0.45, partial(_cymbal, seconds=1.6, fall=0.45, low=3_500, metal=0.1)),
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


def sing(notes: list[Note], part: Part, n: int) -> Samples:
    """One syllable per note, in n samples; styles are those of the vocal patterns."""
    out = np.zeros(n, np.float32)
    spoken, female = part.pattern == "rap", part.instrument == "female voice"
    effort = {"shout": 1.35, "rap": 1.15}.get(part.pattern, 1.0) * part.brightness**0.5
    for note in notes:
        consonant, vowel = SYLLABLES[int(note.kind) % len(SYLLABLES)]
        length = min(note.length, 0.22) if spoken else note.length
        hertz = pitch_to_hertz(note.pitch)
        sound = _syllable(hertz, round(length, 2), vowel, female, spoken, effort)
        add_at(out, sound * np.float32(note.force), round(note.start * RATE))
        if consonant:
            burst = _consonant(consonant, part.seed)
            burst = burst * np.float32(note.force * (1.3 if spoken else 0.8))
            add_at(out, burst, round(note.start * RATE) - len(burst) // 2)
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


DRUM_WET, VOICE_WET = 0.12, 0.3  # how much of them goes to the reverberation
QUIETEST_DRUMS = 0.12  # softer strokes are meant to be soft, and are not brought up in the mix


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
        return play_drums(notes, part, n), DRUM_WET
    if part.role == "voice":
        return sing(notes, part, n), VOICE_WET
    instrument = INSTRUMENTS[part.instrument]
    sound = _play_notes(notes, instrument, part, n)
    if instrument.treatment is not None:
        sound = TREATMENTS[instrument.treatment](sound, part, clip.track.drive)
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
