"""Hearing a file that somebody sent: in a process of its own, with little time and memory.

A file may be made to crash its decoder, to take all memory, or to last for ever. The process that
reads it can write nothing, and ends whatever happens; the server goes on.
"""

import os
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from harmonium.errors import AudioError, HarmoniumError

SECONDS = 90.0
"""From the start of the process to its answer."""
CPU_SECONDS = 60
MEMORY = 4 * 2**30
"""Bytes of addresses; libraries reserve far more than they use."""
LONGEST = 3 * 3600.0
"""Seconds that the sound may last."""


class HeardFile(NamedTuple):
    """What was heard."""

    features: list[float]
    duration: float | None


class TooLongError(AudioError):
    """A sound that lasts longer than is taken."""


def hear(path: str, extractor: str) -> HeardFile:
    """The features of a file.

    Parameters
    ----------
    extractor : the name of one

    Raises
    ------
    AudioError
        for whatever is no sound, or cannot be heard within the limits
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_hear, args=(path, extractor, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(SECONDS):
            raise AudioError("The file takes too long to hear.")
        what, value = ours.recv()
    except (EOFError, OSError):
        raise AudioError(
            "The file cannot be heard: its decoder broke, or needed too much time or memory."
        ) from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if what == "heard":
        return HeardFile(*value)
    raise (TooLongError if what == "too long" else AudioError)(value)


def _hear(path: str, extractor: str, pipe: Connection) -> None:
    """In the process."""
    _set_limits()
    try:
        from harmonium.audio.decoding import with_decoder
        from harmonium.audio.extractors import features_of_file

        def length(source: Any) -> float | None:
            return None if source.n_frames is None else float(source.n_frames / source.rate)

        duration = with_decoder(path, length)
        if duration is not None and duration > LONGEST:
            hours = LONGEST / 3600
            pipe.send(("too long", f"The sound lasts longer than {hours:.0f} hours."))
            return
        vector = features_of_file(path, extractor)
        pipe.send(("heard", (vector.tolist(), duration)))
    except HarmoniumError as error:
        pipe.send(("failed", str(error).replace(repr(path), "The file").replace(path, "the file")))
    except MemoryError:
        pipe.send(("failed", "The file needs too much memory to be heard."))


def _set_limits() -> None:
    """What the system can limit; Windows has none of it."""
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    try:
        import resource
    except ImportError:
        return
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (OSError, ValueError):
            continue  # the system allows less already
