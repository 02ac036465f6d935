"""Files that are no music, or damaged, or missing: a result or one clear reason, and no noise."""

import os
import shutil
from functools import partial
from types import SimpleNamespace

import av
import numpy as np
import pytest
import soundfile
from sound_files import lag, timed_noise, write_ffmpeg, write_sndfile

from harmonium.audio import decode, decoding, ffmpeg, libsndfile
from harmonium.audio.decoding import quoted
from harmonium.errors import AudioError

RATE = 8_000
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060"
    "0000000400015a1d2d0f0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def sound():
    return timed_noise(3, RATE)


@pytest.fixture(scope="module")
def files(sound, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    return {
        "wav": write_sndfile(folder / "a.wav", sound, RATE),
        "mp3": write_sndfile(folder / "a.mp3", sound, RATE),
        "m4a": write_ffmpeg(folder / "a.m4a", sound, RATE, "aac"),
        "caf": write_sndfile(folder / "a.caf", sound, RATE, format="CAF", subtype="PCM_16"),
        "avi": write_ffmpeg(folder / "a.avi", sound, RATE, "pcm_s16le"),
    }


def refusal(path, **options) -> str:
    with pytest.raises(AudioError) as error:
        decode(path, **options)
    message = str(error.value)
    assert message.startswith(quoted(path))
    assert message.endswith(".")
    assert "\n" not in message
    return message.removeprefix(quoted(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.wav", b""),
        ("text.mp3", b"These are words.\n" * 5000),
        ("picture.jpg", PNG),
        ("picture.mp3", PNG * 2000),
        ("zeros.mp3", bytes(200_000)),
        ("noise.ogg", np.random.default_rng(0).bytes(200_000)),
        ("header.wav", b"RIFF\x24\x00\x00\x00WAVEfmt "),
        ("list.m3u8", b"#EXTM3U\n#EXTINF:10,\na.wav\n#EXT-X-ENDLIST\n"),
        ("list.ffconcat", b"ffconcat version 1.0\nfile a.wav\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_sound_is_refused(name, content, files, tmp_path, capfd):
    shutil.copy(files["wav"], tmp_path / "a.wav")  # what the playlists name
    path = tmp_path / name
    path.write_bytes(content)
    said = refusal(path)
    assert said.startswith(" cannot be decoded: " if content else " is empty.")
    if name == "text.mp3":
        assert "(libsndfile); " in said
        assert said.endswith("(ffmpeg).")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", [".", "/dev/null"])
def test_what_is_no_file_is_refused(path):
    assert refusal(path) == " cannot be opened: it is not a file."


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    assert refusal(tmp_path / "pipe.wav") == " cannot be opened: it is not a file."


ADDRESSES = ("http://127.0.0.1:9/a.m4a", "concat:a.m4a|b.m4a", "pipe:0", "file:a.m4a")


@pytest.mark.parametrize("name", ["none.wav", "", *ADDRESSES])
def test_a_file_that_does_not_exist(name, tmp_path, monkeypatch):
    """An address is a name like any other."""
    monkeypatch.chdir(tmp_path)
    assert refusal(name) == " cannot be opened: No such file or directory."


@pytest.mark.parametrize("name", ["a\0.wav", "a" * 300])
def test_an_impossible_name(name, tmp_path):
    assert refusal(str(tmp_path / name)).startswith(" cannot be opened: ")


def test_a_file_that_may_not_be_read(files, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)  # root, who runs many a test, may read all files
    assert refusal(files["wav"]) == " cannot be opened: Permission denied."


@pytest.mark.parametrize("kind", ["wav", "m4a"])
def test_a_disk_that_fails_while_it_is_read_is_a_reason(kind, files, monkeypatch):
    """The decoder is handed a descriptor that is closed, as of a disk that was pulled out."""
    opened = decoding._open

    def pulled_out(path):
        file = opened(path)
        os.close(file.fileno())
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # reading it is an error
        return file

    monkeypatch.setattr(decoding, "_open", pulled_out)
    assert " cannot be " in refusal(files[kind])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_refused(value, tmp_path):
    broken = timed_noise(3, RATE, 2)
    broken[2 * RATE + 80] = value, -value  # which cancel between the channels
    path = write_sndfile(tmp_path / "a.wav", broken, RATE, subtype="FLOAT")
    assert "its sample at 2.010 s is nan" in refusal(path)
    # outside the window they do not matter
    assert len(decode(path, seconds=1.5, start=0.1).samples) == 33_075


def test_an_impossible_rate_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", timed_noise(1, RATE), 3)
    assert "its rate is 3 Hz" in refusal(tmp_path / "a.wav")


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "opus", "wav"])
def test_a_truncated_file_gives_what_is_left(kind, tmp_path, capfd):
    sound = timed_noise(20, RATE)
    options = {"format": "OGG", "subtype": "OPUS"} if kind == "opus" else {}
    path = write_sndfile(tmp_path / f"a.{kind}", sound, RATE, **options)
    whole = path.read_bytes()
    for share in (0.9, 0.6, 0.3):
        path.write_bytes(whole[: int(share * len(whole))])
        # what came last is lost with its page, which holds up to two seconds
        assert 20 * share - 2.5 < len(decode(path, seconds=30).samples) / 22_050 < 20 * share + 0.5
    if kind != "wav":  # its header is shorter than this
        path.write_bytes(whole[: len(whole) // 100])
        assert refusal(path).startswith(" cannot be decoded: ")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["mp3", "flac"])
def test_the_middle_of_a_truncated_file_is_where_there_is_sound(kind, tmp_path):
    """The header still tells of 20 s."""
    sound = timed_noise(20, RATE)
    path = write_sndfile(tmp_path / f"a.{kind}", sound, RATE)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3])
    clip = decode(path, rate=RATE, seconds=4)
    assert (clip.duration, clip.start) == (20, 4)  # the middle, 8, is beyond the end
    assert lag(clip.samples, sound[:, 0], 4 * RATE) == 0
    assert "there is no sound from 15.0 s on of 20.0 s" in refusal(path, start=15)


def test_tags_around_the_sound_do_not_matter(files, tmp_path):
    def id3(content):
        size = bytes(len(content) >> shift & 127 for shift in (21, 14, 7, 0))
        return b"ID3\x04\x00\x00" + size + content

    picture = np.random.default_rng(0).bytes(1_000_000)
    whole = files["mp3"].read_bytes()
    path = tmp_path / "a.mp3"
    path.write_bytes(id3(b"APIC" + picture) + whole + b"APETAGEX" + picture[:5000])
    assert (decode(path).samples == decode(files["mp3"]).samples).all()


def test_ffmpeg_finds_the_sound_behind_rubbish(files, tmp_path):
    path = tmp_path / "a.mp3"
    path.write_bytes(bytes(70_000) + files["mp3"].read_bytes())
    assert decode(path, start=0).decoder == "ffmpeg"


@pytest.mark.parametrize(
    ("kind", "old", "new", "reason"),
    [
        # PyAV then has a stream without a rate and everything else.
        ("caf", b"lpcm", b"zzzz", "its sound cannot be made out (ffmpeg)."),
        ("avi", bytes.fromhex("0100010040"), bytes.fromhex("7777010040"), "made out (ffmpeg)."),
        # Bytes too many or too few make a length of what is none; PyAV printed the failing seeks.
        ("caf", bytes(4) + b"data", b"data", "."),
        ("caf", bytes(4) + b"data", bytes(10) + b"data", "."),
    ],
)
def test_damaged_headers_are_refused_without_noise(kind, old, new, reason, files, tmp_path, capfd):
    whole = files[kind].read_bytes()
    assert old in whole
    (tmp_path / "a").write_bytes(whole.replace(old, new, 1))
    said = refusal(tmp_path / "a")
    assert said.startswith(" cannot be decoded: ")
    assert said.endswith(reason)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["open", "demux"])
def test_whatever_pyav_raises_is_a_reason(method, files, monkeypatch):
    opened = av.open

    def broken(*arguments, **options):
        raise IndexError("list index out of range")  # as for a damaged transport stream

    def open_broken(*arguments, **options):
        container = opened(*arguments, **options)
        own = {"streams": container.streams, "close": container.close}
        return SimpleNamespace(**own, duration=None, demux=broken)

    monkeypatch.setattr(av, "open", broken if method == "open" else open_broken)
    assert refusal(files["m4a"]).endswith("its sound cannot be made out (ffmpeg).")


@pytest.mark.parametrize("kind", ["wav", "mp3", "m4a"])
def test_only_the_window_of_a_long_file_is_decoded(kind, tmp_path, monkeypatch):
    decoded = []
    real = libsndfile.mean_of_channels

    def counting(frames):
        decoded.append(len(frames))
        return real(frames)

    for module in (libsndfile, ffmpeg):
        monkeypatch.setattr(module, "mean_of_channels", counting)
    write = partial(write_ffmpeg, codec="aac") if kind == "m4a" else write_sndfile
    clip = decode(write(tmp_path / f"a.{kind}", timed_noise(120, RATE), RATE), seconds=2)
    assert clip.duration == pytest.approx(120, abs=0.1)
    assert clip.start == pytest.approx(59, abs=0.1)
    assert len(clip.samples) == 44_100
    assert sum(decoded) < 4 * RATE
