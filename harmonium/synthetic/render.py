"""From a clip to its samples: every part played, mixed, put in a room and brought to its level."""

from functools import lru_cache

import numpy as np

from harmonium.synthetic.drums import KITS, add_at, play_drums
from harmonium.synthetic.effects import (
    active_rms,
    fade,
    limit,
    old_recording,
    reverberate,
    rms,
)
from harmonium.synthetic.instruments import INSTRUMENTS, TREATMENTS, Instrument, Patch
from harmonium.synthetic.music import Part, SyntheticClip
from harmonium.synthetic.score import Note, notes_of
from harmonium.synthetic.tones import RATE, Samples, pitch_to_hertz
from harmonium.synthetic.voice import sing

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
