"""How musicnn listens: its weights, its spectrum, its patches, and what a window of sound becomes.

The samples are at 16 kHz. A frame lies about every 256th sample, from the first on, so that the
first and the last reach half a frame out of the sound, where it is silent.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoding import Window
from harmonium.audio.spectrum import FeatureParameters, mel_spectrogram
from harmonium.errors import DataError, ModelFileError
from harmonium.files import readable, user_data_folder, write_atomically

if TYPE_CHECKING:
    from harmonium.audio.musicnn_network import Network

MSD_TAGS = tuple(
    (  # noqa: SIM905
        "rock, pop, alternative, indie, electronic, female vocalists, dance, 00s, alternative "
        "rock, jazz, beautiful, metal, chillout, male vocalists, classic rock, soul, indie "
        "rock, Mellow, electronica, 80s, folk, 90s, chill, instrumental, punk, oldies, blues, "
        "hard rock, ambient, acoustic, experimental, female vocalist, guitar, Hip-Hop, 70s, "
        "party, country, easy listening, sexy, catchy, funk, electro, heavy metal, "
        "Progressive rock, 60s, rnb, indie pop, sad, House, happy"
    ).split(", ")
)
"""The outputs of the network of the Million Song Dataset: Last.fm's fifty most used tags."""
MTT_TAGS = tuple(
    (  # noqa: SIM905
        "guitar, classical, slow, techno, strings, drums, electronic, rock, fast, piano, "
        "ambient, beat, violin, vocal, synth, female, indian, opera, male, singing, vocals, "
        "no vocals, harpsichord, loud, quiet, flute, woman, male vocal, no vocal, pop, soft, "
        "sitar, solo, man, classic, choir, voice, new age, dance, male voice, female vocal, "
        "beats, harp, cello, no voice, weird, country, metal, female voice, choral"
    ).split(", ")
)
"""The outputs of the network of MagnaTagATune: the fifty most used tags of its players."""

RATE, FRAME, HOP, BANDS = 16_000, 512, 256, 96
PATCH_FRAMES = 187
PATCH_SECONDS = (FRAME + (PATCH_FRAMES - 1) * HOP) / RATE
N_HIDDEN = 200
"""Length of the last hidden layer of each network."""
SPECTRUM = FeatureParameters(
    rate=RATE,
    frame_length=FRAME,
    hop_length=HOP,
    n_mels=BANDS,
    lowest_hz=0.0,
    highest_hz=RATE / 2,
)

NETWORKS = ("MSD", "MTT")
"""In the order of their features. A tensor's name begins with its network's."""
FEATURE_NAMES = tuple(f"{name} {k}" for name in NETWORKS for k in range(N_HIDDEN))
HEAD_NAMES = (*(f"MSD {tag}" for tag in MSD_TAGS), *(f"MTT {tag}" for tag in MTT_TAGS))

FORMAT = "musicnn 1"
"""What the metadata of the file of weights say that it is."""
FETCH = "`harmonium extractor download musicnn`"

Tensors = Mapping[str, Floats]


@dataclass(frozen=True)
class Patches:
    """The plan of musicnn's windows: all contiguous patches of a sound, or at most ``most``.

    Those are evenly spaced from the first to the last. A sound shorter than a patch is one window.
    """

    most: int = 10

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """The windows; of an unknown length, the first ones."""
        begin = start or 0
        n_frames = self.most * PATCH_FRAMES if length is None else 1 + (length - begin) // HOP
        n_patches = n_frames // PATCH_FRAMES
        if n_patches == 0:
            return [_window(begin, 0, n_frames)]
        chosen = np.linspace(0, n_patches - 1, min(n_patches, self.most)).round().astype(int)
        return [_window(begin, PATCH_FRAMES * k, PATCH_FRAMES) for k in chosen.tolist()]


def _window(begin: int, first: int, n_frames: int) -> Window:
    """The samples of frames from the ``first`` on."""
    start = begin + first * HOP - FRAME // 2
    return Window(start, start + (n_frames - 1) * HOP + FRAME)


def log_mel_patches(samples: Floats) -> Floats:
    """log₁₀(1 + 10⁴ mel) of the frames within the samples, (n_patches, PATCH_FRAMES, BANDS).

    A sound shorter than a patch is repeated to fill one; what follows the last patch is dropped.
    """
    if len(samples) < FRAME:
        raise DataError(f"musicnn needs at least {FRAME} samples at {RATE} Hz, got {len(samples)}.")
    frames = np.log10(1 + 10_000 * mel_spectrogram(samples, SPECTRUM))
    if len(frames) < PATCH_FRAMES:
        frames = np.resize(frames, (PATCH_FRAMES, BANDS))
    n_patches = len(frames) // PATCH_FRAMES
    return frames[: n_patches * PATCH_FRAMES].reshape(n_patches, PATCH_FRAMES, BANDS)


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Keeps matrix products, which are small, to one thread: on a busy machine, two wait."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def listen(samples: Floats, rate: int) -> Floats:
    """The mean over patches of both networks' last hidden layers, then of their probabilities.

    (n,) → (400 + 100,)
    """
    if rate != RATE:
        raise DataError(f"musicnn needs {RATE} samples per second, got {rate}.")
    patches = log_mel_patches(samples)
    with _blas().limit(limits=1):
        found = [[network(patch) for patch in patches] for network in load_networks()]
    hidden = [np.mean([hidden for hidden, _ in outputs], axis=0) for outputs in found]
    heads = [np.mean([heads for _, heads in outputs], axis=0) for outputs in found]
    return np.concatenate([*hidden, *heads])


def weights_file() -> Path:
    """The file of the weights, safetensors in the user's data folder."""
    return user_data_folder() / "extractors" / "musicnn.safetensors"


def is_installed() -> bool:
    """Whether the weights are installed; whether they are whole shows when they are loaded."""
    return weights_file().is_file()


def check_weights() -> None:
    """Raise ModelFileError where the weights are missing, or cannot be used."""
    load_networks()


def write_weights(networks: Mapping[str, Tensors], licence: str) -> Path:
    """Write the tensors of both networks to the file of the weights."""
    from safetensors.numpy import save

    tensors = {
        f"{name}/{key}": np.ascontiguousarray(value)
        for name in NETWORKS
        for key, value in networks[name].items()
    }
    metadata = {"format": FORMAT, "sha256": _digest(tensors), "licence": licence}
    file = weights_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, save(tensors, metadata))
    return file


def load_networks() -> "tuple[Network, ...]":
    """Both networks; read once, as long as the file stays the same. Or ModelFileError."""
    file = weights_file()
    try:
        status = file.stat()
    except FileNotFoundError:
        raise ModelFileError(
            f"The weights of musicnn are not installed: {FETCH} gets them (29 MB)."
        ) from None
    except OSError as error:
        raise _unusable(file, str(error.strerror)) from error
    return _loaded(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)
def _loaded(file: Path, modified: int, size: int) -> "tuple[Network, ...]":
    from safetensors import SafetensorError, safe_open

    from harmonium.audio.musicnn_network import Network

    try:
        with safe_open(file, "numpy") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _unusable(file, f"truncated or damaged, {error}") from None
    if metadata.get("format") != FORMAT:
        raise _unusable(file, "another file")
    if metadata.get("sha256") != _digest(tensors):
        raise _unusable(file, "damaged, its digest is another")
    by_network: dict[str, dict[str, Floats]] = {name: {} for name in NETWORKS}
    for key, tensor in tensors.items():
        network, _, name = key.partition("/")
        by_network[network][name] = tensor
    return tuple(map(Network, by_network.values()))


def _digest(tensors: Tensors) -> str:
    """SHA-256 of the names, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} {tensors[name].dtype}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def _unusable(file: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"The weights of musicnn in {readable(file)} cannot be used ({why}). {FETCH} gets them "
        "again; `--extractor paper` does without them."
    )
