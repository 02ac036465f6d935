"""The health of a library: files, tags, and what people may have got wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from harmonium.arrays import Doubles, Floats
from harmonium.library.library import Library
from harmonium.library.store.models import StoredModel
from harmonium.library.store.opinions import judge, label_matrix, only_answered_tracks, with_kinds
from harmonium.library.store.tracks import Track
from harmonium.library.tagger import Tagger

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
    doubts: list[Doubt] | None  # None without a model

    @property
    def is_well(self) -> bool:
        """Whether no file is broken or missing."""
        return not self.unreadable and not self.missing

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a track is its path, and a doubt also has the track's number, `id`."""
        doubts = self.doubts
        return {
            "unreadable": [{"path": one.path, "reason": one.reason} for one in self.unreadable],
            "missing": [one.path for one in self.missing],
            "copies": [{"path": path, "track": one.path} for path, one in self.copies],
            "recordings": [[one.path for one in tracks] for tracks in self.recordings],
            "unused": self.unused,
            "once": self.once,
            "spellings": [one._asdict() for one in self.spellings],
            "doubts": doubts
            and [{**one._asdict(), "track": one.track.path, "id": one.track.id} for one in doubts],
        }


def examine(library: Library, *, doubts: int = 20) -> Health:
    """Check a whole library, and list the ``doubts`` most surprising tags by people."""
    used = library.opinions.tags()
    counts = dict(zip(used["tag"].to_list(), used["n_tracks"].to_list(), strict=True))
    model = library.models.current()
    tracks = [*library.tracks.all(states=("present", "missing", "unreadable"))]
    copies = library.tracks.copies([one.id for one in tracks])
    named: dict[tuple[str, str], list[Track]] = {}
    for track in tracks:
        if track.state == "present" and track.artist and track.title:
            key = (track.artist.strip().casefold(), track.title.strip().casefold())
            named.setdefault(key, []).append(track)
    return Health(
        unreadable=[one for one in tracks if one.state == "unreadable"],
        missing=[one for one in tracks if one.state == "missing"],
        copies=sorted(
            ((path, one) for one in tracks for path in copies.get(one.id, ())),
            key=lambda copy: copy[0],
        ),
        recordings=[some for _, some in sorted(named.items()) if len(some) > 1],
        unused=sorted(library.used_tags() - set(counts)),
        once=sorted(tag for tag, n in counts.items() if n == 1),
        spellings=near_spellings(counts),
        doubts=None if model is None or not model.n_own else find_doubts(library, model, doubts),
    )


def find_doubts(library: Library, model: StoredModel, n: int) -> list[Doubt]:
    """The n training labels that held-out probabilities contradict most.

    The surprise at a tag that was given is log(usual / p), and log((1 - usual) / (1 - p)) at one
    that was not: how many times less probable the label is for a track with this sound than for any
    track. Only tags that the model has learnt are judged.
    """
    if n == 0:
        return []
    tagger = Tagger(model)
    tags = tagger.tags[: tagger.n_own]
    ids, P = tagger.held_out
    opinions = with_kinds(library.opinions.triples(), library.genres())
    rule = {key: model.report[key] for key in ("min_count", "min_share") if key in model.report}
    answered = only_answered_tracks(library, opinions)
    Y = label_matrix(judge(opinions, **rule), ids, tags, only_answered=answered)
    surprise = surprises(Y, P, tagger.rates[: len(tags)])
    surprise[:, ~tagger.learnt[: len(tags)]] = -np.inf
    tagged = np.isin(ids, opinions["track_id"].to_numpy())
    surprise[~tagged] = -np.inf
    order = np.argsort(-surprise, axis=None, kind="stable")[:n]
    rows, columns = np.unravel_index(order, surprise.shape)
    kept = surprise[rows, columns] >= MIN_SURPRISE
    rows, columns = rows[kept], columns[kept]
    found = []
    for track, i, j in zip(library.tracks.many(ids[rows]), rows, columns, strict=True):
        numbers = (float(P[i, j]), float(tagger.rates[j]), float(surprise[i, j]))
        found.append(Doubt(track, tagger.tags[j], bool(Y[i, j]), *numbers))
    return found


def surprises(Y: Floats, P: Floats, rates: Doubles) -> Doubles:
    """log(usual probability of the label / its probability), (n, C); -∞ where it is unknown."""
    p = np.clip(P.astype(np.float64), 1e-4, 1 - 1e-4)
    rates = np.clip(rates, 1e-4, 1 - 1e-4)
    given, not_given = np.log(rates / p), np.log((1 - rates) / (1 - p))
    return np.where(np.isnan(Y), -np.inf, np.where(Y == 1, given, not_given))


def near_spellings(counts: Mapping[str, int]) -> list[Spellings]:
    """Pairs of tags that differ only in spaces, signs or a plural s, or in one letter."""
    # First the pair whose rarer tag is on most tracks, by ``counts``.
    keys: dict[str, set[str]] = {}
    for tag in counts:  # by what it may share with others: itself, and itself less one letter
        plain = _letters_of(tag)
        n_less = len(plain) if len(plain) >= MIN_LENGTH else 0
        for key in (plain or tag, *(plain[:i] + plain[i + 1 :] for i in range(n_less))):
            keys.setdefault(key, set()).add(tag)
    pairs = {pair for same in keys.values() for pair in combinations(sorted(same), 2)}
    found = []
    for pair in pairs:
        if _is_near(*pair):
            rare, common = sorted(pair, key=lambda tag: (counts[tag], tag))
            found.append(Spellings(rare, counts[rare], common, counts[common]))
    return sorted(found, key=lambda pair: (-pair.n_tracks, pair.tag, pair.other))


def _letters_of(tag: str) -> str:
    """Letters and digits alone, without a plural s."""
    letters = "".join(c for c in tag if c.isalnum())
    return letters[:-1] if len(letters) >= MIN_LENGTH and letters.endswith("s") else letters


def _is_near(one: str, other: str) -> bool:
    a, b = _letters_of(one), _letters_of(other)
    if a == b:
        return bool(a)
    if min(len(a), len(b)) < MIN_LENGTH:
        return False
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    if len(a) <= 1 and len(b) <= 1:  # one letter added, missing or changed: 1980s is not 1990s
        return not (a + b).isdigit()
    return len(a) == len(b) == 2 and a == b[::-1]  # two letters swapped
