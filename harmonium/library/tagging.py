"""Tags files, in the library or not, with the model in use; people's tags help infer others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.folders import find_audio
from harmonium.errors import DataError, LibraryError
from harmonium.files import absolute_path, user_cache_folder
from harmonium.library.library import Library, Progress
from harmonium.library.model.builtin import builtin_model, use_builtin
from harmonium.library.model.tag_table import Tag, TagTable
from harmonium.library.model.tagger import Tagger, current_model
from harmonium.library.snapshot import TrackTag
from harmonium.library.store.database import batches
from harmonium.library.store.models import Owner, StoredModel
from harmonium.library.store.predictions import packed
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import agreed_tags

if TYPE_CHECKING:
    from harmonium.audio.extraction import FileFeatures
    from harmonium.audio.extractors import Extractor

UNLIKELY = 0.1  # a lower mean leaves a tag out over time, unless it reaches its threshold somewhere
MAX_SERIAL = 8  # up to this many files are read in this process; starting others would take longer


@dataclass(frozen=True)
class TaggedFile:
    """What is known and predicted about a file."""

    path: str
    track: Track | None  # None if the file is not in the library
    said: dict[str, bool]  # tag → whether it holds, if people agree
    given: dict[str, bool]  # tag → whether it holds, given by the caller; overrides what people say
    probabilities: Floats = field(repr=False)  # (n_tags,)
    tagger: Tagger = field(repr=False)
    table: TagTable = field(repr=False)

    @property
    def features(self) -> dict[str, float]:
        """Its audio features, such as energy, from 0 to 1."""
        return {name: float(self.probabilities[j]) for name, j in self.tagger.features.items()}

    def tags(self, top: int | None = None, min_probability: float | None = None) -> list[TrackTag]:
        """Its tags: what is known first, then the model's, those that tell most about it first.

        The model's tags are those that it has (`Tag.holds`), the ``top`` first ones, or those with
        at least ``min_probability``.
        """
        known = self.given | self.said | self.given  # in this order; given tags count most
        tags = []
        for name, holds in known.items():
            if holds:
                source = "given" if name in self.given else "people"
                tags.append(TrackTag(name, self.table[name].spelling, 1.0, source))
        for tag, p in self.predicted(top, min_probability):
            if tag.name not in known:
                source = "built-in" if tag.owner == "built-in" else "model"
                precision = tag.precision_from(p)
                tags.append(TrackTag(tag.name, tag.spelling, p, source, precision))
        return tags

    def predicted(
        self, top: int | None = None, min_probability: float | None = None
    ) -> list[tuple[Tag, float]]:
        """The model's tags with their probabilities, as in `tags`, whatever is known about them."""
        known = self.given | self.said | self.given
        p = self.probabilities
        tags = list(self.table.predicted)
        if top is None and min_probability is None:
            reached = np.flatnonzero(self.table.reached(packed(p))).tolist()
            tags = [tags[i] for i in reached if self.table.predicts(tags[i], known, 1.0)]
        else:
            least = max(min_probability or 0, 1e-6)
            tags = [tag for tag in tags if tag.place < len(p) and p[tag.place] >= least]
        gain = self.tagger.information_gain(p)
        tags = sorted(tags, key=lambda tag: -gain[tag.place])[:top]
        return [(tag, float(p[tag.place])) for tag in tags]

    @property
    def is_music(self) -> bool:
        """Whether it sounds like music; silence, noise and speech do not."""
        return self.tagger.is_music(self.probabilities)


@dataclass(frozen=True)
class TaggedFiles:
    """Files with their tags."""

    files: list[TaggedFile]
    failures: list["FileFeatures"]  # files that could not be used, each with the reason

    def __iter__(self) -> Iterator[TaggedFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class TagsOverTime:
    """How likely a file's tags are at some points in it, from the sound there alone."""

    begins: list[float]  # seconds
    ends: list[float]
    tags: dict[str, list[float]]  # tag → its probability at each place; the likeliest tag first


def tags_over_time(
    library: Library | None,
    named: str | Path,
    tag: str | None = None,
    progress: Progress | None = None,
    file: BinaryIO | None = None,
) -> TagsOverTime:
    """Like `Library.over_time`; ``file`` is the file if it is already open."""
    from harmonium.audio.over_time import features_over_time

    tagger, table = _tagger(library)
    path = _music_files(library, [named])[0]
    asked = None if tag is None else [tagger.place(tag)]
    track = None if library is None else library.tracks.find(absolute_path(path))
    extractor = extractor_named(tagger.extractor)
    key = track.sound if track else ""
    times, X = features_over_time(
        file or path, extractor, cache=user_cache_folder(), key=key, progress=progress
    )
    P = tagger.probabilities(X, music_only=False).astype(np.float64).round(3)
    mean = P.mean(axis=0)
    likely = [
        tag.place
        for tag in table.predicted
        if mean[tag.place] >= UNLIKELY or any(tag.reached(p) for p in P[:, tag.place].tolist())
    ]
    chosen = asked or sorted(likely, key=lambda j: -mean[j])
    begins, ends = times.T.astype(np.float64).round(3).tolist()
    return TagsOverTime(begins, ends, {tagger.tags[j]: P[:, j].tolist() for j in chosen})


def _tagger(library: Library | None, owner: Owner | None = None) -> tuple[Tagger, TagTable]:
    """The model in use for tags of an owner, or the built-in one; and its tags."""
    model = None if library is None else use_builtin(library)
    if model is None or (owner == "built-in" and _is_all_own(model)):
        model = builtin_model()
    table = TagTable.of_builtin() if library is None else TagTable.of_library(library, model)
    return Tagger(model, library), table.only(owner)


def _is_all_own(model: StoredModel) -> bool:
    return all(output.source != "built-in" for output in model.outputs)


def tag_files(
    library: Library | None,
    named: Sequence[str | Path],
    *,
    known: str | None = None,
    sound_only: bool = False,
    lowest: bool = False,
    owner: Owner | None = None,
    progress: Progress | None = None,
) -> TaggedFiles:
    """The tags of files and folders of music, see `Library.tag`; the library may be missing.

    ``lowest`` as in `Tagger.probabilities`.
    """
    tagger, table = _tagger(library, owner)
    given = read_known(known or "", tagger)
    paths = _music_files(library, named)
    tracks: dict[str, Track] = {}
    said: dict[int, dict[str, bool]] = {}
    vectors: dict[str, Floats] = {}
    if library is not None:
        at = {path: library.tracks.find(absolute_path(path)) for path in paths}
        tracks = {path: track for path, track in at.items() if track is not None}
        ids = [track.id for track in tracks.values()]
        have, X = library.tracks.features(ids, extractor=tagger.extractor)
        stored = dict(zip(have.tolist(), X, strict=True))
        vectors = {p: stored[track.id] for p, track in tracks.items() if track.id in stored}
        said = agreed_tags(library.opinions.triples(ids), library.genres())
    failures: list[FileFeatures] = []
    if unread := [path for path in dict.fromkeys(paths) if path not in vectors]:
        from harmonium.audio.extraction import extract_files

        extraction = extract_files(
            unread,
            extractor=extractor_named(tagger.extractor),
            engine="serial" if len(unread) <= MAX_SERIAL else "processes",
            cache=user_cache_folder(),
            progress=progress,
        )
        vectors |= dict(zip(extraction.paths, extraction.features, strict=True))
        failures = list(extraction.failures)
    paths = [path for path in paths if path in vectors]
    if not paths:
        return TaggedFiles([], failures)
    agreed = [said.get(tracks[path].id, {}) if path in tracks else {} for path in paths]
    settled = [({} if sound_only else own) | given for own in agreed]
    Y = np.array([[holds.get(tag, np.nan) for tag in tagger.tags] for holds in settled], np.float32)
    P = tagger.probabilities(np.stack([vectors[path] for path in paths]), Y, lowest=lowest)
    files = [
        TaggedFile(
            path=path,
            track=tracks.get(path),
            said=own,
            given=given,
            probabilities=p,
            tagger=tagger,
            table=table,
        )
        for path, own, p in zip(paths, agreed, P, strict=True)
    ]
    return TaggedFiles(files, failures)


def read_known(text: str, tagger: Tagger) -> dict[str, bool]:
    """Tag → whether it holds, from a text such as "rock, guitar, -live"; a minus rejects a tag."""
    known: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = tagger.tags[tagger.place(part.removeprefix("-"))]
        holds = not part.startswith("-")
        if known.setdefault(name, holds) != holds:
            raise DataError(f"The tag {name!r} cannot be both present and absent.")
    return known


def extractor_named(key: str) -> "Extractor":
    """The extractor with this key, if it still gives the same numbers."""
    from harmonium.audio.extractors import extractor_key, get_extractor

    name = key.rpartition("@")[0] or key
    extractor = get_extractor(name)
    if extractor_key(extractor) != key:
        raise LibraryError(
            f"The model's features differ from those that {name!r} gives now. Run `harmonium "
            "index` to compute them again, then `harmonium train`."
        )
    return extractor


def stored_tags(library: Library, owner: Owner | None = None) -> Iterator[TaggedFile]:
    """All present tracks that the model in use has tagged, with their stored predictions."""
    model = current_model(library)
    tagger = Tagger(model, library)
    table = TagTable.of_library(library, model).only(owner)
    tagged = library.predictions.matrix(tagger.id, [0]).ids
    tree = library.genres()
    for page in batches(np.intersect1d(tagged, library.tracks.ids()).tolist()):
        P = library.predictions.probabilities(tagger.id, page)[:, : len(tagger.tags)]
        said = agreed_tags(library.opinions.triples(page), tree)
        for track, p in zip(library.tracks.many(page), P, strict=True):
            yield TaggedFile(
                path=track.path,
                track=track,
                said=said.get(track.id, {}),
                given={},
                probabilities=p,
                tagger=tagger,
                table=table,
            )


def _music_files(library: Library | None, named: Sequence[str | Path]) -> list[str]:
    """The files named by path, by folder, or as tracks in the library."""
    paths = []
    for one in named:
        path = Path(one).expanduser()
        try:
            if path.exists():
                paths.append(path)
            elif library is None:
                raise LibraryError("There is no library to look it up in, either.")
            else:
                paths.append(Path(library.track(str(one)).path))
        except LibraryError as error:
            raise LibraryError(f"There is no file {str(one)!r}. {error}") from None
    files, _, _ = find_audio(paths)
    if not files:
        raise DataError("There are no music files in these folders.")
    return files
