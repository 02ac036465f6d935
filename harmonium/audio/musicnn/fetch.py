"""Getting musicnn's weights out of its wheel, which comes from the registry that pip is set up for.

The package itself is neither installed nor run.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from harmonium.audio.musicnn.checkpoint import read_checkpoint
from harmonium.audio.musicnn.network import Network
from harmonium.audio.musicnn.weights import NETWORKS, weights_file, write_weights
from harmonium.errors import DataError, ModelFileError
from harmonium.files import readable

PACKAGE, VERSION = "musicnn", "0.1.0"
WHEEL = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
SHA256 = "f38a4890c648c1ddbb141c5d96d2b0a8cfcd36746002d896989f7b88beb65cfa"
LICENCE = "ISC licence, © 2019 Music Technology Group, Universitat Pompeu Fabra; by Jordi Pons"
CITATION = (
    'Pons, Serra: "musicnn: Pre-trained convolutional neural networks for music audio tagging". '
    "Late-breaking demo, ISMIR 2019."
)

ELSEWHERE = f"Or get {WHEEL} on another machine, and name it with --wheel FILE."


def fetch_musicnn(wheel: Path | None = None) -> Path:
    """Take the weights out of the wheel, and keep them; returns the file of weights.

    Parameters
    ----------
    wheel : the wheel, if it is at hand; otherwise pip downloads it

    Raises
    ------
    DataError
        where the wheel cannot be had, is another, or the weights cannot be written
    """
    try:
        if wheel is not None:
            return _keep(wheel)
        with tempfile.TemporaryDirectory(prefix="harmonium-") as folder:
            return _keep(_download(Path(folder)))
    except OSError as error:
        where = f": {readable(error.filename)}" if error.filename else ""
        raise DataError(
            f"The weights of musicnn could not be kept: {error.strerror or error}{where}. They "
            "need 30 MB in the folder for temporary files, and 7 MB in the user's data folder."
        ) from error


def was_declined() -> bool:
    """Whether the user was asked for the weights, and did not want them."""
    return _declined_file().exists()


def decline() -> None:
    """Remember that the user does not want the weights; not to be asked again."""
    file = _declined_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def _declined_file() -> Path:
    return weights_file().with_suffix(".declined")


def _download(folder: Path) -> Path:
    """The wheel, by pip: it knows the registry, the proxy and the certificates of this machine."""
    if find_spec("pip") is None:
        raise DataError(
            f"pip, which would download musicnn, is not installed for {sys.executable}: `python "
            f"-m ensurepip` installs it. {ELSEWHERE}"
        )
    command = [sys.executable, "-m", "pip", "download", f"{PACKAGE}=={VERSION}"]
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*command, *options, "--dest", str(folder)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    file = folder / WHEEL
    if done.returncode or not file.is_file():
        raise DataError(
            f"pip could not download musicnn {VERSION}: {_reason(done.stderr)}. Check the network "
            f"and try again. {ELSEWHERE}"
        )
    return file


def _reason(said: str) -> str:
    """What pip says is wrong: the cause, which comes first, or else its last error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for sign in ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "ProxyError"):
        if any(sign in line for line in lines):
            return "the package registry cannot be reached"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it gives no reason"])[-1].rstrip(".")


def _keep(wheel: Path) -> Path:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != SHA256:
        raise DataError(
            f"{readable(wheel)} is not the wheel of musicnn {VERSION}, or is damaged: its SHA-256 "
            f"is {digest}, not {SHA256}. Fetch it again."
        )
    try:
        with zipfile.ZipFile(wheel) as files:
            networks = {name: _tensors(files, name) for name in NETWORKS}
            licence = files.read(f"{PACKAGE}-{VERSION}.dist-info/LICENSE.md").decode()
    except (zipfile.BadZipFile, KeyError, ModelFileError) as error:
        raise DataError(f"{readable(wheel)} lacks the weights of musicnn: {error}") from error
    return write_weights(networks, licence)


def _tensors(files: zipfile.ZipFile, network: str) -> dict:
    folder = f"{PACKAGE}/{network}_musicnn"
    tensors = read_checkpoint(
        files.read(f"{folder}/.index"), files.read(f"{folder}/.data-00000-of-00001")
    )
    Network(tensors)  # raises where something is missing
    return tensors
