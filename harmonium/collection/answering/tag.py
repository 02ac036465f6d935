"""Tags for files and for a whole library, by the current model.

What is stored for the library is what the model hears: the probabilities from sound alone, which no
person's tag changes. Tags of single files are completed from what people say of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.answering.stored_tagger import Tagger
from harmonium.collection.answering.suggest import unknown_to_model
from harmonium.collection.learning.verdicts import agreed
from harmonium.collection.store.models import StoredModel
from harmonium.collection.store.tracks import Track
from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError, LibraryError
from harmonium.user_folders import absolute_path

if TYPE_CHECKING:
    from harmonium.audio.extraction import UnusableFile
    from harmonium.audio.extractors import Extractor
    from harmonium.collection.library import Library

Progress = Callable[[int, int], None]
"""Called with how many tracks are done, and how many there are."""

BLOCK = 8192
FEW_FILES = 8
"""Up to so many files are heard here; starting other processes would take longer."""


def current_model(library: "Library") -> StoredModel:
    """The model in use, or a LibraryError that says how to get one."""
    model = library.models.current()
    if model is None:
        raise LibraryError(
            "The library has no model yet. `harmonium train` makes one of the tags that people "
            "gave to tracks."
        )
    return model


def tag_library(
    library: "Library",
    model: StoredModel | None = None,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> int:
    """Store what the model says of all present tracks that it has not heard yet; how many.

    Each block of tracks is stored when it is done: what was interrupted goes on from there.

    Parameters
    ----------
    again : of those that it has heard, too
    """
    model = model or current_model(library)
    assert model.id is not None
    tagger, done = Tagger(model), 0
    heard = np.empty(0, np.int64)
    if not again:
        heard, _ = library.predictions.columns(model.id, [0])
    total = max(0, library.tracks.count("present") - len(heard))
    for ids, X in library.tracks.feature_blocks(extractor=model.extractor, block=BLOCK):
        new = ~np.isin(ids, heard)
        if new.any():
            library.predictions.put(model.id, ids[new], tagger.probabilities(X[new]))
            done += int(new.sum())
            if progress:
                progress(done, max(done, total))
    return done


# Files. --------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A tag of a track."""

    tag: str
    probability: float
    source: str
    """"people" have said so, "given" (with --known), or "model"."""


class Known(NamedTuple):
    """Tags that are known of a track."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


NOTHING = Known()


@dataclass(frozen=True)
class Choice:
    """Which of the model's tags count; by default those from the threshold of each on."""

    top: int | None = None
    """The most probable ones instead,"""
    min_probability: float | None = None
    """or those from this probability on; with ``top``, both hold."""

    def of(self, p: NDArray[np.float32], thresholds: NDArray[np.float32]) -> NDArray[np.intp]:
        """Places of the chosen tags, the most probable first, from probabilities (n_tags,)."""
        least = thresholds
        if self.min_probability is not None:
            least = np.full_like(thresholds, self.min_probability)
        elif self.top is not None:
            least = np.zeros_like(thresholds)
        chosen = np.flatnonzero((p >= least) & (thresholds <= 1))
        return chosen[np.argsort(-p[chosen], kind="stable")][: self.top]


USUAL = Choice()


@dataclass(frozen=True)
class Tagged:
    """What is known and predicted of a file."""

    path: str
    track: Track | None
    """None if the file is not in the library."""
    said: dict[str, bool]
    """What people say of it: whether a tag holds."""
    probabilities: NDArray[np.float32] = field(repr=False)
    """(n_tags,)"""
    given: Known

    def rows(self, tagger: Tagger, choice: Choice = USUAL) -> list[Row]:
        """Its tags: what is known first, then the model's."""
        known = [Row(tag, 1.0, "given") for tag in self.given.present]
        settled = {*self.given.present, *self.given.absent}
        own = [tag for tag, holds in self.said.items() if holds and tag not in settled]
        known += [Row(tag, 1.0, "people") for tag in own]
        settled |= self.said.keys()
        chosen = choice.of(self.probabilities, tagger.thresholds)
        guessed = [
            Row(tagger.tags[j], float(self.probabilities[j]), "model")
            for j in chosen
            if tagger.tags[j] not in settled
        ]
        return known + guessed


def read_known(text: str, tagger: Tagger) -> Known:
    """Tags from a text such as "rock, guitar, -live"; a minus means that the tag does not hold."""
    present: list[str] = []
    absent: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = normalise_tag(part.removeprefix("-"))
        if name not in tagger.tags:
            raise DataError(unknown_to_model(name, tagger))
        (absent if part.startswith("-") else present).append(name)
    if both := sorted({*present} & {*absent}):
        raise DataError(f"The tag {both[0]!r} cannot both hold and not hold.")
    return Known(tuple(present), tuple(absent))


def tag_files(
    library: "Library",
    tagger: Tagger,
    paths: Sequence[str],
    *,
    known: Known = NOTHING,
    use_people: bool = True,
    progress: Progress | None = None,
) -> tuple[list[Tagged], list["UnusableFile"]]:
    """What the model says of files, be they in the library or not, in the order of the paths.

    Parameters
    ----------
    known : what you know of all of them
    use_people : whether what people say of a track helps to infer its other tags
    """
    tracks = [library.tracks.find(absolute_path(path)) for path in paths]
    vectors, failures = _features(library, tagger, paths, tracks, progress)
    said = _said(library, [track.id for track in tracks if track is not None])
    found = [
        (path, track, {} if track is None else said.get(track.id, {}))
        for path, track in zip(paths, tracks, strict=True)
        if path in vectors
    ]
    if not found:
        return [], failures
    X = np.stack([vectors[path] for path, _, _ in found])
    Y = np.stack([_known_row(tagger, known, own if use_people else {}) for _, _, own in found])
    P = tagger.probabilities(X, Y)
    tagged = [Tagged(*one, p, known) for one, p in zip(found, P, strict=True)]
    return tagged, failures


def _features(
    library: "Library",
    tagger: Tagger,
    paths: Sequence[str],
    tracks: Sequence[Track | None],
    progress: Progress | None,
) -> tuple[dict[str, NDArray[np.float32]], list["UnusableFile"]]:
    """Path → features: those of the library, or of the file where it has none."""
    ids = [track.id for track in tracks if track is not None]
    have, matrix = library.tracks.features(ids, extractor=tagger.extractor)
    stored = dict(zip(have.tolist(), matrix, strict=True))
    vectors = {
        path: stored[track.id]
        for path, track in zip(paths, tracks, strict=True)
        if track is not None and track.id in stored
    }
    unheard = [path for path in dict.fromkeys(paths) if path not in vectors]
    if not unheard:
        return vectors, []
    from harmonium.audio.extraction import extract_files
    from harmonium.user_folders import user_cache_folder

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
    from harmonium.collection.indexing.run import extractor_key

    name = key.rpartition("@")[0] or key
    extractor = get_extractor(name)
    if extractor_key(extractor) != key:
        raise LibraryError(
            f"The model was trained with other features than {name!r} gives now. `harmonium "
            "index` computes those of the library anew, and `harmonium train` learns from them."
        )
    return extractor


def _said(library: "Library", ids: Iterable[int]) -> dict[int, dict[str, bool]]:
    """Track → tag → whether people say that it holds; not where they leave it open."""
    return agreed(library.opinions.of(list(ids)))


def _known_row(tagger: Tagger, known: Known, said: dict[str, bool]) -> NDArray[np.float32]:
    """What is known of a track, (n_tags,); what was given now goes before what was said."""
    own = {tag: holds for tag, holds in said.items() if tag not in known.present + known.absent}
    return tagger.known(
        [*known.present, *(tag for tag, holds in own.items() if holds)],
        [*known.absent, *(tag for tag, holds in own.items() if not holds)],
    )


def stored_tags(library: "Library", tagger: Tagger, page: int = 1000) -> Iterator[Tagged]:
    """All present tracks that the model has heard, with what is stored of them."""
    assert tagger.id is not None
    heard, _ = library.predictions.columns(tagger.id, [0])
    ids = np.intersect1d(heard, library.tracks.ids())
    for start in range(0, len(ids), page):
        some = ids[start : start + page]
        P, said = library.predictions.of(tagger.id, some), _said(library, some)
        for track, p in zip(library.tracks.many(some), P, strict=True):
            yield Tagged(track.path, track, said.get(track.id, {}), p, NOTHING)
