"""Which tags to learn on which tracks, and what people say there.

A track that people have described lacks the tags that they did not give it. Three kinds of tracks
have more to be found out: people have only answered questions about them; nobody knows their genre;
or only their files say something, and only a genre. There a tag without a vote is unknown.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Ids, Mask
from harmonium.data.genres import GenreTree, builtin_tree
from harmonium.data.tag_names import NO_TAG, kind_of, normalise_tag
from harmonium.errors import DataError
from harmonium.library.library import Library
from harmonium.library.model.builtin import builtin_kinds, builtin_vocabulary
from harmonium.library.store.reports import ExcludedTag
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.verdicts import (
    MIN_SHARE,
    is_answer,
    judge,
    label_matrix,
    only_answered_tracks,
    with_implied_genres,
)

MIN_TRACKS = 20  # nothing is learnt from fewer tagged tracks
MIN_EXAMPLES = 5  # of a tag: a score from fewer is chance
BLOCK = 8192  # tracks that are read and written at a time


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train."""

    min_examples: int = MIN_EXAMPLES  # tracks with a tag, and without it, that it needs
    max_tags: int = 200
    min_count: int = 1  # how many people must give a track a tag
    min_share: float = MIN_SHARE  # the share of a track's people who must give it the tag
    smooth: bool = True  # whether to try smoothed tags, if people have tagged the same tracks
    seed: int = 0
    genres: GenreTree | None = None  # the tree to use from now on; by default the library's

    def tree(self, library: Library) -> GenreTree:
        """The genre tree to use from now on."""
        return library.genres() if self.genres is None else self.genres


class UnknownLabels(NamedTuple):
    """Tags that are unknown on some tracks unless somebody mentions them."""

    tracks: Ids
    tags: Mask  # (n_tags,)


@dataclass(frozen=True, kw_only=True, eq=False)
class TaggedTracks:
    """The tracks with features that people have tagged, and the tags to learn from them."""

    extractor: str  # the key of the features
    ids: Ids  # (n,) ascending
    opinions: pl.DataFrame  # about these tracks, with the genres that they imply
    judged: pl.DataFrame  # what people agree on, from `judge`
    tags: tuple[str, ...]  # to learn; the most used first
    excluded: list[ExcludedTag]  # the other tags
    only_answered: Ids  # tracks on which people have only answered questions
    unknown: list[UnknownLabels]
    with_genre: Ids  # tracks with a genre that is learnt or generally known

    @classmethod
    def read(cls, library: Library, options: TrainingOptions) -> Self:
        """Read them; a DataError says what is missing."""
        extractor = library.settings.get(EXTRACTOR)
        if extractor is None:
            raise DataError(
                "The library has no features to learn from. `harmonium index FOLDER` computes them."
            )
        kinds = library.tags.kinds()
        opinions = library.opinions.triples()
        no_tags = [tag for tag in opinions["tag"].unique() if kind_of(tag, kinds) == NO_TAG]
        is_no_tag = pl.col("tag").is_in(no_tags)
        vague = opinions.filter(is_no_tag)["track_id"].to_numpy()
        opinions = opinions.filter(~is_no_tag)
        tagged = np.unique(opinions["track_id"].to_numpy().astype(np.int64))
        ids = library.tracks.with_features(tagged, extractor=extractor)
        opinions = opinions.filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
        only_answered = only_answered_tracks(library, opinions)
        opinions = with_implied_genres(opinions, options.tree(library))
        opinions = opinions.filter(~pl.col("tag").is_in(list(library.tags.hidden())))
        judged = _judge(opinions, kinds, options)
        tags, excluded = choose_vocabulary(
            judged,
            len(ids) - len(only_answered),
            min_examples=options.min_examples,
            max_tags=options.max_tags,
        )
        without_genre = tracks_without_genre(library, ids, judged, vague, kinds, tags)
        with_only_genres = tracks_with_only_genres(library, opinions, kinds)
        is_genre = np.array([kind_of(tag, kinds) == "genre" for tag in tags])
        unknown = []
        for tracks, is_concerned in ((without_genre, is_genre), (with_only_genres, ~is_genre)):
            # If nearly all other tracks have a tag, only these show what lacks it.
            n_without = count_without(judged, ids, np.union1d(tracks, only_answered))
            is_enough = np.array([n_without[tag] >= options.min_examples for tag in tags])
            unknown.append(UnknownLabels(tracks=tracks, tags=is_concerned & is_enough))
        return cls(
            extractor=extractor,
            ids=ids,
            opinions=opinions,
            judged=judged,
            tags=tags,
            excluded=excluded,
            only_answered=only_answered,
            unknown=unknown,
            with_genre=_tracks_with_genre(judged, kinds, tags),
        )

    def genre_labels(self, ids: Ids, genre: str) -> Floats:
        """The labels of any genre on tracks among ``ids``, (n,): 1, 0, or NaN if unknown.

        A track without a genre may have any, and so may one on which people only answered.
        """
        y = np.where(np.isin(ids, self.with_genre), np.float32(0), np.float32(np.nan))
        y[np.isin(ids, self.only_answered)] = np.nan
        votes = self.judged.filter(pl.col("tag") == genre)
        rows = np.searchsorted(ids, votes["track_id"].to_numpy())
        rows = np.minimum(rows, len(ids) - 1)
        present = ids[rows] == votes["track_id"].to_numpy()
        y[rows[present]] = votes["label"].to_numpy()[present]
        return y

    def labels(self, ids: Ids) -> Floats:
        """The labels of consecutive tracks among ``ids``, (n, n_tags): 1, 0, or NaN if unknown."""
        tracks = self.judged["track_id"].to_numpy()
        first, last = np.searchsorted(tracks, [ids[0], ids[-1] + 1]).tolist()
        return label_matrix(
            self.judged.slice(first, last - first),
            ids,
            self.tags,
            only_answered=self.only_answered,
            unknown=self.unknown,
        )


def _judge(
    opinions: pl.DataFrame, kinds: Mapping[str, str], options: TrainingOptions
) -> pl.DataFrame:
    """What people agree on; genres that are used often enough count as parts of other names.

    A track of a subgenre may have the genres above it, whether its people say so or not.
    """
    counts = opinions["tag"].value_counts()
    often = counts.filter(pl.col("count") >= options.min_examples)["tag"]
    return judge(
        opinions,
        min_count=options.min_count,
        min_share=options.min_share,
        genres=[tag for tag in often if kind_of(tag, kinds) == "genre"],
        broader=_broader_genres(opinions["tag"].unique().to_list()),
    )


def _broader_genres(names: Sequence[str]) -> dict[str, set[str]]:
    """Tag → the genres that a track with it may have, too, among the names and the built-in tags.

    They mean the same or more by the built-in tree of genres, or name it: pop/rock for pop.
    """
    tree = builtin_tree()
    all_names = {*names, *builtin_vocabulary("genre")}
    meanings: dict[str, set[str]] = {}
    for name in all_names:
        meanings.setdefault(tree.canonical(name), set()).add(name)
        for part in name.split("/") if "/" in name else ():
            meanings.setdefault(part, set()).add(name)
    broader = {}
    for name in names:
        genres = (tree.canonical(name), *tree.ancestors(name))
        broader[name] = set().union(*(meanings.get(genre, set()) for genre in genres)) - {name}
    return broader


def choose_vocabulary(
    judged: pl.DataFrame, n_tracks: int, *, min_examples: int = MIN_EXAMPLES, max_tags: int = 200
) -> tuple[tuple[str, ...], list[ExcludedTag]]:
    """The tags with enough tracks with and without them, and the other tags; most used first.

    ``judged`` is `judge`'s result for the ``n_tracks`` tracks that can be learnt from. If there are
    too few tracks or tags, a DataError says how many more tracks are needed.
    """
    if n_tracks < MIN_TRACKS:
        raise DataError(
            f"{n_tracks:,} tracks have both features and tags; training needs at least "
            f"{MIN_TRACKS}. Tag {MIN_TRACKS - n_tracks:,} more, or import more tags."
        )
    if min_examples < 2:
        raise DataError(f"'min_examples' must be at least 2, got {min_examples}.")
    table = (
        judged.group_by("tag")
        .agg(examples=(pl.col("label") == 1).sum(), unknown=pl.col("label").is_nan().sum())
        .filter(pl.col("examples") > 0)
        .sort("examples", "tag", descending=[True, False])
    )
    tags: list[str] = []
    excluded = []
    for tag, n_with, n_unknown in table.iter_rows():
        n_without = n_tracks - n_with - n_unknown
        missing = 0
        if n_with < min_examples:
            missing = min_examples - n_with
            reason = f"{_more_tracks(missing)} with it"
        elif n_without < min_examples:
            missing = min_examples - n_without
            reason = f"{_more_tracks(missing)} without it"
        elif len(tags) == max_tags:
            reason = f"only the {max_tags:,} most used tags are learnt"
        else:
            tags.append(tag)
            continue
        excluded.append(ExcludedTag(tag=tag, examples=n_with, missing=missing, reason=reason))
    if not tags:
        raise DataError(_no_vocabulary(excluded, min_examples))
    return tuple(tags), excluded


def _more_tracks(n: int) -> str:
    return f"{n:,} more {'track' if n == 1 else 'tracks'}"


def _no_vocabulary(excluded: Sequence[ExcludedTag], min_examples: int) -> str:
    """Why no tag can be learnt, and what helps."""
    enough = f"{min_examples:,} tracks with it and {min_examples:,} without it"
    message = f"No tag has {enough} to learn from."
    if excluded:
        closest = min(excluded, key=lambda tag: (tag.missing, tag.tag))
        message += f" The closest is {closest.tag!r}, which needs {closest.reason}."
    return f"{message} Tag more tracks, or ask for less with --min-examples."


def tracks_without_genre(
    library: Library,
    ids: Ids,
    judged: pl.DataFrame,
    vague: Ids,
    kinds: Mapping[str, str],
    learnt: Collection[str],
) -> Ids:
    """The tracks whose genres are unknown: they may have any.

    If most tracks have exactly one genre, as in a column, these are all others: their cells may be
    empty. Otherwise they are tracks whose genre is a word that says nothing, such as Other: people
    used such a word for ``vague`` tracks; for the rest, the files decide. A word that is neither
    ``learnt`` nor generally known, such as Clasical, says nothing about the genres that are.
    """
    given = judged.filter(pl.col("label") == 1).select("track_id", "tag").rows()
    n_genres = Counter(track_id for track_id, tag in given if kind_of(tag, kinds) == "genre")
    n_with_one = list(n_genres.values()).count(1)
    if 2 * len(n_genres) > len(ids) and 3 * n_with_one > 2 * len(n_genres):
        candidates = set(ids.tolist())
    else:
        candidates = {*vague.tolist(), *_with_vague_files(library, ids, kinds), *n_genres}
    known = _tracks_with_genre(judged, kinds, learnt)
    return np.array(sorted(candidates - {*known.tolist()}), np.int64)


def _tracks_with_genre(
    judged: pl.DataFrame, kinds: Mapping[str, str], learnt: Collection[str]
) -> Ids:
    """The tracks with a genre that is learnt or generally known."""
    words = {*learnt, *builtin_kinds()}
    genres = [tag for tag in judged["tag"].unique() if kind_of(tag, kinds) == "genre"]
    known = [tag for tag in genres if tag in words]
    has = judged.filter(pl.col("tag").is_in(known) & (pl.col("label") == 1))
    return np.unique(has["track_id"].to_numpy().astype(np.int64))


def _with_vague_files(library: Library, ids: Ids, kinds: Mapping[str, str]) -> list[int]:
    """The tracks whose files have genres, all of which are words that say nothing."""
    tracks = []
    for block in row_blocks(len(ids)):
        for track in library.tracks.many(ids[block]):
            names = [normalise_tag(text) for text in track.file_tags.get("genre", ())]
            if names and all(kind_of(name, kinds) == NO_TAG for name in names):
                tracks.append(track.id)
    return tracks


def tracks_with_only_genres(
    library: Library, opinions: pl.DataFrame, kinds: Mapping[str, str]
) -> Ids:
    """The tracks that nobody has described, but whose files name a genre; nothing else is known."""
    files = [person.name for person in library.opinions.people() if person.kind == "file"]
    genres = [tag for tag in opinions["tag"].unique() if kind_of(tag, kinds) == "genre"]
    from_files = pl.col("person").is_in(files) & pl.col("tag").is_in(genres)
    described = opinions.filter(~from_files & ~is_answer(library))["track_id"].to_numpy()
    return np.setdiff1d(opinions.filter(from_files)["track_id"].to_numpy(), described)


def count_without(judged: pl.DataFrame, ids: Ids, undescribed: Ids) -> dict[str, int]:
    """Tag → the tracks that lack it: the described ones without a vote for it, and rejections."""
    is_undescribed = pl.col("track_id").is_in(pl.Series(undescribed).implode())
    absent = (pl.col("label") == 0).cast(pl.Int64)
    n_described = len(ids) - len(undescribed)
    # A described track lacks every tag but those with a vote, unless that is a rejection.
    n_without = pl.when(is_undescribed).then(absent).otherwise(absent - 1).sum() + n_described
    return dict(judged.group_by("tag").agg(n_without).iter_rows())


def row_blocks(n: int, size: int | None = None) -> list[slice]:
    """Slices over n rows, by default of `BLOCK` rows."""
    size = size or BLOCK
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
