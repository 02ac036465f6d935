"""What a report of a fault should say: versions, the machine, and the size of a library.

It holds no path, no title, no tag and no password, so that people can publish it.
"""

import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from harmonium.library.index import kept_extractor
from harmonium.library.library import Library

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "jax",
    "polars",
    "sqlalchemy",
    "psycopg",
    "mutagen",
    "soundfile",
    "av",
    "fastapi",
    "distributed",
    "onnxruntime",
)


@dataclass(frozen=True, kw_only=True)
class LibrarySize:
    """How large a library is, and what it uses."""

    database: str  # sqlite or postgresql, with its version
    extractor: str | None  # None before the first index
    folders: int
    present: int  # tracks
    missing: int
    unreadable: int
    people: int
    tags: int  # that people have given
    labels: int  # what people have said: a track with or without a tag
    changes: int
    models: int
    model: str  # the one in use


@dataclass(frozen=True, kw_only=True)
class SystemReport:
    """Versions, the machine and the library."""

    harmonium: str
    python: str
    system: str
    cores: int
    packages: dict[str, str | None]  # None: not installed
    library: LibrarySize | None  # None if there is none, or if it cannot be read
    fault: str | None = None  # the error that reading it raised

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """What it says, as pairs of a name and a value."""
        lines = [
            ("harmonium", self.harmonium),
            ("python", self.python),
            ("system", f"{self.system}, {self.cores} cores"),
        ]
        lines += [(name, number or "not installed") for name, number in self.packages.items()]
        if self.library is None:
            return [*lines, ("library", self.fault or "none")]
        for name, value in asdict(self.library).items():
            lines.append((name, str(value)))
        return lines


def system_report(library: Library | None, *, fault: str | None = None) -> SystemReport:
    """Versions, the machine, and the size of the library if there is one.

    Parameters
    ----------
    library : None if there is none, or if it cannot be read
    fault : the class of the error that reading it raised
    """
    return SystemReport(
        harmonium=version("harmonium"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        packages={name: _installed(name) for name in PACKAGES},
        library=None if library is None else _size(library),
        fault=fault,
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _size(library: Library) -> LibrarySize:
    with library.reading(), library.connect() as connection:
        number = ".".join(map(str, connection.dialect.server_version_info or ()))
        opinions = library.opinions.triples()
        return LibrarySize(
            database=f"{connection.dialect.name} {number}".strip(),
            extractor=_extractor(library),
            folders=len(library.folders()),
            present=library.tracks.count("present"),
            missing=library.tracks.count("missing"),
            unreadable=library.tracks.count("unreadable"),
            people=opinions["person"].n_unique(),
            tags=opinions["tag"].n_unique(),
            labels=opinions.height,
            changes=library.changes.count(),
            models=len(library.models.entries()),
            model=_model_in_use(library),
        )


def _extractor(library: Library) -> str | None:
    """The extractor's name; of a file, only its kind."""
    name = kept_extractor(library)
    if name is None:
        return None
    kind, is_file, _ = name.partition(":")
    return f"{kind}:FILE" if is_file else name


def _model_in_use(library: Library) -> str:
    model = library.models.current()
    if model is None:
        return "none"
    return "your own" if model.has_own else "built-in"
