"""What is heard: the parts of a clip, played and mixed."""

from functools import lru_cache

import numpy as np
from scipy.signal import fftconvolve

from harmonium.arrays import Floats as Samples
from harmonium.synthetic.drums import KITS, play_drums
from harmonium.synthetic.instruments import INSTRUMENTS, Instrument
from harmonium.synthetic.music import Part, SyntheticClip
from harmonium.synthetic.notes import Note, notes_of
from harmonium.synthetic.signals import (
    RATE,
    active_rms,
    add_at,
    amplifier,
    fade,
    limit,
    old_recording,
    pitch_to_hertz,
    rms,
    room_response,
)
from harmonium.synthetic.voices import sing

DRUM_REVERB = 0.12  # how much of the drums goes to the reverberation
VOICE_REVERB = 0.3
QUIETEST_DRUMS = 0.12  # softer strokes are meant to be soft, and the mix does not raise them


def render(clip: SyntheticClip, seconds: float) -> Samples:
    """The clip's sound, mono at ``RATE``, |x| < 1: (seconds · RATE,) float32."""
    n = round(seconds * RATE)
    dry = np.zeros(n, np.float32)
    to_reverb = np.zeros(n, np.float32)
    for part in clip.parts:
        sound = _play(clip, part, n)
        quietest = QUIETEST_DRUMS if part.role == "drums" else 1e-9
        sound *= np.float32(10 ** (part.gain / 20) / max(active_rms(sound), quietest))
        dry += sound
        to_reverb += np.float32(_reverb(part)) * sound
    room = room_response(round(clip.track.room, 2), clip.track.seed)
    mix = dry + fftconvolve(to_reverb, room)[:n]
    if clip.track.lofi:
        mix = old_recording(mix, seed=clip.seed)
    mix *= np.float32(10 ** (clip.loudness / 20) / (rms(mix) + 1e-9))
    return fade(limit(mix))


def _reverb(part: Part) -> float:
    """How much of a part goes to the reverberation."""
    if part.instrument in KITS:
        return DRUM_REVERB
    if part.role == "voice":
        return VOICE_REVERB
    return INSTRUMENTS[part.instrument].reverb


def _play(clip: SyntheticClip, part: Part, n: int) -> Samples:
    """What a part plays, in n samples, before the mix."""
    notes = notes_of(clip, part, n / RATE)
    if part.instrument in KITS:
        return play_drums(notes, part, n)
    if part.role == "voice":
        return sing(notes, part, n)
    instrument = INSTRUMENTS[part.instrument]
    sound = _play_notes(notes, instrument, part, n)
    if instrument.is_overdriven:
        return amplifier(sound, drive=clip.track.drive)
    if instrument.drive is not None:
        return amplifier(sound, drive=instrument.drive)
    return sound


def _play_notes(notes: list[Note], instrument: Instrument, part: Part, n: int) -> Samples:
    """All notes of a part; each pitch is computed once, as long as its longest note."""
    longest: dict[float, float] = {}
    for note in notes:
        longest[note.pitch] = max(longest.get(note.pitch, 0.0), note.length)
    tones = {}
    for pitch, length in longest.items():
        n_samples = int((length + instrument.release) * RATE) + 1
        tone = instrument.tone(pitch_to_hertz(pitch), n_samples, part)
        tones[pitch] = tone.astype(np.float32, copy=False)

    out = np.zeros(n, np.float32)
    for note in notes:
        n_samples = int((note.length + instrument.release) * RATE)
        sound = tones[note.pitch][:n_samples] * np.float32(note.force**1.3)
        attack = min(int(instrument.attack * RATE), len(sound))
        release = min(int(instrument.release * RATE), len(sound))
        sound[:attack] *= _ramp(attack)
        sound[len(sound) - release :] *= _ramp(release)[::-1] ** 2
        add_at(out, sound, round(note.start * RATE))
    return out


@lru_cache(maxsize=64)
def _ramp(n: int) -> Samples:
    return np.linspace(0, 1, n, dtype=np.float32)
