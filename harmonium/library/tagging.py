"""Tags for files and for a whole library, by the current model.

For the library, the probabilities from the sound alone are stored, as the model was trained; what
its tags gained from answers since is kept beside them. Tags of single files are completed from what
people say about them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.decoding import find_audio
from harmonium.errors import DataError, LibraryError
from harmonium.files import absolute_path
from harmonium.library.library import Library
from harmonium.library.store.database import batches
from harmonium.library.store.models import Owner
from harmonium.library.store.opinions import agreed_tags
from harmonium.library.store.tracks import Track
from harmonium.library.tagger import (
    Tagger,
    builtin_model,
    current_model,
    use_builtin,
)

if TYPE_CHECKING:
    from harmonium.audio.extraction import FileFeatures, FileProgress
    from harmonium.audio.extractors import Extractor

FEW_FILES = 8
"""Up to so many files are read in this process; starting others would take longer."""


# Files. --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrackTag:
    """A tag that a track has."""

    tag: str
    probability: float
    source: str
    """"people" have said so, "given" (with --known), "model", or "built-in" (the model that
    comes with the package)."""
    precision: float | None = None
    """The share of held-out tracks of at least this probability that have the tag."""


@dataclass(frozen=True)
class TaggedFile:
    """What is known and predicted of a file."""

    path: str
    track: Track | None
    """None if the file is not in the library."""
    said: dict[str, bool]
    """Tag → whether it holds, where people agree on that."""
    probabilities: NDArray[np.float32] = field(repr=False)
    """(n_tags,)"""
    given: dict[str, bool]
    """Tag → whether it holds, as the person who asks knows; it overrides what people say."""
    tagger: Tagger = field(repr=False)

    def tags(self, top: int | None = None, min_probability: float | None = None) -> list[TrackTag]:
        """Its tags: what is known first, then the model's.

        Those of the model that reach their thresholds; or the ``top`` most probable ones, or those
        from ``min_probability`` on.
        """
        tagger = self.tagger
        known = self.given | self.said | self.given  # in this order, and what is given counts
        settled = [
            TrackTag(tag, 1.0, "given" if tag in self.given else "people")
            for tag, holds in known.items()
            if holds
        ]
        chosen = chosen_places(self.probabilities, tagger.thresholds, top, min_probability)
        guessed = [
            TrackTag(
                tagger.tags[j],
                float(self.probabilities[j]),
                "model" if tagger.is_own[j] else "built-in",
                tagger.precision(int(j), float(self.probabilities[j])),
            )
            for j in chosen
            if tagger.tags[j] not in known
        ]
        return settled + guessed


def chosen_places(
    p: NDArray[np.float32],
    thresholds: NDArray[np.float32],
    top: int | None = None,
    min_probability: float | None = None,
) -> NDArray[np.intp]:
    """Places of the chosen tags, the most probable first, from probabilities (n_tags,)."""
    least = thresholds
    if min_probability is not None:
        least = np.full_like(thresholds, min_probability)
    elif top is not None:
        least = np.zeros_like(thresholds)
    chosen = np.flatnonzero((p >= least) & (thresholds <= 1))
    return chosen[np.argsort(-p[chosen], kind="stable")][:top]


@dataclass(frozen=True)
class TaggedFiles:
    """Files with their tags."""

    files: list[TaggedFile]
    failures: list["FileFeatures"]
    """Files that could not be used, each with the reason."""

    def __iter__(self) -> Iterator[TaggedFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def tag_named(
    library: Library | None,
    named: Sequence[str | Path],
    *,
    known: str | None = None,
    sound_only: bool = False,
    owner: Owner | None = None,
    progress: "FileProgress | None" = None,
) -> TaggedFiles:
    """The tags of files and folders of music, in the library or not; or of tracks by their names.

    Without a library, or a model in it, the built-in model says them.

    Parameters
    ----------
    known : what is known already, such as "rock, guitar, -live"
    sound_only : whether people's tags do not help to infer the others
    owner : whose tags the model may predict: "own", "built-in", or None, both
    """
    model = None if library is None else use_builtin(library)
    if model is None or (owner == "built-in" and model.is_own.all()):
        model = builtin_model()
    tagger = Tagger(model.only(owner), library)
    given = None if known is None else read_known(known, tagger)
    files = _music_files(library, named)
    use_people = not sound_only
    found, failures = tag_files(
        library, tagger, files, known=given, use_people=use_people, progress=progress
    )
    return TaggedFiles(found, failures)


def read_known(text: str, tagger: Tagger) -> dict[str, bool]:
    """Tag → whether it holds, from a text such as "rock, guitar, -live"; a minus denies a tag."""
    known: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, holds = tagger.tags[tagger.place(part.removeprefix("-"))], not part.startswith("-")
        if known.setdefault(name, holds) != holds:
            raise DataError(f"The tag {name!r} cannot both hold and not hold.")
    return known


def tag_files(
    library: Library | None,
    tagger: Tagger,
    paths: Sequence[str],
    *,
    known: dict[str, bool] | None = None,
    use_people: bool = True,
    progress: "FileProgress | None" = None,
) -> tuple[list[TaggedFile], list["FileFeatures"]]:
    """What the model says about files, in the library or not, in the order of the paths.

    Parameters
    ----------
    library : None where there is none, for a model that needs none
    known : tag → whether it holds, for all of the files; it overrides what people say
    use_people : whether what people say about a track helps to infer its other tags
    """
    tracks: list[Track | None] = [None] * len(paths)
    stored: dict[str, NDArray[np.float32]] = {}
    said: dict[int, dict[str, bool]] = {}
    if library is not None:
        tracks = [library.tracks.find(absolute_path(path)) for path in paths]
        stored = _stored_features(library, tagger, paths, tracks)
        said = agreed_tags(
            library.opinions.triples([track.id for track in tracks if track is not None]),
            library.genres(),
        )
    vectors, failures = _features(tagger, paths, stored, progress)
    found = [
        (path, track, {} if track is None else said.get(track.id, {}))
        for path, track in zip(paths, tracks, strict=True)
        if path in vectors
    ]
    if not found:
        return [], failures
    X = np.stack([vectors[path] for path, _, _ in found])
    given = known or {}
    settled = [(own if use_people else {}) | given for _, _, own in found]
    Y = np.array([[holds.get(tag, np.nan) for tag in tagger.tags] for holds in settled], np.float32)
    P = tagger.probabilities(X, Y)
    return [TaggedFile(*one, p, given, tagger) for one, p in zip(found, P, strict=True)], failures


def _stored_features(
    library: Library, tagger: Tagger, paths: Sequence[str], tracks: Sequence[Track | None]
) -> dict[str, NDArray[np.float32]]:
    """Path → features, of the tracks that have them in the library."""
    ids = [track.id for track in tracks if track is not None]
    have, matrix = library.tracks.features(ids, extractor=tagger.extractor)
    stored = dict(zip(have.tolist(), matrix, strict=True))
    return {
        path: stored[track.id]
        for path, track in zip(paths, tracks, strict=True)
        if track is not None and track.id in stored
    }


def _features(
    tagger: Tagger,
    paths: Sequence[str],
    stored: dict[str, NDArray[np.float32]],
    progress: "FileProgress | None",
) -> tuple[dict[str, NDArray[np.float32]], list["FileFeatures"]]:
    """Path → features: the stored ones, or those of the file where there are none."""
    vectors = stored.copy()
    unheard = [path for path in dict.fromkeys(paths) if path not in vectors]
    if not unheard:
        return vectors, []
    from harmonium.audio.extraction import extract_files
    from harmonium.files import user_cache_folder

    extraction = extract_files(
        unheard,
        extractor=extractor_named(tagger.extractor),
        engine="serial" if len(unheard) <= FEW_FILES else "processes",
        cache=user_cache_folder(),
        progress=progress,
    )
    vectors |= dict(zip(extraction.paths, extraction.features, strict=True))
    return vectors, list(extraction.failures)


def extractor_named(key: str) -> "Extractor":
    """The extractor of a key, if it still gives the same numbers."""
    from harmonium.audio.extractors import get_extractor
    from harmonium.library.index import extractor_key

    name = key.rpartition("@")[0] or key
    extractor = get_extractor(name)
    if extractor_key(extractor) != key:
        raise LibraryError(
            f"The model was trained with other features than {name!r} gives now. `harmonium "
            "index` computes those of the library anew, and `harmonium train` learns from them."
        )
    return extractor


def stored_tags(
    library: Library, owner: Owner | None = None, page: int = 1000
) -> Iterator[TaggedFile]:
    """All present tracks that the model in use has tagged, with their stored predictions."""
    tagger = Tagger(current_model(library).only(owner), library)
    assert tagger.id is not None
    heard, _ = library.predictions.columns(tagger.id, [0])
    ids, tree = np.intersect1d(heard, library.tracks.ids()), library.genres()
    for some in batches(ids.tolist(), page):
        P = library.predictions.probabilities(tagger.id, some)[:, : len(tagger.tags)]
        said = agreed_tags(library.opinions.triples(some), tree)
        for track, p in zip(library.tracks.many(some), P, strict=True):
            yield TaggedFile(track.path, track, said.get(track.id, {}), p, {}, tagger)


def _music_files(library: Library | None, named: Sequence[str | Path]) -> list[str]:
    """The files that are named, in folders too, or by what the library knows of them."""
    paths = []
    for one in named:
        path = Path(one).expanduser()
        try:
            if path.exists():
                paths.append(path)
            elif library is None:
                raise LibraryError("There is no library that could know it, either.")
            else:
                paths.append(Path(library.tracks.resolve(str(one)).path))
        except LibraryError as error:
            raise LibraryError(f"There is no file {str(one)!r}. {error}") from None
    files, _, _ = find_audio(paths)
    if not files:
        raise DataError("There is no music file in the folders named.")
    return files
