"""The tags of one track: what people say, what the model says, and what follows from an answer."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError, LibraryError
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.snapshot import OTHER, Snapshot, owner_of, tag_groups
from harmonium.library.store.models import Owner
from harmonium.library.verdicts import verdict

Floats = NDArray[np.float32]

MOST_MOVED = 8
"""Tags that an answer moved most, which are named."""
LEAST_MOVE = 0.02
"""What is less is not called a move."""


@dataclass(frozen=True)
class PeopleCount:
    """How many people say that a tag fits, and how many that it does not."""

    yes: int
    no: int


@dataclass(frozen=True)
class TagOfTrack:
    """A tag, and what is known of it on a track."""

    tag: str
    shown: str
    """As this library spells it."""
    group: str
    owner: Owner
    """Who knows it: the library's own model, the model that came along, or people alone."""
    probability: float | None
    """What the model says; None where it says nothing."""
    said: bool | None
    """What the person who asks has said."""
    people: PeopleCount
    threshold: float | None
    predicted: bool
    precision: float | None
    """The share of held-out tracks of at least this probability that have the tag."""


def tags_of_track(view: Snapshot, track_id: int, person: str) -> list[TagOfTrack]:
    """All tags that people or the model speak of; what holds first, then by probability."""
    opinions = view.library.opinions.of_track(track_id)
    yes = Counter(tag for _, tag, value in opinions if value > 0)
    no = Counter(tag for _, tag, value in opinions if value < 0)
    own = {tag: value > 0 for who, tag, value in opinions if who == person}
    p = view.predictions.rows(np.array([track_id]))[0]
    found = [
        _tag(view, tag, p, own.get(tag), PeopleCount(yes[tag], no[tag]))
        for tag in dict.fromkeys([*yes, *no, *view.places])
    ]
    holds = {tag for tag, there in view.verdicts.of_track(track_id).items() if there}
    return sorted(found, key=lambda one: (one.tag not in holds, -(one.probability or 0), one.tag))


def tags_by_sound(
    tagger: StoredTagger, p: Floats, spellings: Mapping[str, str]
) -> list[TagOfTrack]:
    """The tags of a sound that is not in the library, the most probable first."""
    groups = tag_groups()
    found = [
        TagOfTrack(
            tag,
            spellings.get(tag, tag),
            groups.get(tag, OTHER),
            "own" if tagger.is_own[j] else "built-in",
            float(p[j]),
            None,
            PeopleCount(0, 0),
            float(tagger.thresholds[j]),
            bool(p[j] >= tagger.thresholds[j]),
            tagger.precision(j, float(p[j])),
        )
        for j, tag in enumerate(tagger.tags)
        if tagger.learnt[j]
    ]
    return sorted(found, key=lambda one: (-(one.probability or 0), one.tag))


def _tag(view: Snapshot, tag: str, p: Floats, said: bool | None, people: PeopleCount) -> TagOfTrack:
    place = view.places.get(tag)
    probability = None if place is None or place >= len(p) or np.isnan(p[place]) else p[place]
    threshold = precision = None
    if place is not None and view.model is not None:
        threshold = float(view.model.thresholds[place])
        if probability is not None and view.tagger is not None:
            precision = view.tagger.precision(place, float(probability))
    return TagOfTrack(
        tag,
        view.shown(tag),
        view.group(tag),
        owner_of(view.model, place),
        None if probability is None else float(probability),
        said,
        people,
        threshold,
        probability is not None and threshold is not None and bool(probability >= threshold),
        precision,
    )


@dataclass(frozen=True)
class CompletedTag:
    """A tag, given what is known of others."""

    tag: str
    probability: float
    before: float
    """What is stored: by the sound, and by what was saved of the track before."""


@dataclass(frozen=True)
class Completion:
    """What follows from an answer."""

    tags: list[CompletedTag]
    moved: list[str]
    """The tags that it moved most, those first."""


def complete_track(
    view: Snapshot, track_id: int, yes: Collection[str], no: Collection[str], person: str
) -> Completion:
    """What the model says of a track, given a person's whole answer, and what others say.

    Parameters
    ----------
    yes, no : tags, in any spelling; those that the model does not know change nothing
    person : who answers; what they said before does not count beside the answer
    """
    tagger = needed_tagger(view)
    known = known_row(view, tagger, track_id, yes, no, person)
    before, after = _both(view, tagger, track_id, known)
    places = list(view.places.values())
    told = ~np.isnan(known)
    change = np.where(told, 0, np.abs(after - before))
    order = sorted(places, key=lambda j: -change[j])[:MOST_MOVED]
    return Completion(
        [CompletedTag(tagger.tags[j], float(after[j]), float(before[j])) for j in places],
        [tagger.tags[j] for j in order if change[j] >= LEAST_MOVE],
    )


def _both(
    view: Snapshot, tagger: StoredTagger, track_id: int, known: Floats
) -> tuple[Floats, Floats]:
    """The stored probabilities, and those with what is known; (n_tags,) each."""
    x = track_features(view, tagger, track_id)
    before = view.predictions.rows(np.array([track_id]))[0]
    if len(before) != len(tagger.tags) or np.isnan(before).any():
        before = tagger.probabilities(x)[0]
    return before, tagger.probabilities(x, known[None])[0]


def needed_tagger(view: Snapshot) -> StoredTagger:
    """The model in use, or a LibraryError that says how to get one."""
    if view.tagger is None:
        raise LibraryError(
            "The library has no model yet. Train one from the tags that people gave to tracks."
        )
    return view.tagger


def track_features(view: Snapshot, tagger: StoredTagger, track_id: int) -> Floats:
    """(1, n_features)"""
    ids, X = view.library.tracks.features([track_id], extractor=tagger.extractor)
    if not len(ids):
        view.library.tracks.get(track_id)
        raise LibraryError(
            f"Track #{track_id} has no features that the model could hear. Index its folder again."
        )
    return X


def known_row(
    view: Snapshot,
    tagger: StoredTagger,
    track_id: int,
    yes: Collection[str],
    no: Collection[str],
    person: str,
) -> Floats:
    """(n_tags,) 1 and 0 for what is known, NaN for the rest."""
    said = _others_agree(view, track_id, person)
    for tags, holds in ((yes, True), (no, False)):
        said |= dict.fromkeys(map(normalise_tag, tags), holds)
    if both := set(map(normalise_tag, yes)) & set(map(normalise_tag, no)):
        raise DataError(f"The tag {min(both)!r} cannot both hold and not hold.")
    return np.array([said.get(tag, np.nan) for tag in tagger.tags], np.float32)


def _others_agree(view: Snapshot, track_id: int, person: str) -> dict[str, bool]:
    """Tag → whether it holds, as all but one person agree."""
    opinions = view.library.opinions.of_track(track_id)
    others: Sequence[tuple[str, str, int]] = [one for one in opinions if one[0] != person]
    if not others:
        return {}
    yes = Counter(tag for _, tag, value in others if value > 0)
    no = Counter(tag for _, tag, value in others if value < 0)
    tags = list(dict.fromkeys([*yes, *no]))
    people = np.full(len(tags), len({who for who, _, _ in others}))
    found = verdict(
        np.array([yes[tag] for tag in tags]), np.array([no[tag] for tag in tags]), people
    )
    return {tag: bool(v) for tag, v in zip(tags, found, strict=True) if not np.isnan(v)}
