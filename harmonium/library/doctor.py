"""The health of a library: files, tags, and what people may have got wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonium.arrays import Doubles, Floats
from harmonium.library.library import Library
from harmonium.library.model.tag_table import TagTable
from harmonium.library.model.tagger import Tagger
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import (
    MIN_SHARE,
    judge,
    label_matrix,
    only_answered_tracks,
    with_implied_genres,
)

MIN_SURPRISE = 1.0  # needed for a label to be shown: e times less probable than usual
MIN_LENGTH = 5  # minimum length of a word: in shorter ones, one letter often makes another word


class Doubt(NamedTuple):
    """A tag by people that surprises the model."""

    track: Track
    tag: str
    said: bool  # whether people gave the tag; if not, they gave others
    probability: float  # held-out, that the track has the tag
    usual: float  # the share of tracks that have the tag
    surprise: float  # log(usual / probability) of what people say


class Spellings(NamedTuple):
    """A tag and another one that may be the same."""

    tag: str
    n_tracks: int
    other: str  # the more used one
    n_other: int


@dataclass(frozen=True)
class Health:
    """What was found."""

    unreadable: list[Track]
    missing: list[Track]
    copies: list[tuple[str, Track]]  # (path, track): files with the same sound as a track
    recordings: list[list[Track]]  # same artist and title, different sound: perhaps the same
    unused: list[str]  # tags that are no longer used
    once: list[str]  # tags on a single track
    spellings: list[Spellings]
    doubts: list[Doubt] | None  # None without a model that can judge them

    @property
    def is_well(self) -> bool:
        """Whether no file is broken or missing."""
        return not self.unreadable and not self.missing

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a track is its path, and a doubt also has the track's number, `id`."""
        return {
            "unreadable": [
                {"path": track.path, "reason": track.reason} for track in self.unreadable
            ],
            "missing": [track.path for track in self.missing],
            "copies": [{"path": path, "track": track.path} for path, track in self.copies],
            "recordings": [[track.path for track in tracks] for tracks in self.recordings],
            "unused": self.unused,
            "once": self.once,
            "spellings": [pair._asdict() for pair in self.spellings],
            "doubts": None if self.doubts is None else [_doubt_to_dict(x) for x in self.doubts],
        }


def _doubt_to_dict(doubt: Doubt) -> dict[str, Any]:
    return {**doubt._asdict(), "track": doubt.track.path, "id": doubt.track.id}


def examine(library: Library, *, doubts: int = 20) -> Health:
    """Check a whole library, and list the ``doubts`` most surprising tags by people."""
    used = library.opinions.tags()
    counts = dict(zip(used["tag"].to_list(), used["n_tracks"].to_list(), strict=True))
    tracks = list(library.tracks.all(states=("present", "missing", "unreadable")))
    model = library.models.current()
    return Health(
        unreadable=[track for track in tracks if track.state == "unreadable"],
        missing=[track for track in tracks if track.state == "missing"],
        copies=_copies(library, tracks),
        recordings=_same_names(tracks),
        unused=sorted(library.tags.used() - set(counts)),
        once=sorted(tag for tag, n in counts.items() if n == 1),
        spellings=near_spellings(counts),
        doubts=None if model is None else find_doubts(library, model, doubts),
    )


def _copies(library: Library, tracks: Sequence[Track]) -> list[tuple[str, Track]]:
    """The files that sound like a track's file, by path."""
    paths = library.tracks.copies([track.id for track in tracks])
    pairs = [(path, track) for track in tracks for path in paths.get(track.id, [])]
    return sorted(pairs, key=lambda pair: pair[0])


def _same_names(tracks: Iterable[Track]) -> list[list[Track]]:
    """The present tracks that share artist and title with others."""
    by_name: dict[tuple[str, str], list[Track]] = {}
    for track in tracks:
        if track.state == "present" and track.artist and track.title:
            name = (track.artist.strip().casefold(), track.title.strip().casefold())
            by_name.setdefault(name, []).append(track)
    return [same for _, same in sorted(by_name.items()) if len(same) > 1]


def find_doubts(library: Library, model: StoredModel, n: int) -> list[Doubt] | None:
    """The n training labels that held-out probabilities contradict most.

    The surprise at a tag that was given is log(usual / p), and log((1 - usual) / (1 - p)) at one
    that was not: how many times less probable the label is for a track with this sound than for any
    track. Only tags that the model has learnt are judged. None if the model has learnt no tags from
    the library, or was stored without its held-out probabilities.
    """
    if not model.has_own:
        return None
    tagger = Tagger(model)
    if tagger.held_out is None:
        return None
    if n == 0:
        return []
    ids, P = tagger.held_out
    tags = [output.name for output in tagger.outputs if output.source == "tracks"]
    opinions = with_implied_genres(library.opinions.triples(), library.genres())
    Y = label_matrix(
        _judged(opinions, model.report),
        ids,
        tags,
        only_answered=only_answered_tracks(library, opinions),
    )
    surprise = surprises(Y, P, tagger.rates[: len(tags)])
    table = TagTable.of_library(library, model)
    surprise[:, [not table[tag].predicted for tag in tags]] = -np.inf
    has_opinions = np.isin(ids, opinions["track_id"].to_numpy())
    surprise[~has_opinions] = -np.inf
    order = np.argsort(-surprise, axis=None, kind="stable")[:n]
    rows, columns = np.unravel_index(order, surprise.shape)
    is_large = surprise[rows, columns] >= MIN_SURPRISE
    rows = rows[is_large]
    columns = columns[is_large]
    doubts = []
    for track, i, j in zip(library.tracks.many(ids[rows]), rows, columns, strict=True):
        doubts.append(
            Doubt(
                track=track,
                tag=tagger.tags[j],
                said=bool(Y[i, j]),
                probability=float(P[i, j]),
                usual=float(tagger.rates[j]),
                surprise=float(surprise[i, j]),
            )
        )
    return doubts


def _judged(opinions: pl.DataFrame, report: ModelReport) -> pl.DataFrame:
    """The verdicts and labels, by the rule that the model was trained with."""
    return judge(
        opinions,
        min_count=1 if report.min_count is None else report.min_count,
        min_share=MIN_SHARE if report.min_share is None else report.min_share,
    )


def surprises(Y: Floats, P: Floats, rates: Doubles) -> Doubles:
    """log(usual probability of the label / its probability), (n, C); -∞ where it is unknown."""
    p = np.clip(P.astype(np.float64), 1e-4, 1 - 1e-4)
    rates = np.clip(rates, 1e-4, 1 - 1e-4)
    given = np.log(rates / p)
    not_given = np.log((1 - rates) / (1 - p))
    return np.where(np.isnan(Y), -np.inf, np.where(Y == 1, given, not_given))


def near_spellings(counts: Mapping[str, int]) -> list[Spellings]:
    """Pairs of tags that differ only in spaces, signs or a plural s, or in one letter.

    First the pair whose rarer tag is on most tracks, by ``counts``.
    """
    tags_by_key: dict[str, set[str]] = {}
    for tag in counts:
        for key in _keys_of(tag):
            tags_by_key.setdefault(key, set()).add(tag)
    pairs: set[tuple[str, str]] = set()
    for tags in tags_by_key.values():
        pairs.update(combinations(sorted(tags), 2))
    spellings = []
    for one, other in pairs:
        if _is_near(one, other):
            rare, common = sorted((one, other), key=lambda tag: (counts[tag], tag))
            spellings.append(
                Spellings(tag=rare, n_tracks=counts[rare], other=common, n_other=counts[common])
            )
    return sorted(spellings, key=lambda pair: (-pair.n_tracks, pair.tag, pair.other))


def _keys_of(tag: str) -> list[str]:
    """What a tag shares with any other that is near: its letters, or all of them but one."""
    letters = _letters_of(tag)
    if len(letters) < MIN_LENGTH:
        return [letters or tag]
    return [letters, *(letters[:i] + letters[i + 1 :] for i in range(len(letters)))]


def _letters_of(tag: str) -> str:
    """Letters and digits alone, without a plural s."""
    letters = "".join(character for character in tag if character.isalnum())
    is_plural = len(letters) >= MIN_LENGTH and letters.endswith("s")
    return letters[:-1] if is_plural else letters


def _is_near(one: str, other: str) -> bool:
    a = _letters_of(one)
    b = _letters_of(other)
    if a == b:
        return bool(a)
    if min(len(a), len(b)) < MIN_LENGTH:
        return False
    while a and b and a[0] == b[0]:
        a = a[1:]
        b = b[1:]
    while a and b and a[-1] == b[-1]:
        a = a[:-1]
        b = b[:-1]
    if len(a) <= 1 and len(b) <= 1:  # one letter added, missing or changed: 1980s is not 1990s
        return not (a + b).isdigit()
    return len(a) == len(b) == 2 and a == b[::-1]  # two letters swapped
