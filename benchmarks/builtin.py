"""The built-in model judged on held-out artists, beside its rivals.

    HARMONIUM_DATA=FOLDER python benchmarks/builtin.py [PART ...]

Every clip is predicted by a model that has not learnt from its artist (4Q), its part of the split
(GTZAN) or itself (Emotify). The built-in model is rebuilt without the held-out clips: all of its
members, its correction and its precision curves. The parts, all by default:

ranking: mean AUC over the tags that people gave. "alone" learns from one collection; "union" from
    all three; "heads" adds the probabilities of musicnn's own taggers as labels where a collection
    does not have a tag. The first line is the built-in model; all others are single models, which
    learn from all clips for 80 epochs. "±" is the standard error of the difference from the second
    line, by drawing artists. The penalties of logistic regression and of the MLP are the best of
    three by these very scores, which flatters them; those of the RBM were chosen on other folds of
    the same clips, but the directions of the volume, and the settings without sound (`TOGETHER`),
    on these very folds.
completion: one true tag of each clip is observed, or three (all where it has fewer), and those of
    another vocabulary are asked for. AUC over clips, and within a clip, before and after. Emotify's
    excerpts have an observed genre, which the model never saw beside an emotion. "heads": the
    observed tag is the one that musicnn's taggers find most likely beside its usual share. "no
    sound" is what `harmonium suggest` uses for tags that are not in its own file.
calibration: expected calibration error before and after the correction.
precision: what would be written with a precision of 80 %, by the curves of the members' held-out
    clips, and the share of it that is right; and of each mood that would be, or that two
    collections have: how well each collection agrees.
quadrants: moods of the package's model that reach a precision of 80 %, and how many of 4Q's clips
    would get them; of these, the share that people call energetic, and positive.
strangers: tags that two collections share, by models that never saw the one they are judged by:
    AUC, beside that of models that have seen other artists of it; and how often is right what
    would be written.
volume: mean AUC with more or fewer directions taken out of the features, and Emotify's clips
    12 dB softer: their AUC, and the share of the tags found that still are.
robustness: how far probabilities move when a clip comes in another file.
features: audio features: correlation with VibeNet's values, and AUC for the quadrants that people
    gave, beside ridge regression (the best of three penalties by these very scores, feature by
    feature), for held-out artists; and learnt from 4Q alone, for GTZAN.
not_music: how many sounds that are no music, made by other voices and generators than those learnt
    from, get tags; and how many clips of music do not, by what learnt from other folds.
"""

import argparse
import sys
import tempfile
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Ridge

from harmonium import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.data.datasets import load
from harmonium.estimators import CooccurrenceTagger, NaiveBayesTagger
from harmonium.estimators.validation import matching_thresholds
from harmonium.evaluation import (
    auc_per_clip,
    auc_per_tag,
    calibration_error_per_tag,
    grouped_folds,
    reliability,
)
from harmonium.library.learning.scores import auc_error, make_curves
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.builtin import builtin_kinds, builtin_model
from harmonium.library.model.precision import curves_from_arrays, threshold_for
from harmonium.library.model.tagger import Tagger

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
from builtin_model import making
from builtin_model.corpus import Corpus, listening_corpus
from builtin_model.making import ONE_MODEL, TOGETHER
from builtin_model.not_music import make_examples
from builtin_model.other_files import hear, hear_louder
from builtin_model.robustness import measure_robustness
from builtin_model.vocabulary import shared_vocabulary
from builtin_model.volume import DIRECTIONS

QUESTIONS = (("4q", "mood"), ("4q", "genre"), ("gtzan", "genre"), ("emotify", "mood"))
NAMES = ("4q", "gtzan", "emotify")
DRAWS = 50
N_FOLDS = 5
EMOTIFY_GENRES = ("classical", "rock", "electronic", "pop")
"""Of its excerpts 1-100, 101-200, 201-300 and 301-400."""


@cache
def both(n_directions=DIRECTIONS):
    """All clips with their tags, and with their audio features."""
    return listening_corpus(NAMES, n_directions=n_directions).split()


def union():
    return both()[0]


class Judged(NamedTuple):
    """What models made like the built-in one say about held-out clips; all (n, C)."""

    uncorrected: Any
    corrected: Any
    least: Any
    """From which probability on a tag would be written."""
    confirmed: Any
    """Whether two collections confirm the tag, if it is a mood."""


@cache
def fitted():
    """Clips to hold out, all others, and a model of these made like the built-in one."""
    corpus = union()
    return [(rows, i, making.fit(corpus.rows(i))) for rows, i in held_out_splits(corpus)]


@cache
def said():
    corpus = union()
    found = Judged(*(np.empty_like(corpus.Y) for _ in Judged._fields))
    for rows, others, model in fitted():
        known, X = corpus.rows(others), corpus.X[rows]
        least, curves = writes_from(known, model)
        doubted = making.unconfirmed(known, model.held_out_, curves)
        said_now = model.infer(X).y, model.predict_proba(X), least, ~np.isin(corpus.tags, doubted)
        for whole, part in zip(found, said_now, strict=True):
            whole[rows] = part
    return found


def held_out_splits(corpus):
    """Clips to hold out, and all others; one pair after the other.

    Artists never straddle two folds of 4Q. The two parts of GTZAN, which share no artist, are held
    out in turn.
    """
    splits = []
    folded = np.flatnonzero(corpus.collection != "gtzan")
    if len(folded):
        Y = np.nan_to_num(corpus.Y[folded])
        folds = grouped_folds(corpus.group[folded], Y, n_folds=N_FOLDS)
        splits += [folded[folds == fold] for fold in range(N_FOLDS)]
    splits += [np.flatnonzero(corpus.group == f"gtzan: {part}") for part in ("valid", "train")]
    return [(rows, np.setdiff1d(np.arange(len(corpus.X)), rows)) for rows in splits if len(rows)]


def learnt_from_others(corpus, learn):
    """The clips to hold out, and what was learnt from all others; one set after the other."""
    for rows, others in held_out_splits(corpus):
        yield rows, learn(corpus.rows(others))


def held_out(corpus, learn):
    """The probabilities (n, C) of every clip by a model that has not learnt from its artist."""
    nothing = np.full(corpus.Y.shape, np.nan, np.float32)
    P = nothing.copy()
    for rows, answers in learnt_from_others(corpus, learn):
        P[rows] = answers(corpus.X[rows], nothing[rows])
    return P


def by(kind, heads=True, observes=False, **settings):
    """A learner of a class of estimators."""

    def learn(corpus: Corpus):
        Y = corpus.targets(heads)
        asked = ~np.isnan(Y).all(axis=0)
        model = kind(**settings).fit(corpus.X, Y[:, asked])

        def answers(X, observed):
            P = np.full(observed.shape, np.nan, np.float32)
            known = observed[:, asked]
            P[:, asked] = model.complete(X, known) if observes else model.predict_proba(X)
            return P

        return answers

    return learn


def asked_tags(corpus, collection, group):
    """Rows of a collection, and the tags of a group that it was asked for."""
    groups = shared_vocabulary().groups
    rows = corpus.collection == collection
    of_group = np.array([(groups[tag] == "genre") == (group == "genre") for tag in corpus.tags])
    return rows, of_group & ~np.isnan(corpus.Y[rows]).all(axis=0)


def mean_auc(Y, P):
    return float(np.nanmean(auc_per_tag(Y, P).values))


def score(corpus, P):
    """(collection, group) -> mean AUC."""
    found = {}
    for question in QUESTIONS:
        rows, asked = asked_tags(corpus, *question)
        if rows.any() and asked.any():
            found[question] = mean_auc(corpus.Y[rows][:, asked], P[rows][:, asked])
    return found


def errors(corpus, P, other):
    """(collection, group) -> standard error of the difference of two mean AUCs."""
    found, rng = {}, np.random.default_rng(0)
    for question in QUESTIONS:
        rows, asked = asked_tags(corpus, *question)
        rows = np.flatnonzero(rows)
        names = corpus.group[rows] if question[0] == "4q" else rows
        of = [rows[names == name] for name in np.unique(names)]
        differences = []
        for _ in range(DRAWS):
            drawn = np.concatenate([of[i] for i in rng.integers(len(of), size=len(of))])
            Y = corpus.Y[drawn][:, asked]
            a, b = (auc_per_tag(Y, Q[drawn][:, asked]).values for Q in (P, other))
            differences.append(np.nanmean(a - b))
        found[question] = float(np.std(differences))
    return found


def line(name, found, error=None, order=QUESTIONS):
    cells = [
        ("" if q not in found else f"{found[q]:.3f}") + (f" ± {error[q]:.3f}" if error else "")
        for q in order
    ]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


@cache
def one_model():
    """What single models of all clips but the held-out ones say about these."""
    return held_out(union(), by(DiscriminativeRBM, **ONE_MODEL))


def best(corpus, name, kind, values, **settings):
    """The line of the best of several penalties, by collection and group; with errors."""
    trials = [held_out(corpus, by(kind, **settings, l2=value)) for value in values]
    scores = [score(corpus, P) for P in trials]
    first = {q: max(range(len(values)), key=lambda i, q=q: scores[i][q]) for q in QUESTIONS}
    error = {i: errors(corpus, trials[i], one_model()) for i in set(first.values())}
    found = {q: scores[i][q] for q, i in first.items()}
    line(name, found, {q: error[i][q] for q, i in first.items()})


def ranking():
    corpus = union()
    print("| model | " + " | ".join(f"{c}: {g}s" for c, g in QUESTIONS) + " |")
    print("|---" * (len(QUESTIONS) + 1) + "|")
    difference = errors(corpus, said().uncorrected, one_model())
    line(
        "RBM, cross-fitted: union and heads (built-in)",
        score(corpus, said().uncorrected),
        difference,
    )
    line("RBM: union and heads", score(corpus, one_model()))
    plain = by(DiscriminativeRBM, heads=False, **ONE_MODEL)
    P = held_out(corpus, plain)
    line("RBM: union", score(corpus, P), errors(corpus, P, one_model()))
    alone = {}
    for part in (corpus.of(name) for name in NAMES):
        alone |= score(part, held_out(part, plain))
    line("RBM: alone", alone)
    logistic = partial(LogisticTagger, solver="newton")
    best(corpus, "logistic regression", logistic, (3e-5, 1e-4, 3e-4), heads=False)
    own = ("training_steps", "init_scale", "l2", "l2_tags")
    mlp = {name: value for name, value in ONE_MODEL.items() if name not in own}
    best(corpus, "MLP: union and heads", MLPTagger, (0.1, 0.3, 1.0), **mlp)


def questions(corpus):
    """Name -> what is observed (n, C), and the tags that are asked for (C,)."""
    groups, rng = shared_vocabulary().groups, np.random.default_rng(0)
    genre = np.array([groups[tag] == "genre" for tag in corpus.tags])
    nothing = np.full(corpus.Y.shape, np.nan, np.float32)
    found = {}
    for one, asked, given in (("mood", "genres", ~genre), ("genre", "moods", genre)):
        orders = rng.random(corpus.Y.shape) * np.where((corpus.Y == 1) & given, 1, np.nan)
        places = orders.argsort(axis=1).argsort(axis=1)  # the tags to observe first; NaN last
        for several, n in ((f"a {one}", 1), (f"three {one}s", 3)):
            chosen = (places < n) & ~np.isnan(orders) & (corpus.collection == "4q")[:, None]
            found[f"4Q: {several} → {asked}"] = np.where(chosen, 1, nothing), ~given
    observed = nothing.copy()
    for number, row in enumerate(np.flatnonzero(corpus.collection == "emotify")):
        observed[row, corpus.tags.index(EMOTIFY_GENRES[number // 100])] = 1
    found["Emotify: its genre → emotions"] = observed, ~genre
    usual = np.nanmean(corpus.heads, axis=0)
    for collection, title in (("4q", "4Q"), ("emotify", "Emotify")):
        observed, rows = nothing.copy(), np.flatnonzero(corpus.collection == collection)
        unasked = np.isnan(corpus.Y[rows]).all(axis=0) & ~np.isnan(usual)
        likely = np.where(unasked & (corpus.heads[rows] > 0.3), corpus.heads[rows] / usual, 0)
        has = likely.max(axis=1) > 0
        observed[rows[has], likely.argmax(axis=1)[has]] = 1
        found[f"{title}: a tag of the heads → all"] = observed, np.ones_like(genre)
    return found


def completion():
    """Tags of one vocabulary are observed, those of another are asked for."""
    corpus = union()
    nothing = np.full(corpus.Y.shape, np.nan, np.float32)
    asked = questions(corpus)
    counts = by(CooccurrenceTagger, observes=True)
    learners = {
        "RBM, cross-fitted (built-in)": (None, True),
        "RBM, one model": (by(DiscriminativeRBM, observes=True, **ONE_MODEL), True),
        "naive Bayes": (by(NaiveBayesTagger, observes=True, l2=1e-4), True),
        "naive Bayes, half": (
            by(NaiveBayesTagger, observes=True, l2=1e-4, evidence_weight=0.5),
            True,
        ),
        "RBM, no sound (built-in)": (by(DiscriminativeRBM, observes=True, **TOGETHER), False),
        "co-occurrence, no sound": (counts, False),
    }
    print("\n| observed | model | AUC over clips | within a clip |\n|---|---|---|---|")
    for name, (learn, hears) in learners.items():
        clips = corpus if hears else replace(corpus, X=np.zeros((len(nothing), 1), np.float32))
        P = {question: nothing.copy() for question in (None, *asked)}
        built_in = ((rows, model.complete) for rows, _, model in fitted())
        for rows, answers in learnt_from_others(clips, learn) if learn else built_in:
            for question, found in P.items():
                observed = nothing if question is None else asked[question][0]
                found[rows] = answers(clips.X[rows], observed[rows])
        for question, (observed, tags) in asked.items():
            rows = ~np.isnan(observed).all(axis=1)
            Y = np.where(np.isnan(observed), corpus.Y, np.nan)[rows]
            tags = tags & ~np.isnan(Y).all(axis=0)
            cells = [
                " → ".join(
                    f"{np.nanmean(metric(Y[:, tags], P[which][rows][:, tags]).values):.3f}"
                    for which in (None, question)
                )
                for metric in (auc_per_tag, auc_per_clip)
            ]
            print(f"| {question} | {name} | " + " | ".join(cells) + " |", flush=True)


def calibration():
    """Expected calibration errors, of all tags together and of single tags."""
    corpus = union()
    print("\n| collection | before | after | of single tags, before | after |\n" + "|---" * 5 + "|")
    for name in NAMES:
        rows = corpus.collection == name
        asked = ~np.isnan(corpus.Y[rows]).all(axis=0)
        pairs = [(corpus.Y[rows][:, asked], P[rows][:, asked]) for P in said()[:2]]
        found = [reliability(*pair).error for pair in pairs]
        found += [np.nanmean(calibration_error_per_tag(*pair).values) for pair in pairs]
        print(f"| {name} | " + " | ".join(f"{error:.3f}" for error in found) + " |")


def writes_from(corpus, model):
    """From which probability on a model of a corpus would write a tag (C,), and its curves."""
    curves = make_curves(corpus.Y, model.held_out_, making.artists(corpus))
    found = [threshold_for(curve, USUAL_PRECISION) for curve in curves]
    least = np.array([np.nan if one is None else one for one in found], np.float32)
    return least, curves


def written(Y, P, least):
    """How many clips would get a tag, how many of them are right, and how many have it: (C, 3)."""
    chosen = (least <= P) & ~np.isnan(Y)
    return np.stack([one.sum(axis=0) for one in (chosen, chosen & (Y == 1), Y == 1)], axis=1)


def precision():
    """Whether what is written of new artists is right as often as was promised."""
    corpus, known = union(), said()
    groups = np.array([shared_vocabulary().groups[tag] for tag in corpus.tags])
    people = ~np.isnan(corpus.Y).all(axis=0)
    models = [rows[0] for rows, _ in held_out_splits(corpus)]  # a clip of each
    confirmed = np.where(known.confirmed, known.least, np.nan)
    print("\n| group | tags | of | written | right | found |\n|---|---|---|---|---|---|")
    for group, kind, least in (
        ("genre", "genre", known.least),
        ("mood", "mood", known.least),
        ("mood, confirmed by two collections", "mood", confirmed),
    ):
        tags = people & (groups == kind)
        n, right, there = written(corpus.Y, known.corrected, least)[tags].sum(axis=0)
        n_tags = np.isfinite(least[models][:, tags]).sum() / len(models)
        print(
            f"| {group} | {n_tags:.1f} | {tags.sum()} | {n:.0f} | "
            f"{right / max(n, 1):.0%} | {right / there:.0%} |"
        )
    print("\n| mood | collection | have it | AUC | written | right | of the first 20 |")
    print("|---" * 7 + "|")
    asked = np.array([~np.isnan(corpus.rows(corpus.collection == c).Y).all(axis=0) for c in NAMES])
    some = written(corpus.Y, known.corrected, known.least)[:, 0] > 0
    for j in np.flatnonzero((groups == "mood") & (some | (asked.sum(axis=0) > 1))):
        for name, there in zip(NAMES, asked[:, j], strict=True):
            if there:
                own = corpus.collection == name
                columns = [a[own][:, [j]] for a in (corpus.Y, known.corrected, known.least)]
                n, right, has = written(*columns)[0]
                top = columns[0][np.argsort(-columns[1][:, 0])[:20]].mean()
                print(
                    f"| {corpus.tags[j]} | {name} | {has} of {own.sum()} "
                    f"| {mean_auc(*columns[:2]):.3f} | {n} | {right} | {top:.0%} |",
                    flush=True,
                )


def quadrants():
    """What people say about 4Q's clips that would get a mood."""
    corpus, features = listening_corpus(NAMES, n_directions=0).split()
    own = corpus.collection == "4q"
    tagger = Tagger(builtin_model())
    curves = curves_from_arrays(tagger.arrays)
    P = tagger.probabilities(corpus.X[own])
    people = features.Y[own][:, [features.tags.index(name) for name in ("energy", "valence")]]
    print("\n| mood | from | held-out clips | right | 4Q's clips | energetic | positive |")
    print("|---" * 7 + "|")
    print(
        f"| all | | | | {own.sum()} | " + " | ".join(f"{x:.0%}" for x in people.mean(axis=0)) + " |"
    )
    for tag, curve, p in zip(tagger.tags, curves, P.T, strict=True):
        least = threshold_for(curve, USUAL_PRECISION)
        rank = None if least is None else curve.at(least)
        if builtin_kinds()[tag] == "mood" and rank is not None:
            said_so = " | ".join(f"{x:.0%}" for x in people[p >= least].mean(axis=0))
            counts = f"{curve.chosen[rank]} | {curve.right[rank]} | {(p >= least).sum()}"
            print(f"| {tag} | {least:.2f} | {counts} | {said_so} |")


def strangers():
    """Tags that two collections share, judged by the collection that was never heard."""
    corpus, known = union(), said()
    print("\n| judged by | tag | never heard: AUC | heard: AUC | ± | written | right |")
    print("|---" * 7 + "|")
    for name in NAMES:
        here = corpus.collection == name
        there = ~np.isnan(corpus.rows(~here).targets()).all(axis=0)
        some = corpus.with_tags(there)
        new, others = some.rows(here), some.rows(~here)
        shared = ~np.isnan(new.Y).all(axis=0) & ~np.isnan(others.Y).all(axis=0)
        model, tags = making.fit(others), np.flatnonzero(shared)
        P = model.predict_proba(new.X)
        Y, both = new.Y, (P, known.corrected[here][:, there])
        strange, heard = (auc_per_tag(Y[:, tags], Q[:, tags]).values for Q in both)
        counts = written(new.Y, P, writes_from(others, model)[0])[tags]
        positives, negatives = (Y[:, tags] == 1).sum(axis=0), (Y[:, tags] == 0).sum(axis=0)
        error = auc_error(heard, positives[None], negatives[None])
        rows = zip([some.tags[j] for j in tags], strange, heard, error, counts, strict=True)
        for tag, a, b, e, (n, right, _) in rows:
            share = f"{right / n:.0%}" if n else ""
            print(f"| {name} | {tag} | {a:.3f} | {b:.3f} | {e:.3f} | {n:.0f} | {share} |")
        groups = np.array([shared_vocabulary().groups[some.tags[j]] for j in tags])
        for group in np.unique(groups):
            of = groups == group
            n, right, _ = counts[of].sum(axis=0)
            means = f"{strange[of].mean():.3f} | {heard[of].mean():.3f}"
            share = f"{right / max(n, 1):.0%}"
            print(f"| {name} | all: {group} | {means} | | {n:.0f} | {share} |", flush=True)


def volume():
    """Features with more or less of the volume taken out, and clips that are softer."""
    corpus = union()
    emotify = np.flatnonzero(corpus.collection == "emotify")
    files = [Path(path) for path in load("emotify").audio]
    softer = hear_louder(files, -12.0)
    heading = [f"{c}: {g}s" for c, g in QUESTIONS]
    print("\n| directions | " + " | ".join(heading) + " | emotify, softer | tags kept |")
    print("|---" * 7 + "|")
    for k in (0, 2, 10):
        corpus = both(k)[0]
        X = corpus.X.copy()
        X[emotify] = softer if corpus.volume is None else corpus.volume.taken_out(softer)
        P, Q = np.empty_like(corpus.Y), np.empty_like(corpus.Y)
        for rows, answers in learnt_from_others(corpus, by(DiscriminativeRBM, **ONE_MODEL)):
            nothing = np.full((len(rows), len(corpus.tags)), np.nan, np.float32)
            P[rows], Q[rows] = (answers(features[rows], nothing) for features in (corpus.X, X))
        least = matching_thresholds(corpus.judged(), P)
        before, after = P[emotify] >= least, Q[emotify] >= least
        found, soft = score(corpus, P), score(corpus, Q)["emotify", "mood"]
        kept = (before & after).sum() / before.sum()
        line(str(k), found | {"softer": soft, "kept": kept}, order=(*QUESTIONS, "softer", "kept"))


def robustness():
    """The model of the package, asked about other files of the same sound."""
    model = builtin_model()
    print("\n| file | median | 99 % | tags kept |\n|---|---|---|---|")
    for one in measure_robustness(Tagger(model).probabilities, model.thresholds):
        cells = f"{one['median']:.4f} | {one['most']:.3f} | {one['kept']:.0%}"
        print(f"| {one['file']} | {cells} |", flush=True)


def ridge(alpha, corpus, targets):
    """What ridge regression from the features learns."""
    mean, deviation = corpus.X.mean(axis=0), corpus.X.std(axis=0)
    model = Ridge(alpha).fit((corpus.X - mean) / deviation, targets)
    return lambda X: model.predict((X - mean) / deviation)


def features():
    """Audio features, beside ridge regression."""
    corpus = both()[1]
    at = {name: np.flatnonzero(corpus.collection == name) for name in NAMES}
    asked = ~np.isnan(corpus.Y).all(axis=0)
    every = held_out_splits(corpus)
    by_artist = [(rows, np.intersect1d(others, at["4q"])) for rows, others in every]

    def values(learn, splits):
        """(n, 7) of clips that were not learnt from; else NaN."""
        P = np.full(corpus.Y.shape, np.nan)
        for rows, others in splits:
            P[rows] = learn(corpus.rows(others))(corpus.X[rows])
        return P

    def agreement(P, rows):
        pairs = zip(corpus.heads[rows].T, P[rows].T, strict=True)
        return np.array([np.corrcoef(*pair)[0, 1] for pair in pairs])

    def quadrants(P):
        return auc_per_tag(corpus.Y[at["4q"]], P[at["4q"]]).values

    def best_ridge(splits, people, metric):
        trials = []
        for alpha in (30, 100, 300):

            def learn(known, alpha=alpha):
                return ridge(alpha, known, known.Y if people else known.heads)

            trials.append(metric(values(learn, splits)))
        return np.max(trials, axis=0)

    P, across = (
        values(making.fit_features, splits) for splits in (every, [(at["gtzan"], at["4q"])])
    )
    columns = {}
    for name, rows in at.items():
        rival = best_ridge(every, False, partial(agreement, rows=rows))
        columns[name] = agreement(P, rows), rival
    rival = best_ridge([(at["gtzan"], at["4q"])], False, partial(agreement, rows=at["gtzan"]))
    columns["4Q → GTZAN"] = agreement(across, at["gtzan"]), rival
    names = [f"{name} | ridge" for name in columns]
    print(
        "\n| r with VibeNet | " + " | ".join(names) + " |\n" + "|---" * (1 + 2 * len(names)) + "|"
    )
    for j, tag in enumerate(corpus.tags):
        cells = [f"{own[j]:.3f} | {rival[j]:.3f}" for own, rival in columns.values()]
        print(f"| {tag} | " + " | ".join(cells) + " |")
    corpus = corpus.with_tags(asked)
    rival = best_ridge([one for one in by_artist if len(one[1])], True, quadrants)
    vibenet = quadrants(corpus.heads)
    print("\n| quadrants: AUC | built-in | ridge | VibeNet |\n|---|---|---|---|")
    for row in zip(corpus.tags, quadrants(P[:, asked]), rival, vibenet, strict=True):
        print("| {} | {:.3f} | {:.3f} | {:.3f} |".format(*row), flush=True)
    show_trust()


def show_trust():
    """Valence by people's quadrants alone, and with VibeNet: for 4Q and for Emotify's listeners."""
    tags, corpus = both()
    splits, place = held_out_splits(corpus), corpus.tags.index("valence")
    moods = {"joyful": 1, "sad": -1, "tense": -1}
    print(
        "\n| valence: AUC, quadrants count | 4Q: positive | Emotify: "
        + " | ".join(f"{'' if sign > 0 else 'not '}{mood}" for mood, sign in moods.items())
        + " |"
    )
    print("|---" * (2 + len(moods)) + "|")
    usual = making.TRUST
    for making.TRUST in (usual, 1.0):
        P = np.empty(len(corpus.X))
        for rows, others in splits:
            P[rows] = making.fit_features(corpus.rows(others))(corpus.X[rows])[:, place]
        found = [auc_per_tag(corpus.Y[:, [place]], P[:, None]).values[0]]
        here = corpus.collection == "emotify"
        for mood, sign in moods.items():
            own = tags.Y[here][:, [tags.tags.index(mood)]]
            found.append(auc_per_tag(own, sign * P[here][:, None]).values[0])
        print(f"| {making.TRUST} | " + " | ".join(f"{auc:.3f}" for auc in found) + " |", flush=True)
    making.TRUST = usual


def not_music():
    """Sounds that are no music, and music."""
    model = Tagger(builtin_model())
    thresholds = builtin_model().thresholds
    genres = np.array([builtin_kinds()[tag] == "genre" for tag in model.tags])

    def tagged(X):
        """How many get a genre, and how many any tag."""
        P = model.probabilities(X) >= thresholds
        return P[:, genres].any(axis=1).sum(), P.any(axis=1).sum()

    print("\n| sound | of | with a genre | with any tag |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        files = make_examples("test", Path(folder))
        X, kinds = hear(files), np.array([file.name.split("-")[0] for file in files])
        others = hear(make_examples("learn", Path(folder) / "learn"))
    for kind in np.unique(kinds):
        print(
            f"| {kind} | {(kinds == kind).sum()} | {{}} | {{}} |".format(*tagged(X[kinds == kind]))
        )
    print(f"| all | {len(X)} | {{}} | {{}} |".format(*tagged(X)))
    music = hear([Path(path) for path in load("emotify").audio])
    print(f"| Emotify | {len(music)} | {{}} | {{}} |".format(*tagged(music)))
    corpus = union()
    assert corpus.volume is not None
    others, found = corpus.volume.taken_out(others), np.empty(len(corpus.X), bool)
    for rows, known in held_out_splits(corpus):
        found[rows] = making.fit_music(corpus.X[known], others)(corpus.X[rows])[:, 0] >= 0.5
    print("\n| music, learnt from other artists | of | called music |\n|---|---|---|")
    for name in NAMES:
        own = corpus.collection == name
        print(f"| {name} | {own.sum()} | {found[own].sum()} |", flush=True)


PARTS = {
    part.__name__: part
    for part in (
        *(ranking, completion, calibration, precision, quadrants, strangers, volume),
        *(robustness, features, not_music),
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    warnings.simplefilter("ignore")
    for name in parser.parse_args().parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
