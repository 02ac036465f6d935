"""From what people say of tracks to labels to learn from: present, absent or unknown.

Of a track that somebody has tagged, a tag that nobody gave it is absent. Who says that a tag does
not hold has one vote against it. Where a track has many people, one voice is not enough.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError

MIN_SHARE = 0.2
"""Up to five people of a track, one of them is enough for a tag."""


def votes(opinions: pl.DataFrame) -> pl.DataFrame:
    """For each track and tag of opinions (person, track_id, tag, value): who is for and against.

    The columns: track_id, tag, present and absent (how many say so), people (how many have said
    anything of the track).
    """
    people = opinions.group_by("track_id").agg(people=pl.col("person").n_unique())
    counted = opinions.group_by("track_id", "tag").agg(
        present=(pl.col("value") > 0).sum().cast(pl.Int64),
        absent=(pl.col("value") < 0).sum().cast(pl.Int64),
    )
    return counted.join(people, on="track_id").sort("track_id", "tag")


def judge(
    counted: pl.DataFrame, *, min_count: int = 1, min_share: float = MIN_SHARE
) -> pl.DataFrame:
    """The votes with the column label: 1, 0, or NaN where they leave it open.

    A tag is present if more are for it than against, these are at least ``min_count`` people, and
    at least the share ``min_share`` of the track's. It is absent if nobody is for it, if more are
    against, or if the share is too small; otherwise it is unknown.
    """
    if min_count < 1:
        raise DataError(f"'min_count' must be at least 1, got {min_count}.")
    if not 0 <= min_share <= 1:
        raise DataError(f"'min_share' must be between 0 and 1, got {min_share}.")
    present, absent = pl.col("present"), pl.col("absent")
    rejected = (present == 0) | (absent > present) | (present < min_share * pl.col("people"))
    accepted = (present > absent) & (present >= min_count)
    label = pl.when(rejected).then(0.0).when(accepted).then(1.0).otherwise(float("nan"))
    return counted.with_columns(label=label.cast(pl.Float32))


def agreed(opinions: pl.DataFrame) -> dict[int, dict[str, bool]]:
    """Track → tag → whether it holds, where people settle that; the tags most said first.

    It holds if more say so than not, and these are at least the share `MIN_SHARE` of the people who
    have said anything of the track; it does not if more say that it does not. What is neither, one
    voice among very many or as many on either side, is left to the model.
    """
    present, absent = pl.col("present"), pl.col("absent")
    enough = present >= MIN_SHARE * pl.col("people")
    table = (
        votes(opinions)
        .with_columns(holds=present > absent, said=pl.max_horizontal(present, absent))
        .filter((absent > present) | ((present > absent) & enough))
        .sort("said", "tag", descending=[True, False])
    )
    found: dict[int, dict[str, bool]] = {}
    for track, tag, holds in table.select("track_id", "tag", "holds").iter_rows():
        found.setdefault(track, {})[tag] = holds
    return found


def label_matrix(
    judged: pl.DataFrame, ids: NDArray[np.int64], tags: Sequence[str]
) -> NDArray[np.float32]:
    """Labels of tracks, whose sorted ids are given, (n, n_tags): 0 where there is no vote."""
    Y = np.zeros((len(ids), len(tags)), np.float32)
    column = pl.DataFrame(
        {"tag": list(tags), "column": np.arange(len(tags))}, schema_overrides={"tag": pl.String}
    )
    rows = judged.join(column, on="tag").filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
    row = np.searchsorted(ids, rows["track_id"].to_numpy())
    Y[row, rows["column"].to_numpy()] = rows["label"].to_numpy()
    return Y
