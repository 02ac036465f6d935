"""The tags of a library: how well each is known, and which go together.

How much two tags i and j attract each other, if nothing else is known, is what their log-odds gain
when both hold: with the hidden units summed out,

    J_ij = Σ_h f(U_hi + U_hj) - f(U_hi) - f(U_hj) + f(0)   with f(u) = log (1 + e^{c_h + u})

On the map, tags that attract the same other tags are near each other: t-SNE of the rows of J.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium import logistic
from harmonium.arrays import Doubles, Floats, Ids
from harmonium.errors import DataError
from harmonium.estimators.related_tags import relations, suggestions, with_counts
from harmonium.library.library import Library
from harmonium.library.model.builtin import builtin_model, use_builtin
from harmonium.library.model.evidence import Quality
from harmonium.library.model.odds import log_odds
from harmonium.library.model.tag_table import Tag
from harmonium.library.model.tagger import Tagger
from harmonium.library.snapshot import Hit, Snapshot
from harmonium.library.store.models import Owner
from harmonium.library.verdicts import with_implied_genres

MAX_TRACKS = 8  # tracks of each list of a tag
MAX_RELATED = 8  # tags that a tag makes likely, and as many that it makes unlikely
MIN_PEOPLE = 3  # with fewer, one person's files may have the genres while the person says the rest
LINKS_EACH = 2  # links on the map from a tag to those that it attracts most
MAX_LINKS_AGAINST = 30  # links on the map between tags that push each other away
MIN_TAGS_SPREAD = 8  # tags needed for t-SNE; fewer go on a circle


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
    predicted: int  # other tracks that have it, since the model gives it to them
    threshold: float | None  # from which probability
    precision: float | None  # of held-out tracks that reach the threshold, the share that have it
    recall: float | None  # of held-out tracks that have it, the share that reach the threshold
    hidden: bool
    quality: str | None  # good, fair or poor, by precision and recall


def list_tags(snapshot: Snapshot) -> list[TagEntry]:
    """All tags that people gave or the model has learnt, the most used first."""
    holding = snapshot.holding
    listed = {*holding.people, *holding.predicted, *snapshot.tags.facts.hidden}
    entries = [_entry(snapshot, snapshot.tags[name]) for name in listed]
    return sorted(entries, key=lambda entry: (-entry.people, -entry.predicted, entry.tag))


def _entry(snapshot: Snapshot, tag: Tag) -> TagEntry:
    people = snapshot.holding.people.get(tag.name, 0)
    quality = tag.quality or Quality()
    return TagEntry(
        tag=tag.name,
        shown=tag.spelling,
        kind=tag.kind,
        owner=tag.owner,
        auc=quality.auc,
        examples=quality.examples,
        people=people,
        predicted=snapshot.holding.all.get(tag.name, people) - people,
        threshold=tag.threshold if tag.predicted else None,
        precision=quality.precision,
        recall=quality.recall,
        hidden=tag.hidden,
        quality=quality.word,
    )


@dataclass(frozen=True)
class Relation:
    """A tag that another makes more or less likely."""

    tag: str
    log_odds: float  # by how much its log-odds are higher with the other tag than without
    probability_with: float
    probability_without: float


CurvePoint = dict[Literal["threshold", "precision", "low", "recall"], float]


@dataclass(frozen=True)
class TagDetail(TagEntry):
    """A tag with everything known about it."""

    curve: list[CurvePoint]
    """Precision, its lower bound, and recall at each threshold, among them the tag's own."""
    related: list[Relation]
    surest: list[Hit]  # the most probable tracks for which people leave it open
    doubtful: list[Hit]  # the tracks nearest to its threshold
    surprising: list[Hit]  # tracks where people say yes and the model no, or the other way round


def tag_detail(snapshot: Snapshot, tag: str) -> TagDetail:
    """Everything known about a tag, in any spelling; an `UnknownTagError` if it does not exist."""
    row = snapshot.tags.find(tag)
    entry = _entry(snapshot, row)
    tagger = snapshot.tagger
    if not row.predicted or tagger is None:
        return TagDetail(**vars(entry), curve=[], related=[], surest=[], doubtful=[], surprising=[])
    ids, P = snapshot.columns([row.place])
    p = _held_out(tagger, row.place, ids, P[:, 0])
    present = np.isin(ids, snapshot.ids, assume_unique=True)
    agreed = snapshot.verdicts.agreement(row.name)
    yes = np.isin(ids, agreed.yes)
    no = np.isin(ids, agreed.no)
    left_open = present & ~yes & ~no
    threshold = np.array([row.threshold], np.float32)
    doubt = np.abs(log_odds(p) - log_odds(threshold))
    surprise = np.zeros_like(p)
    surprise[present & yes] = 1 - p[present & yes]
    surprise[present & no] = p[present & no]
    return TagDetail(
        **vars(entry),
        curve=_curve(row),
        related=related(tagger, None, row.name, MAX_RELATED) if row.name in tagger.tags else [],
        surest=_tracks(snapshot, row, ids, p, np.where(left_open, p, -np.inf)),
        doubtful=_tracks(snapshot, row, ids, p, np.where(left_open, -doubt, -np.inf)),
        surprising=_tracks(snapshot, row, ids, p, np.where(surprise > 0.5, surprise, -np.inf)),
    )


def _curve(tag: Tag) -> list[CurvePoint]:
    """The tag's precision and recall at each threshold, and at its own as `Quality` says."""
    curve = tag.curve
    if curve is None:
        return []
    columns = np.stack([curve.thresholds, curve.precision, curve.bound, curve.recall], axis=1)
    ranks: list[CurvePoint] = [
        {"threshold": threshold, "precision": precision, "low": low, "recall": recall}
        for threshold, precision, low, recall in columns.tolist()
    ]
    points = [point for point in ranks if point["threshold"] != tag.threshold]
    rank = None if tag.threshold is None else curve.at(tag.threshold)
    if tag.threshold is not None and rank is not None:
        own = ranks[rank].copy()
        own["threshold"] = tag.threshold
        quality = tag.quality or Quality()
        if quality.precision is not None and quality.recall is not None:
            own["precision"] = quality.precision
            own["recall"] = quality.recall
        points.append(own)
    return sorted(points, key=lambda point: -point["threshold"])


def _held_out(tagger: Tagger, place: int, ids: Ids, p: Floats) -> Floats:
    """Probabilities; held-out ones for tracks that the model was trained on."""
    if tagger.held_out is None:
        return p
    known, held_out = tagger.held_out
    if place >= held_out.shape[1]:
        return p
    _, rows, held_out_rows = np.intersect1d(ids, known, assume_unique=True, return_indices=True)
    p = p.copy()
    p[rows] = held_out[held_out_rows, place]
    return p


def _tracks(
    snapshot: Snapshot, tag: Tag, ids: Ids, p: Floats, score: Floats | Doubles
) -> list[Hit]:
    """The tracks with the highest scores (n,), which have the probabilities ``p`` (n,)."""
    rows = np.argsort(-score, kind="stable")[:MAX_TRACKS]
    rows = rows[np.isfinite(score[rows])]
    tracks = snapshot.library.tracks.many(ids[rows])
    tags = snapshot.shown_tags(ids[rows])
    return [
        Hit(
            track=track,
            probability=float(p[row]),
            similarity=None,
            holds=tag.reached(float(p[row])),
            source="model",
            shown_tags=shown,
        )
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
        tagger.aliases.update(library.tags.renamed())
    return tagger, library and said_together(library, tagger.tags)


def said_together(library: Library, tags: Sequence[str]) -> sp.csr_array:
    """Which of these tags each person gave to each track of theirs, (n_pairs, n_tags)."""
    # Fewer than `MIN_PEOPLE` count as one.
    opinions = with_implied_genres(library.opinions.triples(), library.genres())
    if opinions["person"].n_unique() < MIN_PEOPLE:
        opinions = opinions.with_columns(person=pl.lit("all"))
    pairs = opinions.select("person", "track_id").unique(maintain_order=True).with_row_index("row")
    schema = {"tag": pl.String, "column": pl.Int32}
    places = pl.DataFrame({"tag": tags, "column": range(len(tags))}, schema_overrides=schema)
    said = opinions.filter(pl.col("value") > 0)
    given = said.join(pairs, on=("person", "track_id")).join(places, on="tag")
    rows = given["row"].to_numpy()
    columns = given["column"].to_numpy()
    ones = np.ones(len(given), np.float32)
    matrix = sp.csr_array((ones, (rows, columns)), shape=(len(pairs), len(tags)))
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
    given = _given(tagger, known, 1, said)
    usual = _given(tagger, [], 1, said)
    table = suggestions(pl.Series(tagger.tags), given, usual, known, n)
    return [Suggestion(**row) for row in table.iter_rows(named=True)]


def related(tagger: Tagger, said: sp.csr_array | None, tag: str, n: int = 10) -> list[Relation]:
    """The n tags that a tag makes most likely, then the n that it makes least likely."""
    place = tagger.place(tag)
    present = _given(tagger, [place], 1, said)
    absent = _given(tagger, [place], 0, said)
    table = relations(pl.Series(tagger.tags), present, absent, place, n)
    return [
        Relation(
            tag=row["tag"],
            log_odds=row["log_odds"],
            probability_with=row["with"],
            probability_without=row["without"],
        )
        for row in table.iter_rows(named=True)
    ]


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
    mapped = [tag for tag in snapshot.tags.predicted if tag.name in tagger.tags]
    if not mapped:
        return TagMap(tags=[], links=[])
    names = [tag.name for tag in mapped]
    places = [tagger.tags.index(name) for name in names]
    total = np.zeros((len(tagger.tags), len(tagger.tags)))
    n_models = np.zeros_like(total)
    for its_places, U, c in tagger.weights():
        block = np.ix_(its_places, its_places)
        total[block] += pairwise_pull(U, c)
        n_models[block] += 1
    mean = total / np.maximum(n_models, 1)  # 0 between tags of two models
    J = mean[np.ix_(places, places)]
    counts = snapshot.holding.all
    most = max(1, *(counts[name] for name in names))
    tags = []
    for tag, (x, y) in zip(mapped, _positions(J).tolist(), strict=True):
        mapped_tag = MappedTag(
            tag=tag.name,
            shown=tag.spelling,
            kind=tag.kind,
            x=x,
            y=y,
            size=float(np.sqrt(counts[tag.name] / most)),
        )
        tags.append(mapped_tag)
    return TagMap(tags=tags, links=_links(names, J))


def pairwise_pull(U: Doubles, c: Doubles) -> Doubles:
    """J of weights U (n_hidden, n_tags) and biases c (n_hidden,), (n_tags, n_tags)."""
    alone = logistic.softplus(c[:, None] + U)
    J = np.empty((U.shape[1],) * 2)
    for j in range(U.shape[1]):  # all at once would take a gigabyte for 300 tags
        both = logistic.softplus(c[:, None] + U + U[:, [j]])
        J[j] = (both - alone - alone[:, [j]] + logistic.softplus(c)[:, None]).sum(axis=0)
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
    low = at.min(axis=0)
    high = at.max(axis=0)
    return (at - low) / np.maximum(high - low, 1e-9)


def _links(names: list[str], J: Doubles) -> list[dict[Literal["a", "b", "weight"], Any]]:
    """Each tag's links to those that it attracts most, and the pairs that exclude each other."""
    weights: dict[tuple[int, int], float] = {}  # (i, j) with i < j
    most_attracted = np.argsort(-J, axis=1, kind="stable")[:, :LINKS_EACH]
    for i, others in enumerate(most_attracted.tolist()):
        for j in others:
            if J[i, j] > 0:
                weights[min(i, j), max(i, j)] = float(J[i, j])
    rows, columns = np.triu_indices(len(names), 1)
    most_against = np.argsort(J[rows, columns], kind="stable")[:MAX_LINKS_AGAINST]
    for i, j in zip(rows[most_against].tolist(), columns[most_against].tolist(), strict=True):
        if J[i, j] < 0:
            weights[i, j] = float(J[i, j])
    strongest = sorted(weights, key=lambda pair: -abs(weights[pair]))
    return [{"a": names[i], "b": names[j], "weight": weights[i, j]} for i, j in strongest]
