"""The tags of one track, or of one sound, with all that is known about each."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harmonium.arrays import Floats
from harmonium.library.model.tag_table import TagTable
from harmonium.library.model.tagger import Tagger
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.models import Owner


@dataclass(frozen=True)
class TagOfTrack:
    """A track's tag, and what is known about it."""

    tag: str
    shown: str  # as this library spells it
    kind: str
    owner: Owner
    probability: float | None  # what the model says; None if it says nothing
    said: bool | None  # what the person who asks has said
    people: dict[Literal["yes", "no"], int]  # how many people gave it, and how many rejected it
    threshold: float | None
    predicted: bool
    precision: float | None  # share of held-out tracks of at least this probability with the tag


def tags_of_track(snapshot: Snapshot, track_id: int, person: str) -> list[TagOfTrack]:
    """All tags that people or the model mention; those that hold first, then by probability."""
    opinions = snapshot.library.opinions.of_track(track_id)
    n_yes = Counter(tag for _, tag, value in opinions if value > 0)
    n_no = Counter(tag for _, tag, value in opinions if value < 0)
    said = {tag: value > 0 for who, tag, value in opinions if who == person}
    agreed = snapshot.verdicts.of_track(track_id)
    p = snapshot.predictions.rows(np.array([track_id]))[0]
    predicted = [tag.name for tag in snapshot.tags.predicted]
    rows = []
    for name in dict.fromkeys([*n_yes, *n_no, *predicted]):
        tag = snapshot.tags[name]
        probability = None
        # A tag may have been learnt after the predictions were read.
        if tag.predicted and tag.place < len(p) and not np.isnan(p[tag.place]):
            probability = float(p[tag.place])
        row = TagOfTrack(
            tag=name,
            shown=tag.spelling,
            kind=tag.kind,
            owner=tag.owner,
            probability=probability,
            said=said.get(name),
            people={"yes": n_yes[name], "no": n_no[name]},
            threshold=tag.threshold if tag.predicted else None,
            predicted=snapshot.tags.predicts(tag, agreed, probability),
            precision=None if probability is None else tag.precision_from(probability),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (not agreed.get(row.tag), -(row.probability or 0), row.tag))


def tags_by_sound(tagger: Tagger, table: TagTable, p: Floats) -> list[TagOfTrack]:
    """The tags of a sound that is not in the library, the most informative first."""
    information = tagger.information_gain(p)
    rows = []
    for tag in sorted(table.predicted, key=lambda tag: (-information[tag.place], tag.name)):
        probability = float(p[tag.place])
        row = TagOfTrack(
            tag=tag.name,
            shown=tag.spelling,
            kind=tag.kind,
            owner=tag.owner,
            probability=probability,
            said=None,
            people={"yes": 0, "no": 0},
            threshold=tag.threshold,
            predicted=tag.holds(None, probability),
            precision=tag.precision_from(probability),
        )
        rows.append(row)
    return rows
