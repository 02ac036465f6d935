"""Quick learning: what the model in use learns from the answers that it was not trained with.

`learn_from_answers` takes the current answers and works out, within about a second:

1. What each answered tag gains on all tracks. Its log-odds f = m + b + wᵀv are the model's, m, plus
   a linear function of how a track sounds, v (`store.tracks`), with b ~ N(0, 1) and w ~ N(0, I):
   the most probable b and w given the answers. They are scaled down so that the expected number of
   tracks with the tag changes by no more than the answers say (`max_change`).
2. The same for a word that the model was not trained with, once five tracks have it. There is no m
   then, and tracks that nobody has said anything about count as tracks without the word; together
   they weigh three times the tracks that have it.
3. What the model predicts for the other tags of a track, given what people said about it.

Answers to questions are a sample. What people say unasked is not: they say it because it is true,
or because the model is wrong. So such answers get a separate bias, which is not used, and do not
change b.

All of it follows from the answers, so undoing one and learning again restores the earlier state.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
import sqlalchemy as sa

from harmonium import stopping
from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.library.learning.labels import MIN_EXAMPLES
from harmonium.library.library import Library
from harmonium.library.model.gains import BIAS_DEVIATION, SOUND_DEVIATION, Gains, refined_columns
from harmonium.library.model.odds import log_odds
from harmonium.library.model.tagger import Tagger
from harmonium.library.sound import SoundVectors
from harmonium.library.store.database import batches
from harmonium.library.store.models import StoredModel
from harmonium.library.store.predictions import Steps, packed, unpacked
from harmonium.library.store.refinements import Refinement
from harmonium.library.store.schema import opinion, person, tag
from harmonium.library.store.values import to_microseconds
from harmonium.library.verdicts import VerdictTable, agreed_tags, is_answer
from harmonium.logistic import sigmoid, softplus

MAX_ANSWERS = 200  # the latest answers of a tag that count
N_UNSAID = 100  # tracks without any opinion that count as examples without a new word
UNSAID_WEIGHT = 3.0  # of all these together, in tracks that have the word; chosen on 4Q
NEW_THRESHOLD = 0.5  # of a word that the model was not trained with
MAX_OTHERS = 2000  # sample that estimates the expected number of tracks with a tag
HALF_WEIGHT = 5.0  # an answer counts half if the model learnt the tag from this many tracks with it
CHANCE = 1.5  # √n times the mean residual of n answers that chance explains: three standard errors
MAX_STEPS = 50  # of Newton's method
PRECISION = 1e-12  # the relative change of the objective at which it stops
SCALE_STEPS = 20  # halvings of the interval in which the scale is looked for


@dataclass(frozen=True, kw_only=True, eq=False)
class Learnt:
    """What the model in use learns from the current answers; none of it is stored yet."""

    model: StoredModel
    refinements: list[Refinement]  # what tags learn from answers
    refreshed: list[Refinement]  # those that differ from what is stored
    columns: dict[int, tuple[Ids, Floats]]
    """Place of each of these in the vocabulary → tracks (n,), and their new probabilities (n,)."""
    completed: "CompletedTracks"
    is_stored: bool  # whether the library has stored exactly this


@dataclass(frozen=True, kw_only=True, eq=False)
class CompletedTracks:
    """The tracks that people have answered about, with what follows for their other tags."""

    digests: dict[int, str]  # the n tracks, each with a digest of what was said
    by_model: Steps  # (n, n_trained) what the model predicts, given what was said
    probabilities: Steps  # (n, n_trained) the same, plus what the tags gained


def learn_from_answers(library: Library) -> Learnt | None:
    """What the model in use learns from the current answers; None if there is no model.

    The sound vectors must be up to date. What has been stored from the same answers is used again.
    """
    with library.reading():
        model = library.models.current()
        if model is None:
            return None
        sounds = SoundVectors.of(library)
        answers = answers_since(library, model)
        stored = {refinement.digest: refinement for refinement in model.refinements}
        refinements = []
        refreshed = []
        for lesson in lessons(library, model, sounds, answers):
            stopping.check()
            digest = lesson.digest(len(sounds.ids))
            refinement = stored.get(digest)
            if refinement is None:
                refinement = lesson.learn(digest)
                refreshed.append(refinement)
            refinements.append(refinement)
        columns = refined_columns(library, model, refreshed, sounds)
        answered = [said["track"].to_numpy() for said in answers.values()]
        tracks = np.unique(np.concatenate([np.empty(0, np.int64), *answered]))
        completed, is_stored = _completed_tracks(library, model, tracks, refinements, sounds)
    same_tags = stored.keys() == {refinement.digest for refinement in refinements}
    return Learnt(
        model=model,
        refinements=refinements,
        refreshed=refreshed,
        columns=columns,
        completed=completed,
        is_stored=same_tags and is_stored,
    )


def answers_since(library: Library, model: StoredModel) -> dict[str, pl.DataFrame]:
    """Tag → people's answers that a model was not trained with, in order of time.

    For tags learnt from the library, only answers given since; for others, all of them: the
    built-in model has learnt from none, nor have words that were too rare to be learnt.

    The columns: track, y (1 or 0, as people agree), asked (whether it answers a question), by (the
    change), id (larger is later).
    """
    said = _read_answers(library)
    own = []
    for output in model.as_trained().outputs:
        if output.source == "tracks" and output.threshold is not None:
            own.append(output.name)
    old = pl.col("tag").is_in(own) & (pl.col("at") <= to_microseconds(model.made_at))
    hidden = pl.col("tag").is_in(list(library.tags.hidden()))
    said = said.filter(~old, ~hidden).unique(["tag", "track"], keep="last", maintain_order=True)
    names = said["tag"].unique(maintain_order=True).to_list()
    verdicts = VerdictTable.read(library, names)
    answers = {}
    for name in names:
        of_tag = said.filter(pl.col("tag") == name)
        tracks = of_tag["track"].to_numpy()
        agreed = verdicts.agreement(name)
        present = np.isin(tracks, agreed.yes)
        absent = np.isin(tracks, agreed.no)
        of_tag = of_tag.with_columns(y=pl.Series(present, dtype=pl.Float64))
        of_tag = of_tag.filter(present | absent).tail(MAX_ANSWERS)
        if len(of_tag):
            answers[name] = of_tag
    return answers


def _read_answers(library: Library) -> pl.DataFrame:
    """What people say themselves: id, track, tag, at, by and asked, see `answers_since`."""
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
    return said.with_columns(
        tag=pl.col("tag").map_elements(library.genres().canonical, pl.String),
        asked=is_answer(library),
    )


class FittedGain(NamedTuple):
    """What examples teach about a tag."""

    weights: Doubles  # (n,) of the examples
    bias: float  # what all tracks gain


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherTracks:
    """The tracks that a model has tagged and that no answer is about."""

    n: int = 0  # how many there are
    offset: Doubles = field(default_factory=lambda: np.empty(0))
    """(m,) the model's log-odds of a tag for a sample of them."""
    vectors: Doubles = field(default_factory=lambda: np.empty((0, 0)))  # (m, N_AXES) of the sample


@dataclass(frozen=True, kw_only=True, eq=False)
class TagExamples:
    """Tracks to learn a tag from; those with answers first, then tracks without any opinion."""

    ids: Ids  # (n,)
    y: Doubles  # (n,) 1 or 0
    asked: Mask  # (n,) the bias is learnt from these alone
    weight: Doubles  # (n,)
    offset: Doubles  # (n,) the model's log-odds
    vectors: Doubles  # (n, N_AXES)
    has_model: bool  # whether the model was trained with the tag
    n_learnt: int = 0  # tracks with the tag in this library that the model learnt from
    others: OtherTracks = field(default_factory=OtherTracks)

    def fitted(self, n: int | None = None) -> FittedGain:
        """What the first n examples, or all, teach."""
        y, asked, offset, V = self.y[:n], self.asked[:n], self.offset[:n], self.vectors[:n]
        weights = fit_answers(kernel(V, asked), y, offset, self.weight[:n])
        bias = BIAS_DEVIATION**2 * float(weights[asked].sum())
        if not self.has_model:
            return FittedGain(weights, bias)
        gained = SOUND_DEVIATION**2 * self.others.vectors @ (V.T @ weights) + bias
        residuals = y - sigmoid(offset)
        most = max_change(residuals, asked, self.others.n, self.n_learnt)
        scale = _largest_scale(self.others.offset, gained, most / max(1, self.others.n))
        return FittedGain(scale * weights, scale * bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """A tag, and what it can be learnt from."""

    tag: str
    place: int  # in the model's vocabulary; new words come after its tags
    answers: pl.DataFrame  # as from `answers_since`, in the order of the first examples
    examples: TagExamples

    def digest(self, n_sounds: int) -> str:
        """The digest of what is learnt from; ``n_sounds`` tracks have sound vectors."""
        examples = self.examples
        arrays = (
            examples.ids,
            examples.y,
            examples.asked,
            examples.weight,
            examples.offset.round(6),
        )
        settings = f"{self.tag} {self.place} {n_sounds} {SOUND_DEVIATION} {BIAS_DEVIATION} {CHANCE}"
        return _digest(b"".join(array.tobytes() for array in arrays) + settings.encode())

    def learn(self, digest: str) -> Refinement:
        """What the tag gains from all examples."""
        gain = self.examples.fitted()
        n_yes = int(self.answers["y"].sum())
        return Refinement(
            place=self.place,
            name=self.tag,
            threshold=None if self.examples.has_model else NEW_THRESHOLD,
            has_model=self.examples.has_model,
            ids=self.examples.ids,
            weights=gain.weights,
            bias=gain.bias,
            n_yes=n_yes,
            n_no=len(self.answers) - n_yes,
            digest=digest,
        )


def lessons(
    library: Library, model: StoredModel, sounds: SoundVectors, answers: Mapping[str, pl.DataFrame]
) -> list[Lesson]:
    """What can be learnt from answers, tag by tag."""
    outputs = model.as_trained().outputs
    places = {output.name: place for place, output in enumerate(outputs)}
    reports = model.report.tags
    found = []
    n_new = 0
    for name, said in answers.items():
        place = places.get(name)
        heard = said.filter(np.isin(said["track"].to_numpy(), sounds.ids))
        if place is not None and outputs[place].threshold is not None:
            tagged, P = library.predictions.columns(model.id, [place], refined=False)
            heard = heard.filter(np.isin(heard["track"].to_numpy(), tagged))
            is_own = outputs[place].source == "tracks" and place < len(reports)
            n_learnt = reports[place].examples if is_own else 0
            examples = _examples_of_tag(heard, sounds, tagged, P[:, 0], n_learnt)
        elif said["y"].sum() >= MIN_EXAMPLES:
            examples = _examples_of_word(heard, sounds)
        else:
            continue
        if not len(heard) or (examples.y.all() and not examples.has_model):
            continue
        if place is None:
            place = len(outputs) + n_new
            n_new += 1
        found.append(Lesson(tag=name, place=place, answers=heard, examples=examples))
    return found


def _examples_of_tag(
    answers: pl.DataFrame, sounds: SoundVectors, tagged: Ids, p: Floats, n_learnt: int
) -> TagExamples:
    """Examples of a tag that the model predicts with ``p`` (n,) for the tracks ``tagged`` (n,)."""
    ids = answers["track"].to_numpy()
    unanswered = np.setdiff1d(np.intersect1d(tagged, sounds.ids), ids)
    sample = np.sort(np.random.default_rng(0).permutation(unanswered)[:MAX_OTHERS])

    def predicted(tracks: Ids) -> Doubles:
        return log_odds(p[np.searchsorted(tagged, tracks)]).astype(np.float64)

    return TagExamples(
        ids=ids,
        y=answers["y"].to_numpy(),
        asked=answers["asked"].to_numpy(),
        weight=np.ones(len(ids)),
        offset=predicted(ids),
        vectors=sounds.at(ids),
        has_model=True,
        n_learnt=n_learnt,
        others=OtherTracks(n=len(unanswered), offset=predicted(sample), vectors=sounds.at(sample)),
    )


def _examples_of_word(answers: pl.DataFrame, sounds: SoundVectors) -> TagExamples:
    """Examples of a word that the model does not know: those with answers, and some without."""
    answered, y = answers["track"].to_numpy(), answers["y"].to_numpy()
    others = np.setdiff1d(sounds.ids, answered)
    unsaid = np.sort(np.random.default_rng(0).permutation(others)[:N_UNSAID])
    share = UNSAID_WEIGHT * y.sum() / max(1, len(unsaid))
    ids = np.concatenate([answered, unsaid])
    return TagExamples(
        ids=ids,
        y=np.append(y, np.zeros(len(unsaid))),
        asked=np.ones(len(ids), bool),
        weight=np.append(np.ones(len(answered)), np.full(len(unsaid), share)),
        offset=np.zeros(len(ids)),
        vectors=sounds.at(ids),
        has_model=False,
    )


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
        return float((weight * (softplus(f) - y * f)).sum() + a @ K @ a / 2)

    value = objective(a)
    for _ in range(MAX_STEPS):
        f = K @ a
        p = sigmoid(offset + f)
        root = np.sqrt(weight * p * (1 - p))
        b = root**2 * f + weight * (y - p)
        B = np.eye(len(y)) + root[:, None] * K * root[None, :]
        step = b - root * np.linalg.solve(B, root * (K @ b)) - a
        size = 1.0
        while (new := objective(a + size * step)) > value + PRECISION * abs(value) and size > 1e-6:
            size /= 2
        a = a + size * step
        if abs(value - new) <= PRECISION * max(1.0, abs(value)):
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


def _largest_scale(before: Doubles, gained: Doubles, most: float) -> float:
    """The largest s up to 1 with |mean σ(before + s gained) - mean σ(before)| ≤ most."""

    def change(s: float) -> float:
        return abs(float((sigmoid(before + s * gained) - sigmoid(before)).mean()))

    if not len(before) or change(1.0) <= most:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(SCALE_STEPS):
        middle = (low + high) / 2
        if change(middle) <= most:
            low = middle
        else:
            high = middle
    return low


def _completed_tracks(
    library: Library,
    model: StoredModel,
    answered: Ids,
    refinements: Sequence[Refinement],
    sounds: SoundVectors,
) -> tuple[CompletedTracks, bool]:
    """The answered tracks with what follows for their other tags; and whether that is stored."""
    places = {name: j for j, name in enumerate(model.as_trained().vocabulary)}
    observed = _observed_tags(library, answered, places)
    digests = {
        track: _digest(json.dumps(sorted(tags.items())).encode())
        for track, tags in observed.items()
    }
    stored = library.refinements.completed(model.id)
    rows = {}
    new = []
    for track, digest in digests.items():
        if track in stored and stored[track][0] == digest and len(stored[track][1]) == len(places):
            rows[track] = stored[track][1]
        else:
            new.append(track)
    rows |= _predict_given(library, model, {track: observed[track] for track in new})
    digests = {track: digest for track, digest in digests.items() if track in rows}
    tracks = np.array(list(digests), np.int64)
    by_model = np.empty((0, len(places)), "<u2")
    if digests:
        by_model = np.stack([rows[track] for track in digests])
    probabilities = _with_gains(by_model, tracks, refinements, sounds, len(places))
    completed = CompletedTracks(digests=digests, by_model=by_model, probabilities=probabilities)
    return completed, digests == {track: digest for track, (digest, _) in stored.items()}


def _observed_tags(
    library: Library, tracks: Ids, places: Mapping[str, int]
) -> dict[int, dict[int, bool]]:
    """Track → place of a tag that people agree on → whether it holds; for tags of the model."""
    if not len(tracks):
        return {}
    agreed = agreed_tags(library.opinions.triples(tracks), library.genres())
    observed = {}
    for track, tags in sorted(agreed.items()):
        of_model = {places[name]: holds for name, holds in tags.items() if name in places}
        if of_model:
            observed[track] = of_model
    return observed


def _predict_given(
    library: Library, model: StoredModel, observed: Mapping[int, Mapping[int, bool]]
) -> dict[int, Steps]:
    """Track → what the model predicts, given its observed tags; without tracks without features.

    Observed tags keep what the model predicts from the sound, by which search orders tracks.
    """
    ids, X = library.tracks.features(list(observed), extractor=model.extractor)
    if not len(ids):
        return {}
    tagger = Tagger(model)
    Y = np.full((len(ids), len(model.vocabulary)), np.nan, np.float32)
    for y, track in zip(Y, ids.tolist(), strict=True):
        for place, holds in observed[track].items():
            y[place] = holds
    rows: dict[int, Steps] = {}
    for batch in batches(range(len(ids))):
        by_sound = tagger.probabilities(X[batch])
        given = tagger.probabilities(X[batch], Y[batch])
        steps = packed(np.where(np.isnan(Y[batch]), given, by_sound))
        rows |= dict(zip(ids[batch].tolist(), steps, strict=True))
    return rows


def _with_gains(
    rows: Steps, tracks: Ids, refinements: Sequence[Refinement], sounds: SoundVectors, n: int
) -> Steps:
    """The rows plus what the first n tags, which the model was trained with, gained."""
    trained = [refinement for refinement in refinements if refinement.place < n]
    heard = sounds.rows(tracks) if len(tracks) else np.empty(0, np.intp)
    if not trained or not len(heard):
        return rows
    gains, P = Gains.of(trained, sounds), unpacked(rows)
    vectors = sounds.vectors[np.searchsorted(sounds.ids, tracks[heard])]
    places = np.array([refinement.place for refinement in trained])
    P[np.ix_(heard, places)] = gains.added(P[heard][:, gains.places], vectors)
    return packed(P)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
