"""What people say about tracks, what follows from it, and what the model learns from it at once.

What a person says about a track is saved as a change. `complete_track` says what the model makes of
it for the track's other tags. `learn_answers` takes the current answers that the model in use was
not trained with and works out, within about a second:

1. What each answered tag gains on all tracks. Its log-odds f = m + b + wᵀv are the model's, m, plus
   a linear function of how a track sounds, v (`store.tracks`), with b ~ N(0, 1) and w ~ N(0, I):
   the most probable b and w given the answers. They are scaled down so that the expected number of
   tracks with the tag changes by no more than the answers say (`max_change`).
2. The same for a word that the model was not trained with, once five tracks have it. There is no m
   then, and tracks that nobody has said anything about count as tracks without the word; together
   they weigh three times the tracks that have it.
3. What follows, by the model, from what people said about a track for its other tags.

Answers to questions are a sample. What people say unasked is not: they say it because it is true,
or because the model is wrong. So such answers get a separate bias, which is not used, and do not
change b.

All of it follows from the answers, so undoing one and learning again restores the earlier state.

A person is asked about tracks that the model is unsure of. The doubt about a track's tag is how
near its log-odds are to those of the tag's threshold, where an answer decides. Each chosen question
makes others about its tag and artist wait, so that questions vary; own tags come before built-in
ones.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask, Places
from harmonium.data.tag_names import NO_TAG, OWN, kind_of, normalise_tag
from harmonium.errors import DataError, LibraryError, counted
from harmonium.estimators.model_files import sigmoid
from harmonium.library.learning.examples import MIN_EXAMPLES
from harmonium.library.library import Library, Progress
from harmonium.library.search import first, unknown_tag
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.database import batches, to_microseconds
from harmonium.library.store.models import Owner, Refinement, Steps, StoredModel, packed, unpacked
from harmonium.library.store.opinions import REVIEW, VerdictTable, agreed_tags, is_asked
from harmonium.library.store.schema import opinion, person, tag
from harmonium.library.store.tracks import SoundVectors, Track, named_tracks, update_sound_vectors
from harmonium.library.tagger import (
    BIAS_DEVIATION,
    SOUND_DEVIATION,
    Gains,
    Tagger,
    log_odds,
    no_model,
    refined_columns,
)

ME = "me"  # the default person
MAX_MOVED = 8  # tags to name that an answer moved most
MIN_MOVE = 0.02  # the smallest change of a probability that counts as a move
MAX_ANSWERS = 200  # the latest answers of a tag that count
MAX_JUDGED = 50  # the latest answers that are guessed from those before them
N_CANDIDATES = 20  # the most doubtful questions among which each one is chosen
OWN_FIRST = 2.0  # the lead of questions about tags learnt here over built-in ones
PENALTY = 0.25  # what further questions about the same tag or artist lose, in log-odds
N_UNSAID = 100  # tracks without any opinion that count as examples without a new word
UNSAID_WEIGHT = 3.0  # of all these together, in tracks that have the word; chosen on 4Q
NEW_THRESHOLD = 0.5
MAX_OTHERS = 2000  # sample that estimates the expected number of tracks with a tag
HALF_WEIGHT = 5.0  # an answer counts half if the model learnt the tag from this many tracks with it
CHANCE = 1.5  # √n times the mean residual of n answers that chance explains: three standard errors


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
    yes, no = (Counter(tag for _, tag, value in opinions if value == v) for v in (1, -1))
    own = {tag: value > 0 for who, tag, value in opinions if who == person}
    p = snapshot.predictions.rows(np.array([track_id]))[0]
    found = []
    for name in dict.fromkeys([*yes, *no, *snapshot.places]):
        people: dict[Literal["yes", "no"], int] = {"yes": yes[name], "no": no[name]}
        probability, predicted, precision = None, False, None
        place, threshold = snapshot.places.get(name, len(p)), snapshot.threshold(name)
        if place < len(p) and not np.isnan(p[place]) and snapshot.tagger and threshold is not None:
            probability, predicted = float(p[place]), bool(p[place] >= np.float32(threshold))
            precision = snapshot.tagger.precision(place, probability)
        about = (name, snapshot.shown(name), snapshot.kind(name), snapshot.owner(name))
        judged = (threshold, predicted, precision)
        found.append(TagOfTrack(*about, probability, own.get(name), people, *judged))
    holds = {tag for tag, there in snapshot.verdicts.of_track(track_id).items() if there}
    return sorted(found, key=lambda one: (one.tag not in holds, -(one.probability or 0), one.tag))


def tags_by_sound(
    tagger: Tagger, p: Floats, spellings: Mapping[str, str], kinds: Mapping[str, str]
) -> list[TagOfTrack]:
    """The tags of a sound that is not in the library, the most telling first."""
    telling, found = tagger.telling(p), []
    learnt = np.flatnonzero(tagger.learnt).tolist()
    for j in sorted(learnt, key=lambda j: (-telling[j], tagger.tags[j])):
        name, probability = tagger.tags[j], float(p[j])
        about = (name, spellings.get(name, name), kinds.get(name, OWN))
        owner: Owner = "own" if tagger.is_own[j] else "built-in"
        predicted, precision = bool(p[j] >= tagger.thresholds[j]), tagger.precision(j, probability)
        judged = (float(tagger.thresholds[j]), predicted, precision)
        found.append(TagOfTrack(*about, owner, probability, None, {"yes": 0, "no": 0}, *judged))
    return found


@dataclass(frozen=True)
class CompletedTag:
    """A tag, given what is known about others."""

    tag: str
    probability: float
    before: float  # as stored: from the sound, and from what was saved about the track before


@dataclass(frozen=True)
class Completion:
    """What follows from an answer."""

    tags: list[CompletedTag]
    moved: list[str]  # the tags that it moved most, in that order


def complete_track(
    snapshot: Snapshot, track_id: int, yes: Collection[str], no: Collection[str], person: str
) -> Completion:
    """What the model says about a track, given all of a person's answers and what others say."""
    # What the person said before does not count. Tags unknown to the model change nothing.
    tagger, x, observed = observed_track(snapshot, track_id, yes, no, person)
    before = snapshot.probabilities(np.array([track_id]))[0]
    if len(before) != len(tagger.tags) or np.isnan(before).any():
        before = tagger.probabilities(x)[0]
    after = tagger.probabilities(x, observed[None])[0]
    places = list(snapshot.places.values())
    change = np.where(np.isnan(observed), np.abs(after - before), 0)
    order = sorted(places, key=lambda j: -change[j])[:MAX_MOVED]
    return Completion(
        [CompletedTag(tagger.tags[j], float(after[j]), float(before[j])) for j in places],
        [tagger.tags[j] for j in order if change[j] >= MIN_MOVE],
    )


def observed_track(
    snapshot: Snapshot, track_id: int, yes: Collection[str], no: Collection[str], person: str
) -> tuple[Tagger, Floats, Floats]:
    """The model in use, a track's features, (1, n_features), and its known tags, (n_tags,)."""
    # Tags are 1 or 0 by a person's answer or by what others agree on; else NaN.
    tagger = snapshot.needed_tagger()
    opinions = snapshot.library.opinions.of_track(track_id)
    others = [(who, track_id, tag, value) for who, tag, value in opinions if who != person]
    schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int64}
    said = agreed_tags(pl.DataFrame(others, schema, orient="row")).get(track_id, {})
    fits, misfits = ({snapshot.name(tag) for tag in tags} for tags in (yes, no))
    if both := fits & misfits:
        raise DataError(f"The tag {min(both)!r} cannot be both present and absent.")
    said |= dict.fromkeys(fits, True) | dict.fromkeys(misfits, False)
    ids, x = snapshot.library.tracks.features([track_id], extractor=tagger.extractor)
    if not len(ids):
        snapshot.library.tracks.get(track_id)
        raise LibraryError(
            f"Track #{track_id} has no features for this model. Index its folder again."
        )
    return tagger, x, np.array([said.get(tag, np.nan) for tag in tagger.tags], np.float32)


@dataclass(frozen=True)
class Said:
    """What a person said about tracks."""

    change: int | None  # None if nothing is new
    tracks: list[Track]
    moved: list[CompletedTag]  # the other tags of a single track, most moved first


def say(
    library: Library,
    tracks: list[Track],
    *answers: Sequence[str],
    person: str = ME,
    change: int | None = None,
) -> Said:
    """Save what a person says about tracks, like `keep_said`, and work out what follows."""
    before = library.snapshot()
    number = keep_said(library, [one.id for one in tracks], *answers, person=person, change=change)
    moved: list[CompletedTag] = []
    if number is not None and len(tracks) == 1:
        (track,) = tracks
        opinions = library.opinions.of_track(track.id)
        own = {tag: value > 0 for who, tag, value in opinions if who == person}
        fits, misfits = ([tag for tag, v in own.items() if v == holds] for holds in (True, False))
        with suppress(LibraryError):  # no model, or no features: nothing follows
            found = complete_track(before, track.id, fits, misfits, person)
            tags = {one.tag: one for one in found.tags}
            moved = [tags[name] for name in found.moved]
    return Said(number, tracks, moved)


def keep_said(
    library: Library,
    ids: ArrayLike,
    yes: Sequence[str] = (),
    no: Sequence[str] = (),
    unsay: Sequence[str] = (),
    *,
    person: str = ME,
    change: int | None = None,
) -> int | None:
    """Save what a person says about tracks; the number of the change, None if nothing is new.

    It replaces what they said before about the same tags, and anything in the tracks' files that
    contradicts it.
    """
    tracks, kinds = library.tracks.many(ids), library.kinds()
    for word in yes:
        if kind_of(normalise_tag(word), kinds) == NO_TAG:
            raise DataError(f"{word!r} is not a tag. `harmonium kind {word!r} own` makes it one.")
    words = ", ".join([*yes, *(f"-{tag}" for tag in no)])
    words = words or f"{counted(len(unsay), 'tag')} withdrawn"
    with library.begin():
        if change is not None:
            library.changes.check_open(change)
        number = change or library.changes.begin("say", f"{named_tracks(tracks)}: {words}")
        n_changed = library.opinions.say(person, ids, yes, no, unsay, change=number)
        if change is None and not n_changed:
            library.changes.drop(number)
            return None
    return number


def read_said(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Tags that hold and tags that do not, from words such as "rock", "-live" or "rock, -live"."""
    text = ",".join(words).replace(";", ",")
    parts = [part.strip() for part in text.split(",") if part.strip(" -")]
    absent = [part.removeprefix("-").strip() for part in parts if part.startswith("-")]
    present = [part for part in parts if not part.startswith("-")]
    if not parts and text.strip(" ,"):
        raise DataError("A minus alone is not a tag. Put it before a tag: -live")
    return present, absent


@dataclass(frozen=True)
class QuickReport:
    """What was learnt."""

    tags: list[Refinement]  # what tags have learnt from answers, whether just now or before
    refreshed: list[str]  # the tags whose probabilities have changed
    n_answers: int  # the answers that they have learnt from
    n_tracks: int  # tracks whose other tags follow from what people said about them
    seconds: float


def learn_answers(library: Library, progress: Progress | None = None) -> QuickReport:
    """Let the model in use learn from the answers since it was trained, within about a second.

    Call it after answers have begun or ended. Threads and processes may call it at any time: what
    is stored follows from the answers in force at the end.
    """
    began = time.perf_counter()
    update_sound_vectors(library, progress)
    for _ in range(3):  # answers may arrive during this
        before = library.version().change
        with library.reading():
            model = library.models.current()
            if model is None:
                return QuickReport([], [], 0, 0, time.perf_counter() - began)
            sounds, answers = SoundVectors.of(library), answers_since(library, model)
            known = {one.digest: one for one in model.refinements}
            found = [
                known.get(digest) or examples.learnt(name, place, digest)
                for name, place, examples in _lessons(library, model, sounds, answers)
                for digest in [examples.digest(f"{name} {place} {len(sounds.ids)}")]
            ]
            changed = [one for one in found if one.digest not in known]
            columns = refined_columns(library, model, changed, sounds)
            tracks = np.unique([track for one in answers.values() for track in one["track"]])
            stored = library.refinements.completed(model.id)
            digests, rows = _completed(library, model, tracks.astype(np.int64), stored)
            P = _with_gains(rows, np.array(list(digests)), found, sounds, model.n_trained)
        is_new = known.keys() != {one.digest for one in found}
        if is_new or digests != {track: digest for track, (digest, _) in stored.items()}:
            with library.begin():
                library.refinements.put(model.id, found, columns)
                library.refinements.put_completed(model.id, digests, rows, P)
        if library.version().change == before:
            break
    n_answers, refreshed = sum(x.n_yes + x.n_no for x in found), [one.name for one in changed]
    return QuickReport(found, refreshed, n_answers, len(digests), time.perf_counter() - began)


def answers_since(library: Library, model: StoredModel) -> dict[str, pl.DataFrame]:
    """Tag → people's answers that a model was not trained with, in order of time.

    For tags learnt from the library, only answers given since; for others, all of them: the
    built-in model has learnt from none, nor have words that were too rare to be learnt.

    The columns: track, y (1 or 0, as people agree), asked (whether it answers a question), by (the
    change), id (larger is later).
    """
    query = (
        sa.select(opinion.c.id, opinion.c.track_id, tag.c.name, opinion.c.at, opinion.c.begun_by)
        .join_from(opinion, tag)
        .join(person)
        .where(opinion.c.ended_by.is_(None), person.c.kind == "person")
        .order_by(opinion.c.id)
    )
    rows = [tuple(row) for row in library.fetch(query)]
    schema = {"id": pl.Int64, "track": pl.Int64, "tag": pl.String, "at": pl.Int64, "by": pl.Int64}
    said = pl.DataFrame(rows, schema=schema, orient="row")
    said = said.with_columns(
        tag=pl.col("tag").map_elements(library.genres().canonical, pl.String),
        asked=is_asked(library),
    )
    trained = model.as_trained()
    own = [name for j, name in enumerate(trained.vocabulary[: trained.n_own]) if trained.learnt[j]]
    old = pl.col("tag").is_in(own) & (pl.col("at") <= to_microseconds(model.made_at))
    said = said.filter(~old, ~pl.col("tag").is_in(list(library.hidden_tags())))
    said = said.unique(["tag", "track"], keep="last", maintain_order=True)
    names = said["tag"].unique(maintain_order=True).to_list()
    found, table = {}, VerdictTable.read(library, names)
    for name in names:
        yes, no = table.agreement(name)
        one = said.filter(pl.col("tag") == name)
        holds, fails = (np.isin(one["track"].to_numpy(), tracks) for tracks in (yes, no))
        one = one.with_columns(y=pl.Series(holds, dtype=pl.Float64)).filter(holds | fails)
        if len(one):
            found[name] = one.tail(MAX_ANSWERS)
    return found


class TagExamples(NamedTuple):
    """Tracks to learn a tag from; answers first, then tracks without any opinion."""

    ids: Ids
    y: Doubles
    asked: Mask
    weight: Doubles
    offset: Doubles  # (n,) the model's log-odds
    vectors: Doubles  # (n, N_AXES)
    answers: pl.DataFrame
    has_model: bool  # whether the model was trained with the tag
    n_learnt: int = 0  # tracks with the tag in this library that the model learnt from
    n_others: int = 0  # tracks without an answer
    others: tuple[Doubles, Doubles] = (np.empty(0), np.empty((0, 0)))  # offset, vectors of some

    def digest(self, more: str) -> str:
        """The digest of what is learnt from."""
        parts = (self.ids, self.y, self.asked, self.weight, self.offset.round(6))
        data = b"".join(part.tobytes() for part in parts)
        return _digest(data + f"{more} {SOUND_DEVIATION} {BIAS_DEVIATION} {CHANCE}".encode())

    def fitted(self, n: int | None = None) -> tuple[Doubles, float]:
        """What the first n examples, or all, teach: a weight for each, and what all tracks gain."""
        y, asked, offset, V = self.y[:n], self.asked[:n], self.offset[:n], self.vectors[:n]
        weights = fit_answers(kernel(V, asked), y, offset, self.weight[:n])
        bias = BIAS_DEVIATION**2 * float(weights[asked].sum())
        if self.has_model:
            before, vectors = self.others
            gained = SOUND_DEVIATION**2 * vectors @ (V.T @ weights) + bias
            most = max_change(y - sigmoid(offset), asked, self.n_others, self.n_learnt)
            scale = _scale(before, gained, most / max(1, self.n_others))
            weights, bias = scale * weights, scale * bias
        return weights, bias

    def learnt(self, name: str, place: int, digest: str) -> Refinement:
        """What the tag gains."""
        weights, bias = self.fitted()
        threshold, n_yes = None if self.has_model else NEW_THRESHOLD, int(self.answers["y"].sum())
        said = (n_yes, len(self.answers) - n_yes)
        about = (place, name, threshold, self.has_model)
        return Refinement(*about, self.ids, weights, bias, *said, digest)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _lessons(
    library: Library, model: StoredModel, sounds: SoundVectors, answers: Mapping[str, pl.DataFrame]
) -> Iterator[tuple[str, int, TagExamples]]:
    """(tag, place, examples) of each tag that can learn; new words come last."""
    trained, n_new = model.as_trained(), 0
    places = {name: j for j, name in enumerate(trained.vocabulary)}
    learnt_from = {one["tag"]: one.get("examples", 0) for one in model.report.get("tags", [])}
    for name, said in answers.items():
        place = places.get(name)
        has_model = place is not None and bool(trained.learnt[place])
        if not has_model and said["y"].sum() < MIN_EXAMPLES:
            continue
        said = said.filter(np.isin(said["track"].to_numpy(), sounds.ids))
        if has_model:
            assert place is not None
            tagged, P = library.predictions.columns(model.id, [place], refined=False)
            said = said.filter(np.isin(said["track"].to_numpy(), tagged))
        ids, y = said["track"].to_numpy(), said["y"].to_numpy()
        asked, weight = said["asked"].to_numpy(), np.ones(len(ids))
        if has_model:
            offset = log_odds(P[np.searchsorted(tagged, ids), 0]).astype(np.float64)
        else:
            others = np.setdiff1d(sounds.ids, ids)
            unsaid = np.sort(np.random.default_rng(0).permutation(others)[:N_UNSAID])
            share = UNSAID_WEIGHT * y.sum() / max(1, len(unsaid))
            ids, y = np.concatenate([ids, unsaid]), np.append(y, np.zeros(len(unsaid)))
            weight = np.append(weight, np.full(len(unsaid), share))
            asked, offset = np.ones(len(ids), bool), np.zeros(len(ids))
        if not len(said) or (y.all() and not has_model):
            continue
        if place is None:
            place, n_new = model.n_trained + n_new, n_new + 1
        examples = TagExamples(ids, y, asked, weight, offset, sounds.at(ids), said, has_model)
        if has_model:
            left = np.setdiff1d(np.intersect1d(tagged, sounds.ids), ids)
            some = np.sort(np.random.default_rng(0).permutation(left)[:MAX_OTHERS])
            before = log_odds(P[np.searchsorted(tagged, some), 0]).astype(np.float64)
            n_learnt = learnt_from.get(name, 0) if trained.is_own[place] else 0
            examples = examples._replace(
                n_learnt=n_learnt, n_others=len(left), others=(before, sounds.at(some))
            )
        yield name, place, examples


def kernel(vectors: Doubles, asked: Mask) -> Doubles:
    """The covariance of what tracks gain, (n, n), before any answer."""
    same = asked[:, None] == asked[None, :]
    return SOUND_DEVIATION**2 * vectors @ vectors.T + BIAS_DEVIATION**2 * same


def fit_answers(K: Doubles, y: Doubles, offset: Doubles, weight: Doubles) -> Doubles:
    """The a that minimises Σ weight [log(1 + e^f) - y f] + aᵀKa / 2, f = offset + Ka, (n,).

    By Newton's method in the span of the examples (Rasmussen and Williams 2006, algorithm 3.1); a
    step is halved while it does not lower the objective.
    """
    a = np.zeros(len(y))

    def objective(a: Doubles) -> float:
        f = offset + K @ a
        return float((weight * (np.logaddexp(0, f) - y * f)).sum() + a @ K @ a / 2)

    value = objective(a)
    for _ in range(50):
        f = K @ a
        p = sigmoid(offset + f)
        root = np.sqrt(weight * p * (1 - p))
        b = root**2 * f + weight * (y - p)
        B = np.eye(len(y)) + root[:, None] * K * root[None, :]
        step = b - root * np.linalg.solve(B, root * (K @ b)) - a
        size = 1.0
        while (new := objective(a + size * step)) > value + 1e-12 * abs(value) and size > 1e-6:
            size /= 2
        a = a + size * step
        if abs(value - new) <= 1e-12 * max(1.0, abs(value)):
            break
        value = new
    return a


def max_change(residuals: Doubles, asked: Mask, n_others: int, n_learnt: int) -> float:
    """The most by which the expected number of other tracks with a tag may change.

    By |Σ r|, what the answers themselves say, r = y - p. And by N (|mean r| - `CHANCE` / √n) if the
    n answers to questions are further off than chance allows: then the model is wrong about the N
    others, too. By less if the model learnt the tag from many tracks in the library.
    """
    most = abs(residuals.sum())
    if n := int(asked.sum()):
        most += n_others * max(0.0, abs(residuals[asked].mean()) - CHANCE / n**0.5)
    return float(most * HALF_WEIGHT / (HALF_WEIGHT + n_learnt))


def _scale(before: Doubles, gained: Doubles, most: float) -> float:
    """The largest s up to 1 with |mean σ(before + s gained) - mean σ(before)| ≤ most."""

    def change(s: float) -> float:
        return abs(float((sigmoid(before + s * gained) - sigmoid(before)).mean()))

    if not len(before) or change(1.0) <= most:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if change(middle) <= most else (low, middle)
    return low


def _completed(
    library: Library, model: StoredModel, tracks: Ids, stored: Mapping[int, tuple[str, Steps]]
) -> tuple[dict[int, str], Steps]:
    """Track → digest of what was said; and what the model alone makes of it, one row each."""
    # Tags that people set keep the sound's probability, which search uses to order tracks.
    places = {name: j for j, name in enumerate(model.as_trained().vocabulary)}
    said = agreed_tags(library.opinions.triples(tracks), library.genres()) if len(tracks) else {}
    observed = {
        track: {places[name]: holds for name, holds in tags.items() if name in places}
        for track, tags in sorted(said.items())
    }
    digests = {
        track: _digest(json.dumps(sorted(tags.items())).encode())
        for track, tags in observed.items()
        if tags
    }
    rows = {track: steps for track, (_, steps) in stored.items() if len(steps) == len(places)}
    new = [track for track, one in digests.items() if (track in rows and stored[track][0]) != one]
    ids, X = library.tracks.features(new, extractor=model.extractor)
    if len(ids):
        tagger, Y = Tagger(model), np.full((len(ids), len(places)), np.nan, np.float32)
        for y, track in zip(Y, ids.tolist(), strict=True):
            y[list(observed[track])] = list(observed[track].values())
        for some in batches(range(len(ids))):
            by_sound, given = tagger.probabilities(X[some]), tagger.probabilities(X[some], Y[some])
            steps = packed(np.where(np.isnan(Y[some]), given, by_sound))
            rows |= dict(zip(ids[some].tolist(), steps, strict=True))
    for track in set(new) - set(ids.tolist()):  # without features
        del digests[track]
    empty = np.empty((0, len(places)), "<u2")
    return digests, np.stack([rows[track] for track in digests]) if digests else empty


def _with_gains(
    rows: Steps, tracks: Ids, refinements: Sequence[Refinement], sounds: SoundVectors, n: int
) -> Steps:
    """The rows plus what the first n tags, which the model was trained with, gained."""
    tags = [one for one in refinements if one.place < n]
    here = sounds.rows(tracks) if len(tracks) else np.empty(0, np.intp)
    if not tags or not len(here):
        return rows
    gains, P = Gains.of(tags, sounds), unpacked(rows)
    vectors = sounds.vectors[np.searchsorted(sounds.ids, tracks[here])]
    places = np.array([one.place for one in tags])
    P[np.ix_(here, places)] = gains.added(P[here][:, gains.places], vectors)
    return packed(P)


class Improvement(NamedTuple):
    """How well the model predicted answers before they were given."""

    n: int  # answers about tags that the model was trained with
    right_before: int  # how many the model guesses right as it was trained
    right_now: int  # how many it guesses right after learning from the answers before each

    @property
    def text(self) -> str:
        """The same in words."""
        if not self.n:
            return "No answers yet that show what was learnt."
        before, now = f"{self.right_before:,}", f"{self.right_now:,}"
        return (
            f"Of {counted(self.n, 'answer')}, the model as trained predicts {before} right; "
            f"after learning from the answers before each, {now}."
        )


def improvement(library: Library, change_id: int | None = None) -> Improvement | None:
    """How much learning from answers has helped: each is predicted from the earlier ones alone.

    For the latest answers to questions, at most `MAX_JUDGED`, of one change or of all; None if
    there are none.
    """
    update_sound_vectors(library)
    with library.reading():
        model = library.models.current(whole=False)
        if model is None:
            return None
        answers = answers_since(library, model)
        lessons = list(_lessons(library, model, SoundVectors.of(library), answers))
    usable = []
    for _, place, examples in lessons:
        wanted = examples.answers["asked"].to_numpy()
        if change_id is not None:
            wanted = examples.answers["by"].to_numpy() == change_id
        numbers = np.where(wanted, examples.answers["id"].to_numpy(), 0)
        if examples.has_model and numbers.any():
            usable.append((examples, numbers, model.thresholds[place]))
    if not usable:
        return None
    latest = np.sort(np.concatenate([numbers for _, numbers, _ in usable]))[-MAX_JUDGED:]
    oldest = max(1, int(latest[0]))
    table = np.concatenate(
        [_guesses(one, np.flatnonzero(numbers >= oldest), level) for one, numbers, level in usable]
    )
    return Improvement(len(table), *table.sum(axis=0).tolist())


def _guesses(examples: TagExamples, which: Places, threshold: np.float32) -> Mask:
    """For some answers, (n, 2): whether the model was right as trained, and after learning."""
    y, m, V = examples.y, examples.offset, examples.vectors
    level = float(log_odds(np.array(threshold)))
    found = np.empty((len(which), 2), bool)
    for row, i in enumerate(which.tolist()):
        a, bias = examples.fitted(i)
        odds = np.array([m[i], m[i] + a @ (SOUND_DEVIATION**2 * V[:i] @ V[i]) + bias])
        found[row] = (odds >= level) == (y[i] > 0.5)
    return found


@dataclass(frozen=True)
class Doubt:
    """A track's tag about which the model is uncertain."""

    track: Track
    tag: str
    shown: str  # the tag as this library spells it
    probability: float  # what the model says
    threshold: float  # the tag's
    guess: bool  # whether the probability reaches it


def doubtful(
    library: Library, tag: str | None = None, *, n: int = 20, skip: Collection[tuple[int, str]] = ()
) -> list[Doubt]:
    """The n questions that the model is least sure of, see `Library.doubts`."""
    # Only questions that nobody has answered; each track is asked about once.
    snapshot = library.snapshot()
    model = snapshot.model
    if not model.id:
        raise no_model()
    names = list(snapshot.places)
    if tag is None and not names:
        raise LibraryError("The model has not learnt any tag to ask about.")
    if tag is not None:
        name = snapshot.name(tag)
        if name not in names:
            raise unknown_tag(name, names, f"The model has not learnt {name!r}.")
        names = [name]
    asked = [_most_doubtful(snapshot, model, name, N_CANDIDATES * n, skip) for name in names]
    ids, steps, doubt = (np.concatenate(parts) for parts in zip(*asked, strict=True))
    columns = np.repeat(np.arange(len(names)), [len(one[0]) for one in asked])
    order = np.argsort(-doubt, kind="stable")[: N_CANDIDATES * n]
    tracks = library.tracks.many(ids[order])
    artists = np.array([track.artist or f"#{track.id}" for track in tracks])
    chosen = _spread(doubt[order], ids[order], columns[order], artists, n)
    found = []
    for k in chosen:
        name, p = names[columns[order[k]]], float(unpacked(steps[order[k : k + 1]])[0])
        threshold = float(model.thresholds[snapshot.places[name]])
        found.append(Doubt(tracks[k], name, snapshot.shown(name), p, threshold, p >= threshold))
    return found


def _most_doubtful(
    snapshot: Snapshot, model: StoredModel, name: str, most: int, skip: Collection[tuple[int, str]]
) -> tuple[Ids, Steps, Floats]:
    """The tracks where a tag is least certain, their probabilities, and the doubts."""
    place, found = snapshot.places[name], snapshot.predictions
    steps = found.steps[place]
    level = log_odds(model.thresholds[[place]])[0]
    doubt = -np.abs(_LOG_ODDS[steps] - level)
    agreed = snapshot.verdicts.agreement(name)
    skipped = np.array([number for number, other in skip if other == name], np.int64)
    known = np.concatenate([agreed.yes, agreed.no, skipped])
    doubt[np.isin(found.ids, known)] = -np.inf
    doubt[snapshot.absent] = -np.inf
    doubt += OWN_FIRST * model.is_own[place]
    rows = first(doubt, most)
    rows = rows[np.isfinite(doubt[rows])]
    return found.ids[rows], steps[rows], doubt[rows]


_LOG_ODDS = log_odds(unpacked(np.arange(65535, dtype=np.uint16)))
_LOG_ODDS = np.append(_LOG_ODDS, np.float32(-np.inf))  # for a track without a probability


def answer_doubt(
    library: Library, track_id: int, tag: str, fits: bool, person: str, change: int | None
) -> int:
    """Save a person's answer about one tag of a track, see `Library.answer`; returns the change."""
    # Raises a `LibraryError` if ``change`` is not a review, or is being undone.
    library.tracks.get(track_id)
    with library.begin() as connection:
        if change is not None and library.changes.get(change).command != REVIEW:
            raise LibraryError(f"Change {change} is not a review.")
        number = change or library.changes.begin(REVIEW, "")
        tags = {"yes" if fits else "no": [tag]}
        keep_said(library, track_id, **tags, person=person, change=number)
        query = sa.select(sa.func.count()).where(
            opinion.c.begun_by == number, opinion.c.ended_by.is_(None)
        )
        n_answers = int(connection.scalar(query) or 0)
        library.changes.describe(number, counted(n_answers, "answer"))
    return number


def _spread(doubt: Floats, ids: Ids, tags: Ids, artists: NDArray[np.str_], n: int) -> list[int]:
    """Places of the questions to ask: greedily, the most doubtful after waiting."""
    score = doubt.astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < n and len(score) and np.isfinite(score).any():
        best = int(np.argmax(score))
        chosen.append(best)
        score -= PENALTY * (tags == tags[best]) + PENALTY * (artists == artists[best])
        score[ids == ids[best]] = -np.inf
    return chosen
