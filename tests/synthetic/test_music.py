"""What is played in the generated collection."""

from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.synthetic.music import make_clip, make_track
from harmonium.synthetic.notes import notes_of


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**31), number=st.integers(0, 10_000))
def test_every_track_can_be_played(seed, number):
    track = make_track(seed, number)
    assert 40 < track.tempo < 300
    assert any(part.role in ("chords", "pad", "arp", "lead") for part in track.parts)
    assert len({part.role for part in track.parts}) == len(track.parts)


def test_a_long_clip_begins_like_a_short_one():
    """Not to the sample (levels are set over the whole clip), but in its notes."""
    clip = make_clip(0, 5, 1)
    for part in clip.parts:
        short = notes_of(clip, part, 3.0)
        long = notes_of(clip, part, 30.0)
        assert short == [note for note in long if note.start < 3.0]


def test_every_part_of_a_clip_is_heard_in_it():
    """Else the truth would name what nobody can hear."""
    for number in range(200):
        clip = make_clip(1, number // 5, number % 5)
        for part in clip.parts:
            notes = notes_of(clip, part, 10.0)
            heard = sum(min(note.start + note.length, 10) - max(note.start, 0) for note in notes)
            assert heard > 0.5, (clip.id, part)
