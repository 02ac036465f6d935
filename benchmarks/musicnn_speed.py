"""musicnn in NumPy beside the musicnn package on TensorFlow, on one core, after decoding.

    make bench ONLY=musicnn          with what it needs
    pip install tensorflow-cpu tf_keras && pip install --no-deps musicnn==0.1.0
    python benchmarks/musicnn_speed.py [--seconds 15] [--rounds 7]
    python benchmarks/musicnn_speed.py --fixture FILE

From the samples of a clip to what both networks give for it. The rival is the package's own graph
in a session that is kept (the package builds it anew for each file), one patch at a time as the
package does, and all patches of the clip at once; its spectrum is librosa's, in float32, since the
package's float16 overflows with current NumPy. Processor seconds of one thread, the best of
several rounds in which all take turns. The share of the peak is that of a large product of float32
matrices in the same run: by the multiplications that are done, and by those of direct convolutions.

--fixture writes what the tests compare with.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import librosa
import numpy as np
import report
from threadpoolctl import threadpool_limits

from harmonium.audio.extractors import get_extractor
from harmonium.audio.musicnn import load_networks

SKIPPED = report.missing("tensorflow", "musicnn")
if not SKIPPED:
    import tensorflow as tf
    from musicnn import models

    tf.compat.v1.disable_eager_execution()
    ONE_THREAD = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
    )
N_FRAMES, N_BANDS = 187, 96


def tensorflow_network(name: str) -> Callable[[Any], list[Any]]:
    """(n, 187, 96) patches → hidden layer and probabilities"""
    graph = tf.Graph()
    with graph.as_default(), tf.name_scope("model"):
        x = tf.compat.v1.placeholder(tf.float32, [None, N_FRAMES, N_BANDS])
        training = tf.compat.v1.placeholder(tf.bool)
        logits, *_, hidden = models.define_model(x, training, name, 50)
        probabilities = tf.nn.sigmoid(logits)
    with graph.as_default():
        session = tf.compat.v1.Session(graph=graph, config=ONE_THREAD)
        folder = Path(models.__file__).parent / name
        tf.compat.v1.train.Saver().restore(session, f"{folder}/")
    return lambda patches: session.run([hidden, probabilities], {x: patches, training: False})


def librosa_patches(samples: Any) -> Any:
    """(n,) → (n_patches, 187, 96)"""
    mel = librosa.feature.melspectrogram(
        y=samples, sr=16_000, hop_length=256, n_fft=512, n_mels=N_BANDS
    )
    frames = np.log10(10_000 * mel.T + 1)
    n = len(frames) // N_FRAMES
    return frames[: n * N_FRAMES].reshape(n, N_FRAMES, N_BANDS)


def multiplications() -> tuple[float, float]:
    """Of a patch and a network: as done here, and directly."""
    n, places, half = N_FRAMES, (59, 30), N_BANDS // 2 + 1
    tempo = n * N_BANDS * 51 * (128 + 64 + 32)
    rest = n * 7 * 64 * (561 + 64 + 64)
    timbre = sum(204 * n * (half * 28 + 2 * half * ((p + 1) // 2)) for p in places)
    direct = sum(204 * n * 7 * (N_BANDS - p + 1) * p for p in places)
    return float(timbre + tempo + rest), float(direct + tempo + rest)


def best_of(rounds: int, tasks: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least processor seconds of each, in turns; the first round does not count."""
    least = dict.fromkeys(tasks, np.inf)
    for k in range(rounds + 1):
        for name, task in tasks.items():
            began = time.process_time()
            task()
            if k:
                least[name] = min(least[name], time.process_time() - began)
    return least


def compare(seconds: float, rounds: int, file: Path | None) -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 0.1, round(16_000 * seconds)).astype(np.float32)
    networks = [] if SKIPPED else [tensorflow_network(f"{x}_musicnn") for x in ("MSD", "MTT")]
    here = get_extractor("musicnn")
    matrix = rng.random((1024, 1024), np.float32)
    n_patches = len(librosa_patches(samples))
    ours, patch = load_networks()[0], librosa_patches(samples)[0]

    def one_by_one() -> None:
        for patch in librosa_patches(samples):
            for network in networks:
                network(patch[None])

    def at_once() -> None:
        patches = librosa_patches(samples)
        for network in networks:
            network(patches)

    programs = {"NumPy": lambda: here.extract((samples, 16_000))}
    if networks:
        programs["TensorFlow, patch by patch"] = one_by_one
        programs["TensorFlow, all patches at once"] = at_once
    parts = {"network": lambda: ours(patch), "product": lambda: matrix @ matrix}
    with threadpool_limits(1):
        found = best_of(rounds, {**programs, **parts})
    print(f"A clip of {seconds:g} s, {n_patches} patches, both networks:\n")
    print("| | ms | times as long |\n|---|---|---|")
    for name in programs:
        print(f"| {name} | {1000 * found[name]:.0f} | {found[name] / found['NumPy']:.1f} |")
    peak = 1024**3 / found["product"]
    done, direct = multiplications()
    took = found["network"]
    note = (
        f"A patch and a network: {1000 * took:.1f} ms. The product of matrices does "
        f"{2 * peak / 1e9:.0f} GFLOP/s; the network {2 * done / took / 1e9:.0f} "
        f"({done / took / peak:.0%}), with {2 * done / 1e9:.2f} GFLOP instead of "
        f"{2 * direct / 1e9:.2f}, which at the peak would take {1000 * direct / peak:.0f} ms."
    )
    print(f"\n{note}")
    task = f"a clip of {seconds:g} s through both networks"
    rows = [report.row(task, name.replace("NumPy", "Harmonium"), found[name]) for name in programs]
    report.write(file, rows, [note], SKIPPED)


def write_fixture(file: Path) -> None:
    """What TensorFlow gives for the patches and the sound of tests/audio/musicnn."""
    patches = np.random.default_rng(0).gamma(2.0, 0.6, (3, N_FRAMES, N_BANDS)).astype(np.float32)
    t = np.arange(7 * 16_000) / 16_000
    pairs = ((1, 220.0), (2, 440.0), (3, 987.8))
    tones = sum(np.sin(2 * np.pi * hz * t) * np.exp(-3 * ((2 * k * t) % 1)) for k, hz in pairs)
    noise = np.random.default_rng(1).normal(size=len(t))
    sound = librosa_patches((0.1 * tones + 0.01 * noise).astype(np.float32))
    found = {}
    for name in ("MSD", "MTT"):
        network = tensorflow_network(f"{name}_musicnn")
        found[f"{name}_hidden"], found[f"{name}_tags"] = network(patches)
        hidden, tags = network(sound)
        found[f"{name}_sound_hidden"], found[f"{name}_sound_tags"] = hidden.mean(0), tags.mean(0)
    np.savez_compressed(file, **found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fixture", type=Path)
    parser.add_argument("--json", type=Path, help="where the results go")
    options = parser.parse_args()
    if options.fixture:
        write_fixture(options.fixture)
    else:
        compare(options.seconds, options.rounds, options.json)


if __name__ == "__main__":
    main()
