"""The same music in every format: the same features, up to what the format leaves out."""

import numpy as np
import pytest
import soxr
from sound_files import write_ffmpeg, write_film, write_sndfile

from harmonium.audio import clip_features, decode, features_of_file
from harmonium.errors import AudioError
from harmonium.synthetic import make_collection

RATE = 48_000  # all of the formats have it
SECONDS = 6.0

# How far the features may be from the WAV's: root of the mean square over features, in units of
# their standard deviation between different pieces of music.
LOSSLESS, LOSSY, EIGHT_BITS = 0.002, 0.08, 0.5

FORMATS = {
    "8-bit.wav": (EIGHT_BITS, {"subtype": "PCM_U8"}),
    "24-bit.wav": (LOSSLESS, {"subtype": "PCM_24"}),
    "float.wav": (LOSSLESS, {"subtype": "FLOAT"}),
    "a.flac": (LOSSLESS, {}),
    "a.aiff": (LOSSLESS, {"subtype": "PCM_16"}),
    "a.au": (LOSSLESS, {"subtype": "PCM_16"}),
    "alac.m4a": (LOSSLESS, {"codec": "alac"}),
    "constant.mp3": (LOSSY, {"bitrate_mode": "CONSTANT", "compression_level": 0.5}),
    "variable.mp3": (LOSSY, {"bitrate_mode": "VARIABLE", "compression_level": 0.2}),
    "vorbis.ogg": (LOSSY, {}),
    "a.opus": (LOSSY, {"format": "OGG", "subtype": "OPUS"}),
    "aac.m4a": (LOSSY, {"codec": "aac"}),
}


@pytest.fixture(scope="module")
def pieces():
    collection = make_collection(n_tracks=12, clips_per_track=1, clip_seconds=SECONDS, seed=3)
    return [collection.samples(index) for index in range(12)]


@pytest.fixture(scope="module")
def spread(pieces):
    """Standard deviation of each feature between pieces of music, (389,)."""
    return np.std([clip_features(samples, 22_050) for samples in pieces], axis=0)


@pytest.fixture(scope="module")
def stereo(pieces):
    left = soxr.resample(pieces[0], 22_050, RATE)
    return np.stack([left, 0.7 * left], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def of_wav(stereo, tmp_path_factory):
    path = tmp_path_factory.mktemp("wav") / "16-bit.wav"
    return features_of_file(write_sndfile(path, stereo, RATE, subtype="PCM_16"))


def test_a_wav_file_has_the_features_of_its_samples(stereo, of_wav, spread):
    samples = soxr.resample(stereo.mean(axis=1), RATE, 22_050)
    distance = (of_wav - clip_features(samples, 22_050)) / spread
    assert np.sqrt(np.mean(distance**2)) < LOSSLESS


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_features_of_the_wav_file(name, stereo, of_wav, spread, tmp_path):
    most, options = FORMATS[name]
    write = write_ffmpeg if "codec" in options else write_sndfile
    path = write(tmp_path / name, stereo, RATE, **options)
    distance = (features_of_file(path) - of_wav) / spread
    assert np.sqrt(np.mean(distance**2)) < most


@pytest.mark.parametrize(
    ("name", "options", "decoder"),
    [
        ("a.mp3", {}, "libsndfile"),
        ("a.opus", {"format": "OGG", "subtype": "OPUS"}, "libsndfile"),
        ("a.m4a", {"codec": "aac"}, "ffmpeg"),
        ("bare.aac", {"codec": "aac", "container": "adts"}, "ffmpeg"),
        ("opus.webm", {"codec": "libopus"}, "ffmpeg"),
        ("a.wma", {"codec": "wmav2", "container": "asf", "b": "128000"}, "ffmpeg"),
        ("a.wv", {"codec": "wavpack"}, "ffmpeg"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_libsndfile_is_asked_first_and_ffmpeg_for_the_rest(
    name, options, decoder, stereo, tmp_path
):
    write = write_ffmpeg if "codec" in options else write_sndfile
    path = write(tmp_path / name, stereo[: 2 * RATE], RATE, **options)
    clip = decode(path)
    assert clip.decoder == decoder
    assert clip.duration == pytest.approx(2, abs=0.2)
    # the ending of the name does not matter
    assert decode(path.rename(tmp_path / "music")).samples.tobytes() == clip.samples.tobytes()


def test_the_sound_of_a_film(stereo, tmp_path):
    clip = decode(write_film(tmp_path / "film.mp4", stereo[: 2 * RATE], RATE))
    assert clip.decoder == "ffmpeg"
    # The last packet of AAC is as long as the others, wherever the sound ends.
    assert 0 <= len(clip.samples) - 2 * 22_050 <= 1024


def test_a_film_without_sound_is_refused(tmp_path):
    path = write_film(tmp_path / "silent.mp4", None, RATE)
    with pytest.raises(AudioError, match=r"silent\.mp4' cannot be decoded: .*no sound in it"):
        decode(path)
