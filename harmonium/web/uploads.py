"""The features of uploaded files, computed in a process of its own.

An uploaded file may crash its decoder, use up the memory, or run forever, so the process has limits
and cannot write files. It imports this module, which therefore does not import FastAPI.
"""

from contextlib import suppress
from typing import Any

from harmonium.engine import EngineError, TimedOut, WorkerDied
from harmonium.engine.processes import Processes
from harmonium.errors import AudioError, HarmoniumError

DECODE_SECONDS = 90.0  # time limit for decoding an upload
DECODE_CPU_SECONDS = 60
DECODE_MEMORY = 4 * 2**30  # limit on the address space; libraries reserve far more than they use
MAX_HOURS = 3  # limit on the length of an upload


class TooLongError(AudioError):
    """An upload that is longer than the limit."""


def decode(path: str, extractor: str) -> tuple[list[float], float | None]:
    """The features of an uploaded file and its length in seconds, if its format tells.

    Raises an AudioError if it is not audio, or takes more time or memory than the limits allow.
    """
    engine = Processes(1, time_limit=DECODE_SECONDS)
    try:
        return engine.submit(_decode, path, extractor).result()
    except TimedOut:
        raise AudioError("Decoding the file takes too long.") from None
    except (WorkerDied, EngineError):
        raise AudioError(
            "The file cannot be decoded: its decoder crashed, or needs too much time or memory."
        ) from None
    finally:
        engine.abandon()


def _decode(path: str, extractor: str) -> tuple[list[float], float | None]:
    _set_limits()
    from harmonium.audio.decoding import with_decoder
    from harmonium.audio.extractors import features_of_file

    def length(source: Any) -> float | None:
        return None if source.n_frames is None else float(source.n_frames / source.rate)

    try:
        duration = with_decoder(path, length)
        if duration is None or duration <= 3600 * MAX_HOURS:
            return features_of_file(path, extractor).tolist(), duration
    except HarmoniumError as error:
        text = str(error).replace(repr(path), "The file").replace(path, "the file")
        raise AudioError(text) from None
    except MemoryError:
        raise AudioError("Decoding the file needs too much memory.") from None
    raise TooLongError(f"The sound is longer than {MAX_HOURS} hours.")


def _set_limits() -> None:
    """Limit this process if the system can; Windows cannot."""
    try:
        import resource
    except ImportError:
        return
    for what, limit in (
        (resource.RLIMIT_AS, DECODE_MEMORY),
        (resource.RLIMIT_CPU, DECODE_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):  # The limit may already be lower.
            resource.setrlimit(what, (limit, limit))
