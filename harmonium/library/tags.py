"""The tags of a library: how well each is known, which go together, and why a track has one.

How much two tags i and j attract each other, if nothing else is known, is what their log-odds gain
when both hold: with the hidden units summed out,

    J_ij = Σ_h f(U_hi + U_hj) - f(U_hi) - f(U_hj) + f(0)   with f(u) = log (1 + e^{c_h + u})

On the map, tags that attract the same other tags are near each other: t-SNE of the rows of J.

Why a track has a tag is explained in log-odds, starting from how common the tag is. The sound adds
what leads from there to the probability by sound alone. What a known tag adds depends on which
others are already known, so it is the mean over all orders in which they could become known (the
Shapley value), or over `N_ORDERS` random orders and their reverses if more than `MAX_EXACT` tags
are known. Either way the parts add up to the log-odds of the probability.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.errors import DataError
from harmonium.estimators.model_files import sigmoid
from harmonium.estimators.pairs import relations, suggestions, with_counts
from harmonium.library.answers import observed_track
from harmonium.library.library import Library
from harmonium.library.search import unknown_tag
from harmonium.library.snapshot import Hit, Snapshot
from harmonium.library.store.models import Owner
from harmonium.library.store.opinions import with_kinds
from harmonium.library.tagger import Tagger, builtin_model, log_odds, use_builtin

MAX_TRACKS = 8  # tracks of each list of a tag
MAX_RELATED = 8  # tags that a tag makes likely, and as many that it makes unlikely
MIN_PEOPLE = 3  # with fewer, one person's files may have the genres while the person says the rest
LINKS_EACH = 2  # links on the map from a tag to those that it attracts most
MAX_LINKS_AGAINST = 30  # links on the map between tags that push each other away
MIN_TAGS_SPREAD = 8  # tags needed for t-SNE; fewer go on a circle
MAX_EXACT = 5  # all orders are tried up to this number of known tags
N_ORDERS = 4


@dataclass(frozen=True)
class TagEntry:
    """A tag of a library."""

    tag: str
    shown: str  # as this library spells it
    kind: str
    owner: Owner
    auc: float | None  # for held-out tracks
    examples: int  # tracks that the model learnt it from; for a built-in tag, other music
    people: int  # tracks that have it, as people agree
    predicted: int  # tracks that the model gives it
    threshold: float | None
    precision: float | None
    recall: float | None
    hidden: bool


def list_tags(snapshot: Snapshot) -> list[TagEntry]:
    """All tags that people gave or the model has learnt, the most used first."""
    table = snapshot.verdicts
    said = np.bincount(table.tags[table.holds], minlength=len(table.names)).tolist()
    people = {name: n for name, n in zip(table.names, said, strict=True) if n}
    predicted = dict(zip(snapshot.places, snapshot.reached.sum(axis=1).tolist(), strict=True))
    own = {tag["tag"]: tag for tag in snapshot.model.report.get("tags", [])}
    built_in = own
    if not snapshot.model.is_own.all():
        built_in = {tag["tag"]: tag for tag in builtin_model().report["tags"]}
    found = []
    for tag in dict.fromkeys([*people, *predicted, *snapshot.hidden]):
        report = (built_in if snapshot.owner(tag) == "built-in" else own).get(tag, {})
        about = (tag, snapshot.shown(tag), snapshot.kind(tag), snapshot.owner(tag))
        n = (int(report.get("examples") or 0), people.get(tag, 0), predicted.get(tag, 0))
        good = (snapshot.threshold(tag), report.get("precision"), report.get("recall"))
        found.append(TagEntry(*about, report.get("auc"), *n, *good, tag in snapshot.hidden))
    return sorted(found, key=lambda one: (-one.people, -one.predicted, one.tag))


@dataclass(frozen=True)
class Relation:
    """A tag that another makes more or less likely."""

    tag: str
    log_odds: float  # by how much its log-odds are higher with the other tag than without
    probability_with: float
    probability_without: float


@dataclass(frozen=True)
class TagDetail(TagEntry):
    """A tag with everything known about it."""

    curve: list[dict[Literal["threshold", "precision", "low", "recall"], float]]
    """Precision, its lower bound, and recall at each threshold."""
    related: list[Relation]
    surest: list[Hit]  # the most probable tracks for which people leave it open
    doubtful: list[Hit]  # the tracks nearest to its threshold
    surprising: list[Hit]  # tracks where people say yes and the model no, or the other way round


def tag_detail(snapshot: Snapshot, tag: str) -> TagDetail:
    """Everything known about a tag, in any spelling; an `UnknownTagError` if it does not exist."""
    name = snapshot.name(tag)
    entry = next((one for one in list_tags(snapshot) if one.tag == name), None)
    if entry is None:
        raise unknown_tag(tag, snapshot.known)
    place, tagger = snapshot.places.get(name), snapshot.tagger
    if place is None or tagger is None:
        return TagDetail(**vars(entry), curve=[], related=[], surest=[], doubtful=[], surprising=[])
    ids, P = snapshot.columns([place])
    p = _held_out(tagger, place, ids, P[:, 0])
    present = np.isin(ids, snapshot.ids, assume_unique=True)
    agreed = snapshot.verdicts.agreement(name)
    yes, no = np.isin(ids, agreed.yes), np.isin(ids, agreed.no)
    left_open = present & ~yes & ~no
    doubt = np.abs(log_odds(p) - log_odds(snapshot.model.thresholds[[place]]))
    surprise = np.where(yes, 1 - p, np.where(no, p, 0)) * present
    curves = tagger.curves[place : place + 1]
    return TagDetail(
        **vars(entry),
        curve=[
            {"threshold": level, "precision": share, "low": low, "recall": recall}
            for one in curves
            for level, share, low, recall in np.stack(
                [one.thresholds, one.precision, one.below(), one.recall], axis=1
            ).tolist()
        ],
        related=related(tagger, None, name, MAX_RELATED) if name in tagger.tags else [],
        surest=_tracks(snapshot, ids, p, np.where(left_open, p, -np.inf)),
        doubtful=_tracks(snapshot, ids, p, np.where(left_open, -doubt, -np.inf)),
        surprising=_tracks(snapshot, ids, p, np.where(surprise > 0.5, surprise, -np.inf)),
    )


def _held_out(tagger: Tagger, place: int, ids: Ids, p: Floats) -> Floats:
    """Probabilities; held-out ones for tracks that the model was trained on."""
    if "held_out.ids" not in tagger.arrays:
        return p
    known, held_out = tagger.held_out
    if place >= held_out.shape[1]:
        return p
    _, at, of = np.intersect1d(ids, known, assume_unique=True, return_indices=True)
    p = p.copy()
    p[at] = held_out[of, place]
    return p


def _tracks(snapshot: Snapshot, ids: Ids, p: Floats, score: Floats | Doubles) -> list[Hit]:
    rows = np.argsort(-score, kind="stable")[:MAX_TRACKS]
    rows = rows[np.isfinite(score[rows])]
    tracks, tags = snapshot.library.tracks.many(ids[rows]), snapshot.shown_tags(ids[rows])
    return [
        Hit(track, float(p[row]), None, "model", shown_tags=shown)
        for track, row, shown in zip(tracks, rows, tags, strict=True)
    ]


@dataclass(frozen=True)
class Suggestion:
    """A tag that goes with the given ones."""

    tag: str
    probability: float  # given those
    usual: float  # without them


def tagger_and_said(library: Library | None) -> tuple[Tagger, sp.csr_array | None]:
    """The model in use, or else the built-in one; and what people said, from `said_together`."""
    tagger = Tagger((library and use_builtin(library)) or builtin_model())
    if library is not None:
        tagger.aliases.update(library.renamed_tags())
    return tagger, library and said_together(library, tagger.tags)


def said_together(library: Library, tags: Sequence[str]) -> sp.csr_array:
    """Which of these tags each person gave to each track of theirs, (n_pairs, n_tags)."""
    # Fewer than `MIN_PEOPLE` count as one.
    opinions = with_kinds(library.opinions.triples(), library.genres())
    if opinions["person"].n_unique() < MIN_PEOPLE:
        opinions = opinions.with_columns(person=pl.lit("all"))
    pairs = opinions.select("person", "track_id").unique(maintain_order=True).with_row_index("row")
    schema = {"tag": pl.String, "column": pl.Int32}
    places = pl.DataFrame({"tag": tags, "column": range(len(tags))}, schema_overrides=schema)
    said = opinions.filter(pl.col("value") > 0)
    found = said.join(pairs, on=("person", "track_id")).join(places, on="tag")
    ones = np.ones(len(found), np.float32)
    at = (found["row"].to_numpy(), found["column"].to_numpy())
    matrix = sp.csr_array((ones, at), shape=(len(pairs), len(tags)))
    matrix.data[:] = 1  # a tag may have been given twice
    return matrix


def suggest(
    tagger: Tagger, said: sp.csr_array | None, tags: Sequence[str], n: int = 10
) -> list[Suggestion]:
    """The n most probable other tags of a track that has these."""
    # What people said (`said_together`) counts first, and then the model: `with_counts`.
    known = [tagger.place(tag) for tag in tags]
    if not known:
        raise DataError("Give at least one tag.")
    given, usual = _given(tagger, known, 1, said), _given(tagger, [], 1, said)
    table = suggestions(pl.Series(tagger.tags), given, usual, known, n)
    return [Suggestion(*row) for row in table.iter_rows()]


def related(tagger: Tagger, said: sp.csr_array | None, tag: str, n: int = 10) -> list[Relation]:
    """The n tags that a tag makes most likely, then the n that it makes least likely."""
    place = tagger.place(tag)
    present, absent = _given(tagger, [place], 1, said), _given(tagger, [place], 0, said)
    table = relations(pl.Series(tagger.tags), present, absent, place, n)
    return [Relation(*row) for row in table.iter_rows()]


def _given(tagger: Tagger, places: list[int], value: float, said: sp.csr_array | None) -> Doubles:
    y = np.full(len(tagger.tags), np.nan, np.float32)
    y[places] = value
    model = tagger.without_sound(y).astype(np.float64)
    return model if said is None else with_counts(model, said, places, present=value > 0)


@dataclass(frozen=True)
class MappedTag:
    """A tag on the map."""

    tag: str
    shown: str
    kind: str
    x: float  # from 0 to 1, as y
    y: float
    size: float  # from 0 to 1: by how many tracks have it


@dataclass(frozen=True)
class TagMap:
    """How the tags of a model relate."""

    tags: list[MappedTag]
    links: list[dict[Literal["a", "b", "weight"], Any]]
    """Two tags each, and what the log-odds of one gain from the other: below 0, they exclude it."""


def tag_map(snapshot: Snapshot) -> TagMap:
    """The map of the tags that the model in use has learnt; the same for the same model."""
    tagger = snapshot.needed_tagger()
    names = [tag for tag in snapshot.places if tag in tagger.tags]
    if not names:
        return TagMap([], [])
    places = [tagger.tags.index(tag) for tag in names]
    total, count = np.zeros((2, len(tagger.tags), len(tagger.tags)))
    for here, U, c in tagger.weights():
        total[np.ix_(here, here)] += pairwise_pull(U, c)
        count[np.ix_(here, here)] += 1
    J = (total / np.maximum(count, 1))[np.ix_(places, places)]  # 0 between tags of two models
    shares = dict(zip(snapshot.places, snapshot.reached.mean(axis=1), strict=True))
    most = max(max(shares.values(), default=0.0), 1e-9)
    tags = [
        MappedTag(tag, snapshot.shown(tag), snapshot.kind(tag), x, y, np.sqrt(shares[tag] / most))
        for tag, (x, y) in zip(names, _positions(J).tolist(), strict=True)
    ]
    return TagMap(tags, _links(names, J))


def pairwise_pull(U: Doubles, c: Doubles) -> Doubles:
    """J of weights U (n_hidden, n_tags) and biases c (n_hidden,), (n_tags, n_tags)."""
    alone = np.logaddexp(0, c[:, None] + U)
    J = np.empty((U.shape[1],) * 2)
    for j in range(U.shape[1]):  # all at once would take a gigabyte for 300 tags
        both = np.logaddexp(0, c[:, None] + U + U[:, [j]])
        J[j] = (both - alone - alone[:, [j]] + np.logaddexp(0, c)[:, None]).sum(axis=0)
    np.fill_diagonal(J, 0)
    return J


def _positions(J: Doubles) -> Doubles:
    """(n, 2) from 0 to 1."""
    n = len(J)
    profile = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-9)
    if n < MIN_TAGS_SPREAD:
        angles = 2 * np.pi * np.arange(n) / n
        at = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        from sklearn.manifold import TSNE

        perplexity = min(15.0, (n - 1) / 3)
        at = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(profile)
    low, high = at.min(axis=0), at.max(axis=0)
    return (at - low) / np.maximum(high - low, 1e-9)


def _links(names: list[str], J: Doubles) -> list[dict[Literal["a", "b", "weight"], Any]]:
    nearest = np.argsort(-J, axis=1, kind="stable")[:, :LINKS_EACH].tolist()
    links = [(i, j) for i, best in enumerate(nearest) for j in best if J[i, j] > 0]
    rows, columns = np.triu_indices(len(names), 1)
    order = np.argsort(J[rows, columns], kind="stable")[:MAX_LINKS_AGAINST]
    against = zip(rows[order].tolist(), columns[order].tolist(), strict=True)
    links += [(i, j) for i, j in against if J[i, j] < 0]
    chosen = {(min(link), max(link)): float(J[link]) for link in links}
    pairs = sorted(chosen.items(), key=lambda pair: -abs(pair[1]))
    return [{"a": names[i], "b": names[j], "weight": weight} for (i, j), weight in pairs]


@dataclass(frozen=True)
class WhyPart:
    """What a known tag adds."""

    tag: str
    said: bool  # whether it holds
    log_odds: float


@dataclass(frozen=True)
class Why:
    """Where a probability comes from."""

    tag: str
    probability: float  # given the sound and everything known about other tags
    usual: float  # the mean of its probability over the library
    sound: dict[Literal["log_odds", "probability"], float]
    """What the sound adds, and the probability without anything else."""
    parts: list[WhyPart]  # what known tags add, the largest first


def why(
    snapshot: Snapshot,
    track_id: int,
    tag: str,
    yes: Collection[str],
    no: Collection[str],
    person: str,
) -> Why:
    """Why a track has or lacks a tag, given all of a person's answers."""
    # Opinions about the tag itself do not count: the question is what the rest says.
    tagger, x, observed = observed_track(snapshot, track_id, yes, no, person)
    place = tagger.place(tag)
    observed[place] = np.nan
    known = np.flatnonzero(~np.isnan(observed)).tolist()
    if len(known) <= MAX_EXACT:
        orders = [list(order) for order in permutations(known)]
    else:
        rng = np.random.default_rng(0)
        orders = [rng.permutation(known).tolist() for _ in range(N_ORDERS)]
        orders += [order[::-1] for order in orders]
    sets = list({frozenset(order[:k]) for order in orders for k in range(len(order) + 1)})
    rows = np.full((len(sets), len(observed)), np.nan, np.float32)
    for row, some in zip(rows, sets, strict=True):
        row[list(some)] = observed[list(some)]
    P = tagger.probabilities(np.repeat(x, len(sets), axis=0), rows)
    value = dict(zip(sets, log_odds(P[:, place]).astype(np.float64), strict=True))
    parts = []
    for j in known:
        before = [frozenset(order[: order.index(j)]) for order in orders]
        share = float(np.mean([value[some | {j}] - value[some] for some in before]))
        parts.append(WhyPart(tagger.tags[j], bool(observed[j]), share))
    alone, usual = value[frozenset()], np.clip(snapshot.predictions.mean(place), 1e-4, 1 - 1e-4)
    total = alone + sum(part.log_odds for part in parts)
    by_sound = float(alone - np.log(usual / (1 - usual)))
    return Why(
        tagger.tags[place],
        float(sigmoid(total)),
        float(usual),
        {"log_odds": by_sound, "probability": float(sigmoid(alone))},
        sorted(parts, key=lambda part: -abs(part.log_odds)),
    )
