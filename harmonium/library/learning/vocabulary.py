"""Which tags have enough tracks to learn from, and what the others lack."""

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from harmonium.errors import DataError

USUAL_EXAMPLES = 10
"""Tracks that a tag needs, where there are enough tagged tracks."""
FEWEST_EXAMPLES = 5
"""Tracks that a tag needs where few are tagged: with fewer, a score would be chance."""
FEW_TRACKS = 100
FEWEST_TRACKS = 20
"""With fewer tagged tracks nothing is learnt."""


class ExcludedTag(NamedTuple):
    """A tag that is not learnt."""

    tag: str
    examples: int
    missing: int
    """How many more tracks it needs: that have it, or, if it is on most tracks, that do not."""
    reason: str


@dataclass(frozen=True)
class Vocabulary:
    """The tags to learn, most used first."""

    tags: tuple[str, ...]
    left_out: tuple[ExcludedTag, ...]
    """The other tags, most used first."""


def choose_vocabulary(
    judged: pl.DataFrame, n_tracks: int, *, min_examples: int | None = None, max_tags: int = 200
) -> Vocabulary:
    """The tags of judged votes that have enough tracks with them, and enough without.

    Parameters
    ----------
    judged : what ``verdicts.judge`` gives of the tracks that can be learnt from
    n_tracks : how many those are
    min_examples : tracks that a tag needs; by default `USUAL_EXAMPLES`, or `FEWEST_EXAMPLES` where
        there are fewer than `FEW_TRACKS` tracks
    max_tags : take the most used ones

    Raises
    ------
    DataError
        where the tracks or the tags are too few, with how many more it takes
    """
    needed = _examples_needed(n_tracks, min_examples)
    table = (
        judged.group_by("tag")
        .agg(examples=(pl.col("label") == 1).sum(), unknown=pl.col("label").is_nan().sum())
        .filter(pl.col("examples") > 0)
        .sort("examples", "tag", descending=[True, False])
    )
    tags: list[str] = []
    left_out = []
    for tag, n, unknown in table.iter_rows():
        lack = _lack(n, n_tracks - n - unknown, needed)
        if lack is None and len(tags) == max_tags:
            lack = (0, f"only the {max_tags:,} most used tags are learnt")
        if lack is None:
            tags.append(tag)
        else:
            left_out.append(ExcludedTag(tag, n, *lack))
    if not tags:
        raise DataError(_nothing(left_out, needed))
    return Vocabulary(tuple(tags), tuple(left_out))


def _examples_needed(n_tracks: int, asked: int | None) -> int:
    """How many tracks a tag needs, where there are enough tracks at all."""
    if n_tracks < FEWEST_TRACKS:
        raise DataError(
            f"{n_tracks:,} tracks have both features and tags; training needs at least "
            f"{FEWEST_TRACKS}. Tag {FEWEST_TRACKS - n_tracks:,} more, or import more tags."
        )
    usual = USUAL_EXAMPLES if n_tracks >= FEW_TRACKS else FEWEST_EXAMPLES
    needed = usual if asked is None else asked
    if needed < 2:
        raise DataError(f"'min_examples' must be at least 2, got {needed}.")
    return needed


def _lack(n_with: int, n_without: int, needed: int) -> tuple[int, str] | None:
    """How many tracks a tag lacks, and which; None if it has enough."""
    for there, what in ((n_with, "with it"), (n_without, "without it")):
        if (lack := needed - there) > 0:
            return lack, f"{lack:,} more {'track' if lack == 1 else 'tracks'} {what}"
    return None


def _nothing(left_out: list[ExcludedTag], needed: int) -> str:
    message = f"No tag has {needed:,} tracks with it and {needed:,} without it to learn from."
    if left_out:
        near = min(left_out, key=lambda tag: (tag.missing, tag.tag))
        message += f" The nearest is {near.tag!r}, which needs {near.reason}."
    return f"{message} Tag more tracks, or ask for less with --min-examples."
