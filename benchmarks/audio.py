"""From files to features: Harmonium and a librosa chain side by side, over the same files.

    HARMONIUM_DATA=... python benchmarks/audio.py [--files 50] [--folder DIR]

Makes 50 MP3 (variable bit rate) and 50 Ogg Vorbis files of a minute, 44.1 kHz, stereo: four Emotify
clips in a row where HARMONIUM_DATA has them, else clips of the generated collection. Of each file
the middle 10 s become the 389 features, by turns with `features_of_file` and with librosa:
`librosa.load` with offset and duration, its mel spectrum and MFCCs, then the same statistics.
One thread each; processor time, which other programs disturb less than the clock.

Then where the time goes, and what other ways of mixing and resampling would take; and two processes
against one, by the clock, by turns. benchmarks/many_files.py has the memory.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import librosa
import numpy as np
import report
import soundfile
import soxr
from threadpoolctl import threadpool_limits

from harmonium.audio import FeatureParameters, clip_features, decode, features_of_file
from harmonium.audio.decoder import mean_of_channels
from harmonium.audio.extraction import extract_files
from harmonium.audio.libsndfile import Sndfile
from harmonium.audio.paper import rhythm_features
from harmonium.engine import make_executor

PARAMETERS = FeatureParameters()
RATE, SECONDS, WINDOW = 44_100, 60, 10.0
BLOCK = 4096  # longer ones crash libsndfile's Vorbis encoder
KINDS = {"mp3": {"bitrate_mode": "VARIABLE", "compression_level": 0.4}, "ogg": {}}

Times = dict[str, list[float]]


# The files. --------------------------------------------------------------------------------------


def sounds() -> Iterator[np.ndarray]:
    """Clips of 15 s, one channel at 22,050 Hz, without end."""
    folder = Path(os.environ.get("HARMONIUM_DATA", "")) / "emotify" / "clips"
    names = sorted(folder.glob("*.ogg")) if folder.is_dir() else []
    print(f"sound: {'Emotify' if names else 'the generated collection'}")
    while names:
        for name in names:
            yield soundfile.read(name, dtype="float32")[0]
    from harmonium.synthetic import make_collection

    collection = make_collection(400, 1, clip_seconds=15)
    while True:
        yield from map(collection.samples, range(len(collection)))


def make_files(folder: Path, n_files: int) -> dict[str, list[Path]]:
    """The files that are not there yet; the right channel is a delayed and softer left one."""
    files: dict[str, list[Path]] = {
        kind: [folder / f"{number}.{kind}" for number in range(n_files)] for kind in KINDS
    }
    clips = sounds()
    for number in range(n_files):
        parts = [next(clips) for _ in range(SECONDS // 15)]
        missing = [kind for kind in KINDS if not files[kind][number].exists()]
        if not missing:
            continue
        left = soxr.resample(np.concatenate(parts), PARAMETERS.rate, RATE)[: SECONDS * RATE]
        stereo = np.stack([left, 0.8 * np.roll(left, 300)], axis=1).clip(-1, 1)
        for kind in missing:
            write(files[kind][number], stereo, KINDS[kind])
    return files


def write(path: Path, stereo: np.ndarray, options: dict[str, object]) -> None:
    part = path.with_suffix(f".part{path.suffix}")
    with soundfile.SoundFile(part, "w", RATE, stereo.shape[1], **options) as file:
        for start in range(0, len(stereo), BLOCK):
            file.write(stereo[start : start + BLOCK])
    part.rename(path)


# The rival. --------------------------------------------------------------------------------------


def librosa_samples(path: Path) -> np.ndarray:
    middle = (librosa.get_duration(path=path) - WINDOW) / 2
    return librosa.load(path, sr=PARAMETERS.rate, offset=middle, duration=WINDOW)[0]


def librosa_features(samples: np.ndarray) -> np.ndarray:
    """librosa's mel spectrum and MFCCs, then the statistics of `clip_features`."""
    mel = librosa.feature.melspectrogram(
        y=samples,
        sr=PARAMETERS.rate,
        n_fft=PARAMETERS.frame_length,
        hop_length=PARAMETERS.hop_length,
        n_mels=PARAMETERS.n_mels,
        fmin=PARAMETERS.lowest_hz,
        center=False,
    )
    mfcc = librosa.feature.mfcc(S=librosa.power_to_db(mel), n_mfcc=PARAMETERS.n_mfcc)
    covariance = np.cov(mfcc)[np.triu_indices(len(mfcc))]
    return np.concatenate([mfcc.mean(axis=1), covariance, rhythm_features(mel.T, PARAMETERS)])


# Times. ------------------------------------------------------------------------------------------


def by_turns(programs: dict[str, Callable[[Path], object]], files: list[Path]) -> Times:
    """Milliseconds of processor time of every program on every file; the first file warms up."""
    times: Times = {name: [] for name in programs}
    for number, path in enumerate([files[0], *files]):
        for name, program in programs.items():
            began = time.process_time()
            program(path)
            if number:
                times[name].append(1000 * (time.process_time() - began))
    return times


def print_comparison(kind: str, files: list[Path]) -> list[dict[str, object]]:
    clips = {path: decode(path, rate=PARAMETERS.rate).samples for path in files}
    chain = by_turns(
        {
            "harmonium": lambda path: clip_features(clips[path], PARAMETERS.rate),
            "librosa": lambda path: librosa_features(clips[path]),
        },
        files,
    )
    whole = by_turns(
        {
            "harmonium": features_of_file,
            "librosa": lambda path: librosa_features(librosa_samples(path)),
        },
        files,
    )
    rows = []
    for what, times in (("features alone", chain), ("file to features", whole)):
        ours, theirs = (float(np.median(times[name])) for name in ("harmonium", "librosa"))
        print(
            f"| {kind} | {what} | {ours:.1f} | {theirs:.1f} | {1000 / ours:.0f} | "
            f"{1000 / theirs:.0f} | {theirs / ours:.2f} |",
            flush=True,
        )
        for name, milliseconds in (("Harmonium", ours), ("librosa", theirs)):
            rows.append(report.row(f"{what}, {kind.upper()}", name, milliseconds / 1000))
    return rows


def print_shares(kind: str, files: list[Path]) -> None:
    """Where the time of `features_of_file` goes, and other ways of getting the same."""
    n_frames, first = int(WINDOW * RATE), int((SECONDS - WINDOW) / 2 * RATE)

    def read(path: Path) -> np.ndarray:
        with soundfile.SoundFile(path) as file:
            file.seek(first)
            return file.read(n_frames, dtype="float32", always_2d=True)

    def mixed(path: Path) -> np.ndarray:
        with path.open("rb", buffering=0) as file:
            source = Sndfile(file)
            frames = source.read(first, n_frames)
            source.close()
        return frames

    stereo = {path: read(path) for path in files}
    mono = {path: mean_of_channels(frames) for path, frames in stereo.items()}
    samples = {path: soxr.resample(x, RATE, PARAMETERS.rate) for path, x in mono.items()}
    resample = lambda quality: (  # noqa: E731
        lambda path: soxr.resample(mono[path], RATE, PARAMETERS.rate, quality)
    )
    parts: dict[str, Callable[[Path], object]] = {
        "the window decoded, channels mixed by block": mixed,
        "resampled (soxr, HQ)": resample("HQ"),
        "features": lambda path: clip_features(samples[path], PARAMETERS.rate),
        "all, as features_of_file": features_of_file,
        "- the window decoded, not mixed": read,
        "- mixed at once by NumPy's mean": lambda path: stereo[path].mean(axis=1),
        "- resampled before mixing": lambda path: soxr.resample(
            stereo[path], RATE, PARAMETERS.rate
        ),
        "- resampled (soxr, LQ)": resample("LQ"),
        "- resampled (soxr, VHQ)": resample("VHQ"),
        "- the whole minute decoded": lambda path: soundfile.read(path, dtype="float32"),
    }
    times = {name: float(np.median(t)) for name, t in by_turns(parts, files).items()}
    for name, milliseconds in times.items():
        share = 100 * milliseconds / times["all, as features_of_file"]
        print(f"| {kind} | {name} | {milliseconds:.1f} | {share:.0f} % |")


# Processes. --------------------------------------------------------------------------------------


def print_processes(files: list[Path], rounds: int) -> str:
    """Seconds by the clock for the same files in this process and in two others, by turns.

    The two are there before: what is asked is how fast a large collection goes. The fastest round
    of each is the one that other programs disturbed least.
    """
    seconds: dict[str, list[float]] = {"one": [], "two": []}
    with make_executor("processes", jobs=2) as two:
        extract_files(files, engine=two)
        for _ in range(rounds):
            for name, engine in (("one", "serial"), ("two", two)):
                began = time.perf_counter()
                extract_files(files, engine=engine)
                seconds[name].append(time.perf_counter() - began)
    one, both = (min(seconds[name]) for name in ("one", "two"))
    medians = [np.median(seconds[name]) for name in ("one", "two")]
    note = (
        f"{len(files)} files, fastest of {rounds} rounds: {one:.2f} s in one process, {both:.2f} s "
        f"in two, {one / both:.2f} times as fast (medians {medians[0]:.2f} and {medians[1]:.2f} s)."
    )
    print(note)
    return note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50, help="of each kind")
    parser.add_argument("--folder", type=Path, help="where the files are made, and kept")
    parser.add_argument("--rounds", type=int, default=20, help="of one process against two")
    parser.add_argument("--json", type=Path, help="where the results go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, threadpool_limits(1):
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = make_files(folder, options.files)
        print("\n| files | what | ms | librosa's ms | files/s | librosa's files/s | ratio |")
        print("|---|---|---|---|---|---|---|")
        rows = [row for kind in KINDS for row in print_comparison(kind, files[kind])]
        print("\n| files | part, or another way (-) | ms | share |\n|---|---|---|---|")
        for kind in KINDS:
            print_shares(kind, files[kind])
        every = [path for kind in KINDS for path in files[kind]]
        print()
        report.write(options.json, rows, [print_processes(every, options.rounds)])


if __name__ == "__main__":
    main()
