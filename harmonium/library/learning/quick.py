"""Learning from a few answers within a second, without training.

`learn_answers` is called after people have answered something. It works out, from the answers that
are in force and that the model in use has not been trained with, three things:

1. What each tag that was answered gains on all tracks. Its log-odds f = m + b + wᵀv are those of
   the model, m, and a linear function of how a track sounds, v (`store.features`), with b ~ N(0, 1)
   and w ~ N(0, I): the most probable ones given the answers. With few answers little changes.
2. The same for a word that the model was not trained with, once five tracks have it. There is no m
   then, and tracks of which nobody has said anything are taken for tracks without the word, all of
   them together weighing three times the tracks that have it.
3. What follows, by the model, from what people said of a track for its other tags.

Whoever answers a question does so whatever the answer is. Who says something without being asked
does so because it is so, or because the model is wrong: such answers are no sample, and tell
nothing of b. They have a bias of their own, which is not used.

All of it follows from the answers, so that undoing one and learning again gives what was before.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import sigmoid
from harmonium.library.learning.answers import Answers, answers_since
from harmonium.library.learning.examples import MIN_EXAMPLES, row_blocks
from harmonium.library.library import Library, Progress
from harmonium.library.store import features
from harmonium.library.store.features import SoundVectors
from harmonium.library.store.models import Refinement, Steps, StoredModel, packed, unpacked
from harmonium.library.store.opinions import agreed_tags
from harmonium.library.store.schema import change
from harmonium.library.tagger import (
    BIAS_DEVIATION,
    SOUND_DEVIATION,
    Gains,
    Tagger,
    log_odds,
    refined_columns,
)

MOST_JUDGED = 50
"""The latest answers that are guessed from those before them."""
N_UNSAID = 100
"""Tracks of which nobody has said anything that stand for those without a new word,"""
UNSAID_WEIGHT = 3.0
"""and what they weigh together, in tracks that have it. Chosen on 4Q, too."""
NEW_THRESHOLD = 0.5

Doubles = NDArray[np.float64]
Ids = NDArray[np.int64]


class QuickTag(NamedTuple):
    """A tag that has learnt from answers."""

    name: str
    n_yes: int
    n_no: int
    new: bool
    """Whether it is known from answers alone."""


@dataclass(frozen=True)
class QuickReport:
    """What was learnt."""

    tags: list[QuickTag]
    """The tags that have learnt from answers, whether just now or before,"""
    refreshed: list[str]
    """and those whose probabilities are other ones now."""
    n_answers: int
    """The answers that they have learnt from."""
    n_tracks: int
    """Tracks whose other tags follow from what people said of them."""
    seconds: float


def learn_answers(library: Library, progress: Progress | None = None) -> QuickReport:
    """Let the model in use learn from the answers since it was trained, within about a second.

    To be called after answers have begun or ended. Threads and processes may call it at any time:
    what is stored follows from the answers that are in force at the end.

    Parameters
    ----------
    progress : called with (tracks done, tracks) where tracks must be made comparable first
    """
    began = time.perf_counter()
    features.update_sound_vectors(library, progress)
    work = None
    for _ in range(3):  # answers may come meanwhile
        before = _last_change(library)
        with library.reading():
            work = _worked_out(library)
        if work is None:
            return QuickReport([], [], 0, 0, time.perf_counter() - began)
        with library.begin():
            _keep(library, work)
        if _last_change(library) == before:
            break
    assert work is not None
    found = work.refinements
    return QuickReport(
        [QuickTag(one.name, one.n_yes, one.n_no, not one.has_model) for one in found],
        [one.name for one in found if one.place in work.columns],
        sum(one.n_yes + one.n_no for one in found),
        len(work.completed),
        time.perf_counter() - began,
    )


# What follows from them. -----------------------------------------------------------------------


class _Work(NamedTuple):
    model: StoredModel
    refinements: list[Refinement]
    columns: dict[int, tuple[Ids, NDArray[np.float32]]]
    """Of those that are new or have changed."""
    completed: dict[int, str]
    """Track → digest of what was said of it."""
    rows: Steps
    """(n, n_tags) what follows from it,"""
    probabilities: Steps
    """and with what the tags gained."""
    is_new: bool
    """Whether any of it differs from what is kept."""


def _worked_out(library: Library) -> _Work | None:
    model = library.models.current()
    if model is None or model.id is None:
        return None
    sounds = SoundVectors.of(library)
    answers = answers_since(library, model)
    before = {one.digest: one for one in model.refinements}
    refinements: list[Refinement] = []
    n_new = 0
    for name, place, has_model in _places(model, answers):
        examples = _examples(library, model, sounds, answers[name], place, has_model)
        if examples is None:
            continue
        if place is None:
            place = model.n_trained + n_new
            n_new += 1
        digest = examples.digest(f"{name} {place} {len(sounds.ids)}")
        refinements.append(before.get(digest) or examples.learnt(name, place, digest))
    changed = [one for one in refinements if one.digest not in before]
    columns = refined_columns(library, model, changed, sounds)
    tracks = np.unique(np.concatenate([[], *(one.ids for one in answers.values())])).astype(int)
    completed, rows = _completed(library, model, tracks)
    probabilities = _with_gains(rows, np.array(list(completed)), refinements, sounds, model)
    kept = {track: one for track, (one, _) in library.refinements.completed(model.id).items()}
    is_new = (before.keys(), kept) != ({one.digest for one in refinements}, completed)
    return _Work(model, refinements, columns, completed, rows, probabilities, is_new)


def _keep(library: Library, work: _Work) -> None:
    """Keep what is not kept yet."""
    assert work.model.id is not None
    if not work.is_new:
        return
    library.refinements.put(work.model.id, work.refinements, work.columns)
    library.refinements.put_completed(work.model.id, work.completed, work.rows, work.probabilities)


def _places(
    model: StoredModel, answers: dict[str, Answers]
) -> Iterator[tuple[str, int | None, bool]]:
    """(tag, place, whether the model has a say) of the tags that can learn.

    The place of a word that the model was not trained with is None.
    """
    trained = model.as_trained()
    places = {name: j for j, name in enumerate(trained.vocabulary)}
    for name, one in answers.items():
        place = places.get(name)
        if place is not None and trained.learnt[place]:
            yield name, place, True
        elif one.y.sum() >= MIN_EXAMPLES:
            yield name, place, False


class _Examples(NamedTuple):
    """Tracks to learn a tag from; answers first, then those that nobody has spoken of."""

    ids: Ids
    y: Doubles
    asked: NDArray[np.bool_]
    weight: Doubles
    offset: Doubles
    """(n,) the model's log-odds"""
    vectors: Doubles
    """(n, N_AXES)"""
    n_answers: int
    has_model: bool

    def digest(self, more: str) -> str:
        """Of what is learnt from."""
        parts = (self.ids, self.y, self.asked, self.weight, self.offset.round(6))
        data = b"".join(part.tobytes() for part in parts)
        more += f" {SOUND_DEVIATION} {BIAS_DEVIATION}"
        return hashlib.blake2b(data + more.encode(), digest_size=16).hexdigest()

    def learnt(self, name: str, place: int, digest: str) -> Refinement:
        """What the tag gains."""
        weights = fit_answers(kernel(self.vectors, self.asked), self.y, self.offset, self.weight)
        bias = BIAS_DEVIATION**2 * float(weights[self.asked].sum())
        n_yes = int(self.y[: self.n_answers].sum())
        return Refinement(
            place,
            name,
            None if self.has_model else NEW_THRESHOLD,
            self.has_model,
            self.ids,
            weights,
            bias,
            n_yes,
            self.n_answers - n_yes,
            digest,
        )


def _examples(
    library: Library,
    model: StoredModel,
    sounds: SoundVectors,
    answers: Answers,
    place: int | None,
    has_model: bool,
) -> _Examples | None:
    """The answers that can be learnt from, with what else is needed; None where there are none."""
    assert model.id is not None
    answers = answers.rows(sounds.rows(answers.ids))
    if has_model:
        assert place is not None
        heard, P = library.predictions.columns(model.id, [place], refined=False)
        answers = answers.rows(np.isin(answers.ids, heard))
        at = np.searchsorted(heard, answers.ids)
        offset = log_odds(P[at, 0]).astype(np.float64)
        ids, y, asked, weight = answers.ids, answers.y, answers.asked, np.ones(len(answers.ids))
    else:
        n_yes = answers.y.sum()
        others = np.setdiff1d(sounds.ids, answers.ids)
        unsaid = np.sort(np.random.default_rng(0).permutation(others)[:N_UNSAID])
        share = UNSAID_WEIGHT * n_yes / max(1, len(unsaid))
        ids = np.concatenate([answers.ids, unsaid])
        y = np.concatenate([answers.y, np.zeros(len(unsaid))])
        weight = np.concatenate([np.ones(len(answers.ids)), np.full(len(unsaid), share)])
        asked, offset = np.ones(len(ids), bool), np.zeros(len(ids))
    if not len(answers.ids) or (y.all() and not has_model):
        return None
    return _Examples(ids, y, asked, weight, offset, sounds.at(ids), len(answers.ids), has_model)


def kernel(vectors: Doubles, asked: NDArray[np.bool_]) -> Doubles:
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


# Tracks of which people said something. ---------------------------------------------------------


def _completed(library: Library, model: StoredModel, tracks: Ids) -> tuple[dict[int, str], Steps]:
    """Track → digest of what was said; and what follows from it by the model alone, a row each.

    The tags that were said have what the sound alone says, by which search puts tracks in order.
    """
    assert model.id is not None
    trained = model.as_trained()
    places = {name: j for j, name in enumerate(trained.vocabulary)}
    said = agreed_tags(library.opinions.triples(tracks), library.genres()) if len(tracks) else {}
    told = {
        track: {places[name]: holds for name, holds in tags.items() if name in places}
        for track, tags in said.items()
    }
    digests = {
        track: hashlib.blake2b(
            json.dumps(sorted(tags.items())).encode(), digest_size=16
        ).hexdigest()
        for track, tags in sorted(told.items())
        if tags
    }
    before = library.refinements.completed(model.id)
    rows = {track: steps for track, (_, steps) in before.items()}
    new = [track for track, one in digests.items() if before.get(track, ("",))[0] != one]
    ids, X = library.tracks.features(new, extractor=model.extractor)
    if len(ids):
        tagger = Tagger(model)
        known = np.full((len(ids), len(places)), np.nan, np.float32)
        for i, track in enumerate(ids.tolist()):
            known[i, list(told[track])] = list(told[track].values())
        for some in row_blocks(len(ids)):
            by_sound, given = (
                tagger.probabilities(X[some]),
                tagger.probabilities(X[some], known[some]),
            )
            steps = packed(np.where(np.isnan(known[some]), given, by_sound))
            rows |= dict(zip(ids[some].tolist(), steps, strict=True))
    deaf = set(new) - set(ids.tolist())
    kept = {track: digest for track, digest in digests.items() if track not in deaf}
    empty = np.empty((0, len(places)), "<u2")
    return kept, np.stack([rows[track] for track in kept]) if kept else empty


def _with_gains(
    rows: Steps,
    tracks: Ids,
    refinements: Sequence[Refinement],
    sounds: SoundVectors,
    model: StoredModel,
) -> Steps:
    """The rows with what the tags gained."""
    tags = [one for one in refinements if one.place < model.n_trained]
    there = sounds.rows(tracks) if len(tracks) else np.empty(0, np.intp)
    if not tags or not len(there):
        return rows
    gains, P = Gains.of(tags, sounds), unpacked(rows)
    vectors = sounds.vectors[np.searchsorted(sounds.ids, tracks[there])]
    places = np.array([one.place for one in tags])
    P[np.ix_(there, places)] = gains.added(P[there][:, gains.places], vectors)
    return packed(P)


# What was gained. --------------------------------------------------------------------------------


class Improvement(NamedTuple):
    """How answers were guessed before they were given."""

    n: int
    """Answers about tags that the model was trained with."""
    right_before: int
    """Guessed right by the model as it was trained,"""
    right_now: int
    """and with what the answers before each of them taught."""
    loss_before: float
    """The mean of -log p of what was answered, in the same two ways."""
    loss_now: float


def improvement(library: Library, change_id: int | None = None) -> Improvement | None:
    """What learning from answers has gained: each is guessed from those before it alone.

    Of the latest answers, at most `MOST_JUDGED`, of one change or of all; None where there are none
    to be judged by.
    """
    features.update_sound_vectors(library)
    with library.reading():
        model = library.models.current(whole=False)
        if model is None or model.id is None:
            return None
        sounds = SoundVectors.of(library)
        answers = answers_since(library, model)
        usable = []
        for name, place, has_model in _places(model, answers):
            one = answers[name]
            wanted = one.numbers if change_id is None else one.numbers[one.changes == change_id]
            if has_model and place is not None and len(wanted):
                examples = _examples(library, model, sounds, one, place, True)
                if examples is not None:
                    numbers = one.numbers[np.isin(one.ids, examples.ids)]
                    usable.append((examples, numbers, wanted, model.thresholds[place]))
    every = np.concatenate([np.empty(0, np.int64), *(wanted for _, _, wanted, _ in usable)])
    latest = np.sort(every)[-MOST_JUDGED:]
    judged = [
        _guesses(examples, np.flatnonzero(np.isin(numbers, latest)), threshold)
        for examples, numbers, _, threshold in usable
    ]
    table = np.concatenate([np.empty((0, 4)), *judged])
    if not len(table):
        return None
    right_before, right_now = table[:, :2].sum(axis=0).astype(int).tolist()
    return Improvement(len(table), right_before, right_now, *table[:, 2:].mean(axis=0).tolist())


def _guesses(examples: _Examples, which: NDArray[np.intp], threshold: np.float32) -> Doubles:
    """For some answers, whether the model and what was learnt before were right; their losses."""
    y, m, asked, V = examples.y, examples.offset, examples.asked, examples.vectors
    K, level = kernel(V, asked), float(log_odds(np.array(threshold)))
    found = np.empty((len(which), 4))
    for row, i in enumerate(which.tolist()):
        a = fit_answers(K[:i, :i], y[:i], m[:i], np.ones(i))
        gain = a @ (SOUND_DEVIATION**2 * V[:i] @ V[i] + BIAS_DEVIATION**2 * asked[:i])
        odds = np.array([m[i], m[i] + gain])
        right = (odds >= level) == (y[i] > 0.5)
        found[row] = [*right, *np.logaddexp(0, np.where(y[i] > 0.5, -odds, odds))]
    return found


def _last_change(library: Library) -> int:
    with library.connect() as connection:
        return connection.scalar(sa.select(sa.func.max(change.c.id))) or 0
