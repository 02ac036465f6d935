"""Where musicnn listens, and its spectrum."""

import subprocess
import sys

import librosa
import numpy as np
import pytest
from sound_files import timed_noise, write_sndfile
from tiny_musicnn import write_tiny_weights

from harmonium.audio.extractors import get_extractor
from harmonium.audio.musicnn.listening import (
    HEAD_NAMES,
    HOP,
    PATCH_FRAMES,
    Patches,
    listen,
    log_mel_patches,
)
from harmonium.audio.windows import windows_of_samples
from harmonium.errors import DataError, ModelFileError

PATCH = PATCH_FRAMES * HOP


def firsts(length, start=None):
    """The number of each window's first frame."""
    return [(window.first + HOP) / HOP for window in Patches()(length, start)]


def librosa_frames(sound):
    mel = librosa.feature.melspectrogram(y=sound, sr=16_000, hop_length=256, n_fft=512, n_mels=96)
    return np.log10(1 + 10_000 * mel.T)


def test_up_to_ten_patches_are_contiguous_from_the_start():
    assert firsts(15 * 16_000) == [PATCH_FRAMES * k for k in range(5)]
    assert firsts(30 * 16_000) == [PATCH_FRAMES * k for k in range(10)]
    assert firsts(None) == [PATCH_FRAMES * k for k in range(10)]
    assert firsts(9 * PATCH, start=256) == [1 + PATCH_FRAMES * k for k in range(9)]


def test_of_a_longer_sound_ten_evenly_from_the_first_to_the_last():
    found = np.array(firsts(100 * PATCH)) / PATCH_FRAMES
    assert found.tolist() == [0, 11, 22, 33, 44, 55, 66, 77, 88, 99]
    found = np.array(firsts(11 * PATCH)) / PATCH_FRAMES
    assert len(found) == len(set(found)) == 10
    assert (found[0], found[-1]) == (0, 10)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_spectrum_is_that_of_librosa_centred_and_padded():
    sound = timed_noise(7, 16_000)[:, 0]
    frames = librosa_frames(sound)
    windows = windows_of_samples(sound, 16_000, Patches(), rate=16_000)
    assert len(windows) == 2
    found = np.concatenate([log_mel_patches(window)[0] for window in windows])
    np.testing.assert_allclose(found, frames[: 2 * PATCH_FRAMES], rtol=0, atol=2e-5)
    (window,) = windows_of_samples(sound[:16_000], 16_000, Patches(), rate=16_000)
    (patch,) = log_mel_patches(window)
    np.testing.assert_allclose(patch[:63], librosa_frames(sound[:16_000]), rtol=0, atol=2e-5)


def test_a_sound_that_is_shorter_than_a_patch_is_repeated():
    sound = timed_noise(1, 16_000)[:, 0]
    (window,) = windows_of_samples(sound, 16_000, Patches(), rate=16_000)
    (patch,) = log_mel_patches(window)
    assert len(np.unique(patch[:63], axis=0)) == 63  # a second is 63 frames
    np.testing.assert_array_equal(patch[63:126], patch[:63])
    np.testing.assert_array_equal(patch[126:], patch[: 187 - 126])


@pytest.mark.parametrize("seconds", [0.0001, 0.5, 4, 40])
def test_a_file_of_any_length(seconds, tmp_path, data_home):
    write_tiny_weights()
    sound = timed_noise(seconds + 0.01, 8_000)[: max(1, round(seconds * 8_000))]
    path = write_sndfile(tmp_path / "a.wav", sound, 8_000)
    heard = get_extractor("musicnn").hear_file(path)
    assert heard.features.shape == (400,)
    assert heard.heads.shape == (100,) == (len(HEAD_NAMES),)
    assert np.all((heard.heads > 0) & (heard.heads < 1))


def test_the_numbers_are_the_mean_over_patches(data_home):
    write_tiny_weights()
    sound = timed_noise(9.5, 16_000)[:, 0]
    windows = windows_of_samples(sound, 16_000, Patches(), rate=16_000)
    each = [listen(window, 16_000) for window in windows]
    heard = get_extractor("musicnn").hear_samples(sound, 16_000)
    assert len(each) == 3
    np.testing.assert_allclose(np.concatenate(heard), np.mean(each, axis=0), atol=1e-6)


def test_other_rates_and_no_sound():
    with pytest.raises(DataError, match="musicnn needs 16000 samples per second, got 8000"):
        listen(np.zeros(1000, np.float32), 8000)
    with pytest.raises(DataError, match="at least 512 samples"):
        log_mel_patches(np.zeros(100, np.float32))


def test_without_the_weights_it_says_how_to_get_them(data_home):
    with pytest.raises(ModelFileError, match="`harmonium extractor fetch musicnn` gets them"):
        listen(np.zeros(1000, np.float32), 16_000)


def test_one_file_needs_neither_jax_nor_tensorflow(data_home, tmp_path):
    write_tiny_weights()
    path = write_sndfile(tmp_path / "a.wav", timed_noise(4, 16_000), 16_000)
    program = (
        "import sys; from harmonium.audio import features_of_file; "
        f"features_of_file({str(path)!r}, 'musicnn'); "
        "print([name for name in ('jax', 'tensorflow', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
