"""Everything Harmonium raises or warns on purpose.

HarmoniumError
├── AudioError (ValueError)       a file whose sound cannot be used
├── DataError (ValueError)        input that cannot be used: a file, a column, a row, an array
│   └── UnknownTagError           a tag that no track has, and no model knows
├── DatasetNotFoundError          a public dataset whose files are missing
├── FileTagError (ValueError)     a music file whose tags cannot be read or written
│   └── FileChangedError          one that was changed since tags were written to it
├── LibraryError                  a library of music that cannot be used
│   ├── LibraryUnavailableError   one that may soon work again: its disk is full, its server stopped
│   │   └── LibraryBusyError      one that another program is writing to
│   ├── LibraryReadOnlyError      one whose file, folder or disk cannot be written to
│   ├── LibraryDamagedError       one whose contents do not fit together
│   ├── NoLibraryError            there is no library yet
│   └── NotInLibraryError         a track, a change or a model that is not in it
├── ModelFileError (ValueError)   not a model, a damaged one, or one from a newer version
└── ServerError                   another program's server that cannot be used

HarmoniumWarning (UserWarning)
├── DataWarning                   input that was only partly used
└── TrainingWarning               training that did not finish normally
    └── TrainingInterrupted       training that Ctrl-C stopped

Each message names what was wrong, the value received, and a way out; `did_you_mean` finds one after
a misspelling. The command line prints the message alone, without a traceback.
"""

import os
from collections.abc import Callable, Collection


class HarmoniumError(Exception):
    """Base of every error that Harmonium raises on purpose."""


class AudioError(HarmoniumError, ValueError):
    """A file whose sound cannot be used."""


class DataError(HarmoniumError, ValueError):
    """Input that cannot be used."""


class UnknownTagError(DataError):
    """A tag that no track has and no model knows."""


class DatasetNotFoundError(HarmoniumError):
    """A public dataset whose files are missing."""


class FileTagError(HarmoniumError, ValueError):
    """A music file whose tags cannot be read or written."""


class FileChangedError(FileTagError):
    """A music file that was changed since tags were written to it."""


class LibraryError(HarmoniumError):
    """A library of music that cannot be used, or something that is not in it."""


class LibraryUnavailableError(LibraryError):
    """A library that cannot be used now, but may be soon: its disk is full, its server restarts."""


class LibraryBusyError(LibraryUnavailableError):
    """A library that another program is writing to."""


class LibraryReadOnlyError(LibraryError):
    """A library whose file, folder or disk cannot be written to."""


class LibraryDamagedError(LibraryError):
    """A library whose contents do not fit together."""


class NoLibraryError(LibraryError):
    """A place without a library."""


class NotInLibraryError(LibraryError):
    """A track, a change or a model that is not in the library."""


class ModelFileError(HarmoniumError, ValueError):
    """A file that is not a model, is damaged, or comes from a newer version."""


class ServerError(HarmoniumError):
    """Another program's server that cannot be reached, or refuses something."""


class HarmoniumWarning(UserWarning):
    """Base of every warning that Harmonium gives on purpose."""


class DataWarning(HarmoniumWarning):
    """Input that was only partly used."""


class TrainingWarning(HarmoniumWarning):
    """Training that did not finish normally."""


class TrainingInterrupted(TrainingWarning):
    """Training that was stopped from the keyboard; the best parameters so far are kept."""


def nearest_names(name: object, known: Collection[str], *, n: int = 1) -> list[str]:
    """At most ``n`` of the known names, the most similar first, ignoring case."""
    from difflib import get_close_matches  # only when something went wrong

    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    return [folded[near] for near in get_close_matches(str(name).casefold(), folded, n=n)]


def did_you_mean(
    name: object,
    known: Collection[str],
    *,
    n: int = 1,
    examples: int = 0,
    quote: Callable[[str], str] = repr,
) -> str:
    """A hint to end a message with: the ``n`` most similar names, else some ``examples``."""
    if near := nearest_names(name, known, n=n):
        return f" Did you mean {' or '.join(map(quote, near))}?"
    listed = ", ".join(map(quote, sorted(known)[:examples]))
    return f" There are {listed}{' …' if len(known) > examples else ''}." if listed else ""


def counted(number: int, what: str) -> str:
    """A count in words, such as "1 track" or "1,200 tracks"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def readable(path: str | os.PathLike[str]) -> str:
    """A path as text, with bytes that are not UTF-8 as \\xNN."""
    return os.fsencode(path).decode(errors="backslashreplace")


def with_path(path: str | os.PathLike[str], reason: str) -> str:
    """Why a file could not be used, with its path, which the reason may name already."""
    return reason if str(path) in reason else f"{readable(path)}: {reason}"
