"""Opening music files, and saying clearly what is wrong with them."""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mutagen import MutagenError

from harmonium.collection.filetags.formats.base import Damaged
from harmonium.errors import FileTagError

PathLike: TypeAlias = str | os.PathLike[str]

# What Mutagen and the parsing here raise where a file is not what its format says.
_DAMAGE = (MutagenError, EOFError, struct.error, ValueError, LookupError, ArithmeticError)


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """The file, open for reading, with `explained` errors."""
    with explained(path):
        # Opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
            raise Damaged("it is not a file")
        with Path(path).open("rb") as file:
            yield file


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Whatever goes wrong with a file, as one clear error."""
    try:
        yield
    except FileTagError:
        raise
    except FileNotFoundError:
        raise FileTagError(f"There is no file {readable(path)}.") from None
    except IsADirectoryError:
        raise FileTagError(f"{readable(path)} is a folder. Name a file in it.") from None
    except OSError as error:
        raise FileTagError(
            f"{readable(path)} cannot be read or written: {error.strerror or error}."
        ) from error
    except Damaged as error:
        raise FileTagError(f"{readable(path)}: {error}.") from None
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise FileTagError(f"{readable(path)} is damaged: {reason}.") from error


def readable(path: PathLike) -> str:
    """A path as text, with bytes that are not UTF-8 as \\xNN."""
    return os.fsencode(path).decode(errors="backslashreplace")
