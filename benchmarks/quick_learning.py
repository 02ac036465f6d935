"""What a few answers teach at once, beside rivals: no learning, retraining, logistic regression.

    HARMONIUM_DATA=FOLDER python benchmarks/quick_learning.py
    python benchmarks/quick_learning.py --tracks 100000      # seconds only, no data needed

Emotify, as musicnn hears it, in two halves: answers are about one half, and the probabilities of
the other are judged, by AUC, by average precision (AP) and by the mean of -log p of what is so
(log-loss); means over words and draws. An answer says what the players of Emotify agreed on.

1. Words that the model that comes along knows. It is made without Emotify here. Answers are chosen
   as `harmonium review` chooses them, after every ten anew, or at random.
2. Words of a model of one's own, trained with 100 excerpts of the half. "Trained anew" is trained
   again, with the answers to all words; with one setting, where `harmonium train` tries three.
3. New words, from excerpts that have them and no other answer.
4. The other words of an excerpt, told one that it has.

`--few` shows what 1, 3 and 10 answers do to the tracks that nobody was asked about, in Emotify and
4Q: the change of their log-loss, its mean and the largest of any word, and the largest change of
the expected number of tracks with a word. With a model of the collection itself, cross-fitted, and
with one of the other collections.

The deviations of quick learning and the weight of unsaid tracks were chosen on 4Q and GTZAN, which
`--choose` shows.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

from harmonium import DiscriminativeRBM, LogisticTagger
from harmonium.evaluation import auc_per_tag, average_precision_per_tag
from harmonium.library import Library
from harmonium.library.learning import quick
from harmonium.library.learning.examples import Hyperparameters, TrainingSet
from harmonium.library.learning.fitting import fit
from harmonium.library.model.odds import log_odds
from harmonium.library.sound import FULL, SoundSpace
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track
from harmonium.library.teaching.say import keep_said

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
from builtin_model.corpus import join, listening_corpus
from builtin_model.making import ONE_MODEL
from builtin_model.making import fit as fit_builtin

SIZES = (5, 10, 20)
FEW_SIZES = (1, 3, 10)
AT_A_TIME = 10
"""Answers after which a review chooses anew."""


def learn(V, rows, y, offset, *, asked=True, weight=None, has_model=True, n_learnt=0):
    """The log-odds that quick learning gives all tracks; y and weight are of the rows."""
    flags = np.full(len(rows), asked)
    weight = np.ones(len(rows)) if weight is None else weight
    left = np.setdiff1d(np.arange(len(V)), rows)
    examples = quick.TagExamples(
        ids=rows,
        y=y,
        asked=flags,
        weight=weight,
        offset=offset[rows],
        vectors=V[rows],
        has_model=has_model,
        n_learnt=n_learnt,
        others=quick.OtherTracks(n=len(left), offset=offset[left], vectors=V[left]),
    )
    a, bias = examples.fitted()
    return offset + quick.SOUND_DEVIATION**2 * V @ (V[rows].T @ a) + bias


def learn_new(V, yes, others, no=()):
    """The same for a word without a model: ``others`` stand for tracks without it."""
    unsaid = others[: quick.N_UNSAID]
    rows = np.concatenate([yes, no, unsaid]).astype(int)
    y = np.concatenate([np.ones(len(yes)), np.zeros(len(no) + len(unsaid))])
    weight = np.ones(len(rows))
    weight[len(yes) + len(no) :] = quick.UNSAID_WEIGHT * len(yes) / len(unsaid)
    return learn(V, rows, y, np.zeros(len(V)), weight=weight, has_model=False)


def chosen(how, V, pool, y, offset, n, rng):
    """The n tracks of the pool that are asked about."""
    if how == "at random":
        return rng.permutation(pool)[:n]
    share = expit(offset[pool]).mean()  # as many reach the threshold as the model expects
    threshold = np.quantile(offset[pool], 1 - share)
    asked, odds = np.empty(0, int), offset
    while len(asked) < n:
        left = np.setdiff1d(pool, asked)
        order = left[np.argsort(np.abs(odds[left] - threshold), kind="stable")]
        asked = np.append(asked, order[: min(AT_A_TIME, n - len(asked))])
        odds = learn(V, asked, y[asked], offset)
    return asked


def regression(X, rows, y, n):
    """The log-odds of logistic regression on the answers alone; nothing where all are alike."""
    if y.all() or not y.any():
        return np.zeros(n)
    model = LogisticTagger(solver="newton", l2=0.1).fit(X[rows], y[:, None].astype(np.float32))
    return log_odds(model.predict_proba(X)[:, 0])


class Scores(dict):
    """(what, how many answers) → [(AUC, average precision, log-loss), …]."""

    def add(self, what, n, y, odds):
        one, p = y[:, None].astype(np.float32), np.asarray(odds, np.float32)[:, None]
        found = auc_per_tag(one, p).values[0], average_precision_per_tag(one, p).values[0]
        loss = np.logaddexp(0, np.where(y > 0.5, -odds, odds)).mean()
        self.setdefault((what, n), []).append((*found, loss))

    def show(self, title, sizes, n_scores=3):
        print(f"\n{title}\n\n| | " + " | ".join(f"{n} answers" for n in sizes) + " |")
        print("|---" * (len(sizes) + 1) + "|")
        for what in dict.fromkeys(what for what, _ in self):
            cells = []
            for n in sizes:
                found = self.get((what, n))
                means = [] if found is None else np.mean(found, axis=0)[:n_scores]
                cells.append(" / ".join(f"{mean:.3f}" for mean in means))
            print(f"| {what} | " + " | ".join(cells) + " |")


def halves(n, draw):
    """Random generator, and the rows to answer about and those to judge by."""
    rng = np.random.default_rng(draw)
    order = rng.permutation(n)
    return rng, np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def known_words(X, V, Y, P, places, draws, title):
    """Words that a model knows; P are its probabilities (n, C)."""
    scores = Scores()
    for draw in range(draws):
        rng, pool, judged = halves(len(Y), draw)
        for j, place in places.items():
            offset, y = log_odds(P[:, place]).astype(float), Y[:, j]
            scores.add("no learning", 0, y[judged], offset[judged])
            for how in ("as review asks", "at random"):
                for n in SIZES:
                    rows = chosen(how, V, pool, y, offset, n, rng)
                    odds = learn(V, rows, y[rows], offset)
                    scores.add(f"quick, {how}", n, y[judged], odds[judged])
                    alone = regression(X, rows, y[rows], len(X))
                    scores.add(f"logistic regression alone, {how}", n, y[judged], alone[judged])
            yes = rng.permutation(pool[y[pool] == 1])
            for n in SIZES:
                if len(yes) >= n:
                    odds = learn(V, yes[:n], np.ones(n), offset, asked=False)
                    scores.add(
                        "quick, said unasked of those that have it", n, y[judged], odds[judged]
                    )
    scores.show(title, (0, *SIZES))


def trained(X, labels, seed):
    """The log-odds of all tracks by training as `harmonium train` does, with one setting; model."""
    some = np.flatnonzero(~np.isnan(labels).all(axis=1))
    tags = tuple(map(str, range(labels.shape[1])))
    examples = TrainingSet(X[some], labels[some].astype(np.float32), np.arange(len(some)), tags)
    model = fit(examples, to_try=(Hyperparameters(0.01, 0.3),), seed=seed).estimator
    return log_odds(model.predict_proba(X)).astype(float), model


def own_words(X, V, Y, draws, title):
    """Words of a model of one's own, and training it anew."""
    scores, seconds, told = Scores(), {"quick": [], "anew": []}, []
    for draw in range(draws):
        rng, half, judged = halves(len(Y), draw)
        half = rng.permutation(half)
        taught, pool = half[: len(half) // 2], half[len(half) // 2 :]
        labels = np.full(Y.shape, np.nan)
        labels[taught] = Y[taught]
        base, model = trained(X, labels, draw)
        every = {j: j for j in range(Y.shape[1])}
        told.append(completion(model, X[judged], Y[judged], every))
        for how in ("as review asks", "at random"):
            for n in SIZES:
                more = labels.copy()
                for j in range(Y.shape[1]):
                    y = Y[:, j]
                    rows = chosen(how, V, pool, y, base[:, j], n, rng)
                    more[rows, j] = y[rows]
                    began = time.perf_counter()
                    odds = learn(V, rows, y[rows], base[:, j])
                    seconds["quick"].append(time.perf_counter() - began)
                    scores.add(f"quick, {how}", n, y[judged], odds[judged])
                began = time.perf_counter()
                again, _ = trained(X, more, draw)
                seconds["anew"].append(time.perf_counter() - began)
                for j in range(Y.shape[1]):
                    scores.add(f"trained anew, {how}", n, Y[judged, j], again[judged, j])
        for j in range(Y.shape[1]):
            scores.add("no learning", 0, Y[judged, j], base[judged, j])
    scores.show(title, (0, *SIZES))
    print(
        f"\nSeconds: quick {np.median(seconds['quick']):.4f} for a word, the arithmetic alone; "
        f"training anew {np.median(seconds['anew']):.1f} for all, with one setting"
    )
    show_completion(*np.mean(told, axis=0))


def new_words(X, V, Y, words, draws, title="New words, told excerpts that have them"):
    """Words without a model."""
    scores = Scores()
    for draw in range(draws):
        rng, pool, judged = halves(len(Y), draw)
        for j in words:
            y = Y[:, j]
            yes, no = (rng.permutation(pool[y[pool] == value]) for value in (1, 0))
            for n in SIZES:
                if len(yes) < n:
                    continue
                others = rng.permutation(np.setdiff1d(pool, yes[:n]))
                odds = learn_new(V, yes[:n], others)
                scores.add("quick: tracks with it alone", n, y[judged], odds[judged])
                both = learn_new(V, yes[:n], np.setdiff1d(others, no[:n]), no=no[:n])
                scores.add("quick: and as many without it", n, y[judged], both[judged])
                rows = np.concatenate([yes[:n], no[:n]])
                alone = regression(X, rows, y[rows], len(X))
                name = "logistic regression: with it and as many without it"
                scores.add(name, n, y[judged], alone[judged])
                rows = np.concatenate([yes[:n], others])
                labels = np.concatenate([np.ones(n), np.zeros(len(others))])
                alone = regression(X, rows, labels, len(X))
                name = "logistic regression: with it and all others as without it"
                scores.add(name, n, y[judged], alone[judged])
                scores.add(
                    "likeness to those with it",
                    n,
                    y[judged],
                    (V @ V[yes[:n]].T).mean(axis=1)[judged],
                )
    scores.show(title, SIZES, 2)


def completion(model, X, Y, tags):
    """AUC of the other words of excerpts that have a word: by the sound, and told that word.

    tags : column of Y → place in the model's vocabulary
    """
    before, after = [], []
    P = model.predict_proba(X)
    for j, place in tags.items():
        rows, others = Y[:, j] == 1, [k for k in tags if k != j]
        told = np.full((int(rows.sum()), P.shape[1]), np.nan, np.float32)
        told[:, place] = 1
        completed, at = model.complete(X[rows], told), [tags[k] for k in others]
        before.append(auc_per_tag(Y[rows][:, others], P[rows][:, at]).values)
        after.append(auc_per_tag(Y[rows][:, others], completed[:, at]).values)
    return np.nanmean(before), np.nanmean(after)


def show_completion(before, after):
    print(f"\nThe other words, told one: {before:.3f} by the sound alone, {after:.3f} told")


def emotify(draws):
    corpus = listening_corpus(("emotify",))
    X, space = corpus.X, SoundSpace.fitted(corpus.X)
    V = space.vectors(X) / FULL
    asked = np.flatnonzero(~np.isnan(corpus.Y).all(axis=0))
    Y, words = corpus.Y[:, asked], [corpus.tags[j] for j in asked]
    builtin = fit_builtin(listening_corpus(("4q", "gtzan")), **ONE_MODEL)
    tags = builtin.tags_.tolist()
    places = {j: tags.index(word) for j, word in enumerate(words) if word in tags}
    P = builtin.predict_proba(X)
    named = ", ".join(words[j] for j in places)
    title = f"AUC / AP / log-loss of words that the model that comes along knows ({named})"
    known_words(X, V, Y, P, places, draws, title)
    show_completion(*completion(builtin, X, Y, places))
    own_words(X, V, Y, max(1, draws // 3), "One's own model of 100 excerpts, nine words")
    new_words(X, V, Y, range(len(words)), draws)


def choose(draws):
    """The deviations and the weight, on 4Q and GTZAN, each with a model of the other collections.

    And with models of one's own. The best deviations differ: 1 and 1 are good, or harm little, in
    all of them.
    """
    corpus = listening_corpus(("4q", "gtzan", "emotify"))
    for name, others in (("4q", ("gtzan", "emotify")), ("gtzan", ("4q", "emotify"))):
        builtin = fit_builtin(join([corpus.of(*others)]), **ONE_MODEL)
        own = corpus.of(name)
        V = SoundSpace.fitted(own.X).vectors(own.X) / FULL
        often = np.nansum(own.Y == 1, axis=0) >= 30
        asked = np.flatnonzero(often & ~np.isnan(own.Y).any(axis=0))
        Y, tags, P = own.Y[:, asked], builtin.tags_.tolist(), builtin.predict_proba(own.X)
        places = {i: tags.index(own.tags[j]) for i, j in enumerate(asked) if own.tags[j] in tags}
        models = {"another model": [(draw, P, places) for draw in range(draws)]}
        models["own model"] = []
        for draw in range(min(3, draws)):
            _, half, _ = halves(len(Y), draw)
            labels = np.full(Y.shape, np.nan)
            labels[half[::3]] = Y[half[::3]]
            odds, _ = trained(own.X, labels, draw)
            every = {j: j for j in range(len(asked)) if labels[half[::3], j].sum() >= 4}
            models["own model"].append((draw, expit(odds), every))
        for which, ready in models.items():
            scores = Scores()
            for sound, bias in ((0, 0), (0.5, 1), (1, 1), (1, 2), (1.5, 1), (1.5, 2), (2, 2)):
                quick.SOUND_DEVIATION, quick.BIAS_DEVIATION = sound, bias
                for draw, probabilities, known in ready:
                    rng, half, judged = halves(len(Y), draw)
                    for j, place in known.items():
                        offset, y = log_odds(probabilities[:, place]).astype(float), Y[:, j]
                        for how in ("as review asks", "at random"):
                            for n in SIZES:
                                pool = np.setdiff1d(half, half[::3])
                                rows = chosen(how, V, pool, y, offset, n, rng)
                                odds = learn(V, rows, y[rows], offset)
                                scores.add(f"{sound}, {bias}, {how}", n, y[judged], odds[judged])
            scores.show(f"{name}, {which}: deviations of sound and bias", SIZES)
        quick.SOUND_DEVIATION = quick.BIAS_DEVIATION = 1.0
        for weight in (1.0, 3.0, 6.0):
            quick.UNSAID_WEIGHT = weight
            title = f"{name}, new words: unsaid tracks weigh {weight} times those with the word"
            new_words(own.X, V, Y, range(len(asked)), 1, title)
        quick.UNSAID_WEIGHT = 3.0


# Few answers. ---------------------------------------------------------------------------------


def few_answers(draws):
    """What few answers do to the tracks that nobody was asked about."""
    corpus = listening_corpus(("4q", "gtzan", "emotify"))
    print("| | " + " | ".join(f"{n} answers" for n in FEW_SIZES) + " |")
    print("|---" * (len(FEW_SIZES) + 1) + "|")
    for name, others in (("emotify", ("4q", "gtzan")), ("4q", ("gtzan", "emotify"))):
        own = corpus.of(name)
        often = np.nansum(own.Y == 1, axis=0) >= 20
        asked = np.flatnonzero(often & ~np.isnan(own.Y).any(axis=0))
        Y, V = own.Y[:, asked], SoundSpace.fitted(own.X).vectors(own.X) / FULL
        model = DiscriminativeRBM(random_state=0).fit(own.X, Y, groups=own.group)
        few_answers_by(f"{name}, own model", V, Y, model.held_out_, True, draws)
        other = fit_builtin(join([corpus.of(*others)]), **ONE_MODEL)
        tags, P = other.tags_.tolist(), other.predict_proba(own.X)
        known = [i for i, j in enumerate(asked) if own.tags[j] in tags]
        places = [tags.index(own.tags[asked[i]]) for i in known]
        few_answers_by(f"{name}, another model", V, Y[:, known], P[:, places], False, draws)


def few_answers_by(title, V, Y, P, is_own, draws):
    for how in ("as review asks", "at random"):
        cells = []
        for n in FEW_SIZES:
            rises, moves = [], []
            for y, p in zip(Y.T, P.T, strict=True):
                offset = log_odds(p).astype(float)
                rises.append([])
                for draw in range(draws):
                    rng, pool, _ = halves(len(Y), draw)
                    rows = chosen(how, V, pool, y, offset, n, rng)
                    n_learnt = int(y.sum()) if is_own else 0
                    after = learn(V, rows, y[rows], offset, n_learnt=n_learnt)
                    left = np.setdiff1d(np.arange(len(y)), rows)
                    losses = [np.logaddexp(0, (1 - 2 * y) * odds)[left] for odds in (offset, after)]
                    rises[-1].append((losses[1] - losses[0]).mean())
                    moves.append(abs((expit(after) - expit(offset))[left].sum()))
            means = np.mean(rises, axis=1)
            cells.append(f"{means.mean():+.4f} / {means.max():+.4f} / {max(moves):.1f}")
        print(f"| {title}, {Y.shape[1]} words, {how} | " + " | ".join(cells) + " |", flush=True)


# Seconds. -------------------------------------------------------------------------------------


def speed(n_tracks, n_tags=200, n_features=400):
    """Learning in a library of many tracks, with made-up features and predictions."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, Library.open(Path(folder) / "l.db") as library:
        library.settings.set("extractor", "made up")
        model = DiscriminativeRBM(n_hidden=100, max_epochs=1, validation_fraction=0.0)
        labels = (rng.random((300, n_tags)) < 0.3).astype(np.float32)
        X = rng.normal(size=(300, n_features)).astype(np.float32)
        tags = [f"tag {j}" for j in range(n_tags)]
        model.fit(X, pl.DataFrame(labels, schema=tags))
        for start in range(0, n_tracks, 10_000):
            some = range(start, min(start + 10_000, n_tracks))
            ids = library.tracks.put(Track(f"/{i}.ogg", f"{i}", title=f"{i}") for i in some)
            X = rng.normal(size=(len(ids), n_features)).astype(np.float32)
            library.tracks.put_features(ids, X, extractor="made up")
        stored = StoredModel(
            name="DiscriminativeRBM", vocabulary=tags, thresholds=np.full(n_tags, 0.5, np.float32),
            extractor="made up", bytes=model.to_bytes({}), report=ModelReport(),
        )  # fmt: skip
        number = library.models.add(stored)
        for start in range(0, n_tracks, 8192):
            ids = np.arange(start, min(start + 8192, n_tracks)) + 1
            library.predictions.put(number, ids, rng.random((len(ids), n_tags)))
        began = time.perf_counter()
        library.learn()
        print(f"{n_tracks:,} tracks, {n_tags} tags. Making tracks comparable, once: "
              f"{time.perf_counter() - began:.1f} s")  # fmt: skip
        tracks = iter(rng.permutation(n_tracks) + 1)
        for n_answers, n_asked in ((1, 1), (10, 1), (20, 10), (200, 1)):
            seconds = []
            for _ in range(3):
                names = rng.choice(tags, n_asked, replace=False)
                change = library.changes.begin("review", "")
                for k in range(n_answers):
                    which = "accepted" if rng.random() < 0.5 else "rejected"
                    said = {which: [names[k % n_asked]]}
                    keep_said(library, int(next(tracks)), **said, change=change)
                seconds.append(library.learn().seconds)
                library.changes.undo(change)
                library.learn()
            print(f"{n_answers} answers about {n_asked} tags: {np.median(seconds):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--choose", action="store_true", help="how the deviations were chosen")
    parser.add_argument("--few", action="store_true", help="what 1, 3 and 10 answers do to others")
    parser.add_argument("--tracks", type=int, help="seconds only, in a library of so many tracks")
    options = parser.parse_args()
    if options.tracks:
        speed(options.tracks)
    elif options.few:
        few_answers(options.draws)
    elif options.choose:
        choose(options.draws)
    else:
        emotify(options.draws)


if __name__ == "__main__":
    main()
