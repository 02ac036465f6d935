"""What people agree on about all tracks, kept in memory.

After a change, only the tracks that it touched are judged anew: what people agree on about a track
depends on nothing but what they say of it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.data.genre_tree import GenreTree
from harmonium.library.library import Library
from harmonium.library.store.database import LibraryVersion
from harmonium.library.store.schema import opinion
from harmonium.library.verdicts import Agreement, judge, with_kinds

MANY = 5_000
"""From so many touched tracks on, all are judged anew."""
_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """Track, tag and whether it holds, where people agree on that; the rows in order of tracks."""

    tree: GenreTree
    names: list[str]
    """The tags."""
    tracks: NDArray[np.int64]
    """(n,) ascending; of one track the tag that most people speak of comes first."""
    tags: NDArray[np.int32]
    """(n,) places in ``names``"""
    holds: NDArray[np.bool_]
    """(n,)"""

    @classmethod
    def read(cls, library: Library) -> Self:
        """That of a library as it is now."""
        tree = library.genres()
        return cls._of(tree, _judged(library.opinions.triples(), tree))

    @classmethod
    def _of(cls, tree: GenreTree, frame: pl.DataFrame) -> Self:
        names = frame["tag"].unique().sort().to_list()
        codes = frame["tag"].cast(pl.Enum(names)).to_physical().cast(pl.Int32)
        return cls(
            tree,
            names,
            frame["track_id"].to_numpy(),
            codes.to_numpy(),
            frame["holds"].to_numpy(),
        )

    def brought_up_to(self, library: Library, since: LibraryVersion) -> "VerdictTable":
        """The table as it is now, where this one is of the version ``since``."""
        if library.genres() != self.tree:
            return self.read(library)
        touched = _touched(library, since)
        if len(touched) > MANY:
            return self.read(library)
        new = _judged(library.opinions.triples(touched), self.tree)
        stay = ~np.isin(self.tracks, touched)
        names = np.array(self.names, object)
        old = pl.DataFrame(
            {
                "track_id": self.tracks[stay],
                "tag": pl.Series(names[self.tags[stay]], dtype=pl.String),
                "holds": self.holds[stay],
            }
        )
        joined = pl.concat([old, new]).sort("track_id", maintain_order=True)
        return self._of(self.tree, joined)

    def agreement(self, name: str) -> Agreement:
        """The tracks of which people agree on a tag."""
        place = self._places.get(self.tree.canonical(name))
        if place is None:
            return Agreement(_NOBODY, _NOBODY)
        rows = self._by_tag[self._starts[place] : self._starts[place + 1]]
        holds = self.holds[rows]
        return Agreement(self.tracks[rows[holds]], self.tracks[rows[~holds]])

    def of_track(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds, the tags most said first."""
        begin, end = np.searchsorted(self.tracks, [track_id, track_id + 1])
        return {
            self.names[tag]: bool(holds)
            for tag, holds in zip(self.tags[begin:end], self.holds[begin:end], strict=True)
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _by_tag(self) -> NDArray[np.intp]:
        """Rows, tag after tag."""
        return np.argsort(self.tags, kind="stable")

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where each tag begins in `_by_tag`, and the end."""
        return np.searchsorted(self.tags[self._by_tag], np.arange(len(self.names) + 1))


def _judged(opinions: pl.DataFrame, tree: GenreTree) -> pl.DataFrame:
    """Columns track_id, tag and holds, in the order of `VerdictTable`."""
    return (
        judge(with_kinds(opinions, tree))
        .filter(pl.col("verdict").is_not_nan())
        .with_columns(said=pl.max_horizontal("present", "absent"))
        .sort("track_id", "said", "tag", descending=[False, True, False])
        .select("track_id", "tag", holds=pl.col("verdict") == 1)
    )


def _touched(library: Library, since: LibraryVersion) -> NDArray[np.int64]:
    """The tracks of which opinions have begun or ended since then.

    Answers of one sitting go on being added to its change, so the last one is looked at again.
    """
    begun = sa.select(opinion.c.track_id).where(opinion.c.id > since.opinion)
    ended = sa.select(opinion.c.track_id).where(opinion.c.ended_by >= since.change)
    rows = [*library.fetch(begun), *library.fetch(ended)]
    return np.unique([row.track_id for row in rows]).astype(np.int64)
