"""Tags from a track's features and observed tags: one `Tagger` with several layers.

1. The library's own model: a file of ``DiscriminativeRBM`` or ``LogisticTagger`` (safetensors)
   with a few more arrays: held-out probabilities of the tracks learnt from, and which tags people
   give together.
2. The built-in model, whose file the own model contains. A tag that both have counts as own: its
   log-odds are the mean of the two, with the weights that training chose. If training found it
   better, the built-in model's log-odds are also inputs of the own model.
3. What tags gained from answers since the model was trained: b + wᵀv in log-odds, where v is how
   the track sounds (`store.tracks`). A new word has no other log-odds.
4. What people said about a track: its observed tags, which all layers use.

The built-in model also recognises what does not sound like music: silence, noise and speech. Such a
track gets no genre and no built-in tags, unless people gave it a tag.

All of it is NumPy: starting JAX would take longer than tagging some files. The built-in model is an
ordinary model file, with a report of its tags: groups, other words for them, scores and thresholds.
A library indexed with the right extractor gets it as its first model.

A model file says how often a tag is right above each probability, as a curve over held-out tracks
(`learning.fitting`), or for built-in tags over the clips that they were learnt from. For a
precision of r, `threshold_for` goes down the ranks of the curve, from the first with enough tracks,
while the lower bound of the precision is at least r. The first failure ends it, so that looking at
many ranks costs nothing (fixed-sequence testing). The precision has a beta distribution, and falls
below the bound with a probability of `DOUBT`. The bound allows for two things:

- An artist's tracks are right or wrong together. So n tracks, n_g from each artist, count as n² / Σ
  n_g² (Kish), which is the number of artists if each has equally many.
- Of many tags, some pass by luck, and those are the ones that are written. So a tag's expected
  precision, the mean of its probabilities, counts as much as `PRIOR` tracks.

A probability of at least r is taken at its word, unless held-out tracks fell short of it: at r, or
at a lower probability above `MIN_NEARBY`, the median of that distribution is below the probability.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask, Places
from harmonium.data.tag_names import (
    KINDS,
    NO_TAG,
    builtin_tree,
    normalise_tag,
    words_that_are_not_tags,
)
from harmonium.errors import DataError, LibraryError, ModelFileError
from harmonium.estimators import model_files
from harmonium.files import read_toml
from harmonium.library.library import Library, Progress
from harmonium.library.search import unknown_tag
from harmonium.library.store.models import UNREACHABLE, Owner, Refinement, StoredModel
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.store.tracks import FULL, SoundVectors, current_space, update_sound_vectors

PARAMETERS = {"DiscriminativeRBM": "UWcd", "LogisticTagger": "Wd"}  # the classes of stored models
FEATURE = "feature"  # the group of audio features; people's tags of these names are moods
VALUES = "values."  # the prefix of the arrays of a logistic regression beside an RBM: its outputs
# follow the tags, and are audio features
MUSIC = "music."  # the prefix of the one that tells music from other sounds
SPOKEN = ("comedy", "comedy/spoken", "spoken word")  # genres that may not be music
MIN_PROBABILITY = 1e-4  # distance from 0 and 1 at which probabilities are clipped for log-odds
SOUND_DEVIATION = 1.0  # of wᵀv before any answer; chosen on 4Q and GTZAN, as the next one is
BIAS_DEVIATION = 1.0  # of b before any answer (`benchmarks/quick_learning.py --choose`)
BUILTIN_FILE = Path(__file__).with_name("builtin") / "model.safetensors"
WORDS_FILE = BUILTIN_FILE.with_name("words.safetensors")  # under its own licence
GAIN_STEPS, NO_GAIN = 16, -128  # gains of log-odds in a byte: steps of 1/16, and none known
BUILTIN = "shipped"  # what the built-in model is called in libraries, and its report in the file
PART, PLACES = "shipped.model", "shipped.places"
"""The arrays of a library's own model that hold the built-in one's file, and where in the
vocabulary its tags are."""
USUAL_RATE = 0.1  # of tags whose rate is unknown
USUAL_PRECISION = 0.8  # the precision of what is written
DOUBT = 0.2  # the share of tags about which a bound may be wrong
MIN_NEARBY = 0.5  # the share that must be right of the tracks near a threshold
PRIOR = 10.0  # the number of held-out tracks that count as much as the probabilities themselves
MIN_EFFECTIVE = 8.0  # tracks of different artists that a threshold needs above it
_PAGE = 8192


def current_model(library: Library) -> StoredModel:
    """The model in use, or a LibraryError that says how to get one."""
    model = library.models.current()
    if model is None:
        raise no_model()
    return model


def no_model() -> LibraryError:
    """The error for a library without a model."""
    return LibraryError("No model yet; run `harmonium train`.")


def log_odds(P: Floats) -> Floats:
    """log p / (1 - p), with p kept away from 0 and 1."""
    return model_files.log_odds(P, MIN_PROBABILITY).astype(np.float32)


def mix(own: Floats, prior: Floats, weight: Floats | np.float32) -> Floats:
    """σ(weight · own log-odds + (1 - weight) · the prior's log-odds)."""
    z = weight * log_odds(own) + (1 - weight) * log_odds(prior)
    return (1 / (1 + np.exp(-z))).astype(np.float32)


def musical_tags(tags: Sequence[str], is_own: Mask, features: Mapping[str, int]) -> Mask:
    """(n_tags,) which tags only music has: genres, and built-in tags except audio features."""
    kinds = builtin_kinds()
    is_genre = np.array([kinds.get(tag) == "genre" for tag in tags])
    return (is_genre | ~is_own) & ~np.isin(tags, [*SPOKEN, *features])


class Tagger:
    """A stored model at work, with what its tags learnt from answers in a library, if given."""

    def __init__(self, stored: StoredModel, library: Library | None = None) -> None:
        trained = stored.as_trained()
        self._renamed = {} if library is None else library.renamed_tags()
        self._gains = self._space = None
        if library is not None and stored.refinements:
            space = current_space(library)
            if space is not None and library.settings.get(EXTRACTOR) == stored.extractor:
                self._space = space
                self._gains = Gains.of(stored.refinements, SoundVectors.of(library))
        shown = trained if self._gains is None else stored
        self.id, self.extractor, self.n_own = stored.id, stored.extractor, trained.n_own
        self.tags, self.features = tuple(shown.vocabulary), shown.features
        self.thresholds, self.learnt, self.is_own = shown.thresholds, shown.learnt, shown.is_own
        self._n_trained = len(trained.vocabulary)
        self._own = _ModelFile(stored.bytes)
        self._builtin: _ModelFile | None = None
        self.arrays = self._own.arrays  # the model file's
        if PART in self.arrays:
            data = model_of_file(self.arrays[PART].tobytes(), stored.extractor).bytes
            self._builtin, self._at = _ModelFile(data), self.arrays[PLACES]
        self.n_features = (self._builtin or self._own).n_features

    @cached_property
    def _musical(self) -> Mask:
        return musical_tags(self.tags, self.is_own, self.features)

    def is_music(self, p: Floats) -> bool:
        """Whether a track's probabilities (n_tags,) say music; otherwise music's tags are 0."""
        return not self._musical.any() or bool(np.median(p[self._musical]) > 0)

    @property
    def held_out(self) -> tuple[Ids, Floats]:
        """Numbers of the training tracks (n,), and their held-out probabilities (n, n_tags)."""
        probabilities = self.arrays["held_out.probabilities"].astype(np.float32)
        return self.arrays["held_out.ids"], probabilities

    @cached_property
    def rates(self) -> Doubles:
        """(n_tags,) the share of training tracks that have the tag."""
        found = np.full(len(self.tags), USUAL_RATE)
        about = (self._builtin or self._own).about.get(BUILTIN)
        if about is not None:
            places = np.arange(self._n_trained) if self._builtin is None else self._at
            found[places] = [tag["rate"] for tag in about["tags"]]
        own = self.arrays.get("rates", found[:0])
        found[: len(own)] = own
        return found

    def telling(self, p: Floats) -> Doubles:
        """p log(p / r) + (1 - p) log((1 - p) / (1 - r)): what probabilities (n_tags,) tell.

        It is small for a tag that most tracks have, whose rate r is high, and below 0 if a tag is
        less likely than usual. Lists of tags are in this order.
        """
        new = np.full(len(p) - len(self.rates), USUAL_RATE)  # words learnt from other features
        r = np.clip(np.append(self.rates, new), 1e-3, 1 - 1e-3)
        p = np.clip(p.astype(np.float64), 1e-6, 1 - 1e-6)
        return np.sign(p - r) * (p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r)))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other words → the built-in tags that they mean."""
        found = (self._builtin or self._own).about.get(BUILTIN, {}).get("aliases", {})
        words = {word: self._renamed.get(tag, tag) for word, tag in found.items()} | self._renamed
        return {word: tag for word, tag in words.items() if word not in self.tags}

    @cached_property
    def curves(self) -> "list[PrecisionCurve]":
        """The precision curve of each tag that the model was trained with, or none."""
        return curves_from_arrays(self.arrays)

    def precision(self, place: int, probability: float) -> float | None:
        """The share of held-out tracks of at least this probability that have the tag.

        None without such held-out tracks, or if the tag has learnt from answers since.
        """
        changed = () if self._gains is None else (one.place for one in self._gains.refinements)
        if place >= len(self.curves) or place in changed:
            return None
        curve = self.curves[place]
        rank = curve.at(probability)
        return None if rank is None else float(curve.precision[rank])

    def place(self, tag: str) -> int:
        """The place of a tag, in any spelling, in the vocabulary; else a DataError."""
        name = normalise_tag(tag)
        name = name if name in self.tags else self.aliases.get(name, name)
        if name not in self.tags:
            problem = f"The model has no tag {name!r}; it knows {len(self.tags):,} tags."
            raise unknown_tag(name, self.tags, problem)
        return self.tags.index(name)

    def probabilities(
        self,
        X: Floats,
        observed: Floats | None = None,
        *,
        music_only: bool = True,
        lowest: bool = False,
    ) -> Floats:
        """p(y_j = 1 | x, the observed tags), (n, n_tags), from features (n, n_features).

        ``observed`` is (n, n_tags): 1 has the tag, 0 does not, NaN to be inferred. With
        ``music_only``, music's tags are 0 if it does not sound like music. With ``lowest``, a tag
        that learnt from answers has the lower of its probabilities before and after.
        """
        X = np.asarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(
                f"'X' must have {self.n_features} features, got the shape "
                f"{X.shape}. The model was trained on features of {self.extractor!r}."
            )
        if observed is None:
            observed = np.full((len(X), len(self.tags)), np.nan, np.float32)
        if self._gains is None or self._space is None:
            P = self._as_trained(X, observed)
        else:
            P = np.full(observed.shape, np.nan, np.float32)
            P[:, : self._n_trained] = self._as_trained(X, observed[:, : self._n_trained])
            found = self._gains.added(P[:, self._gains.places], self._space.vectors(X))
            places = [one.place for one in self._gains.refinements]
            P[:, places] = np.fmin(P[:, places], found) if lowest else found
            P = np.where(np.isnan(observed), P, observed)
        if music_only:
            not_music = ~(self._builtin or self._own).is_music(X) & ~(observed == 1).any(axis=1)
            P[np.ix_(not_music, self._musical)] = 0
        return P

    def _as_trained(self, X: Floats, observed: Floats) -> Floats:
        if self._builtin is None:
            return self._own.probabilities(X, observed)
        others = self._builtin.probabilities(X, observed[:, self._at])
        n = self.n_own
        more = self._own.n_features > X.shape[1]
        inputs = np.concatenate([X, log_odds(others)], axis=1) if more else X
        P = np.empty(observed.shape, np.float32)
        P[:, self._at] = others
        own = self._own.probabilities(inputs, observed[:, :n])
        shared = np.flatnonzero(self._at < n)
        at, weight = self._at[shared], self.arrays["own_weight"].astype(np.float32)
        mixed = mix(own[:, at], others[:, shared], weight[at])
        P[:, :n] = own
        P[:, at] = np.where(np.isnan(observed[:, at]), mixed, observed[:, at])
        return P

    def without_sound(self, observed: Floats) -> Floats:
        """The probabilities for a track of which only some tags are known, (n_tags,); NaN unknown.

        By how the library's people combine tags, if the model learnt from several people; else by
        `Words`. If that cannot tell, log-odds change as the model's do for average sound.
        """
        P, known = self._together(observed), words()
        if known is None:
            return P
        places = {self.aliases.get(tag, tag): i for i, tag in enumerate(known.tags)}
        first = self.n_own if "together.U" in self.arrays else 0
        here = [j for j, tag in enumerate(self.tags) if j >= first and tag in places]
        there = [places[self.tags[j]] for j in here]
        y, others = np.full((1, len(known.tags)), np.nan), observed.copy()
        y[0, there], others[here] = observed[here], np.nan
        usual = log_odds(self._together(np.full_like(observed, np.nan)))
        all_add, others_add = (log_odds(p) - usual for p in (P, self._together(others)))
        z, alone = known(y)[0, there], model_files.log_odds(known.rates)[there]
        z = np.where(np.isnan(z), alone + all_add[here], z + others_add[here])
        P[here] = np.where(np.isnan(observed[here]), model_files.sigmoid(z), observed[here])
        P[list(self.features.values())] = 0  # these say something about tags, but are not tags
        return P

    def _together(self, observed: Floats) -> Floats:
        """The same without `Words`; with one person, own tags as for a track of average sound."""
        P = np.zeros(len(self.tags), np.float32)
        known, n = observed[: self._n_trained], self.n_own
        if self._builtin is None:
            own, n = self._own.together(known), self._n_trained
        else:
            P[self._at] = self._builtin.together(known[self._at])
            own = self._own.together(known[:n])
        if own is None:
            model = self._builtin or self._own
            typical: Any = model.scaling.inverse(np.zeros((1, model.n_features), np.float32))
            own = self._as_trained(typical, known[None])[0, :n]
        P[:n] = own
        return P

    def weights(self) -> list[tuple[Places, Doubles, Doubles]]:
        """Places of tags (n,), U (n_hidden, n) and c (n_hidden,) of each RBM in the model."""
        parts = [(self._own, np.arange(self._own.n_tags))]
        if self._builtin is not None:
            parts.append((self._builtin, np.asarray(self._at, np.intp)[: self._builtin.n_tags]))
        found = []
        for one, at in parts:
            if "params.U" in one.arrays:
                U, c = (one.arrays[f"params.{k}"].astype(np.float64) for k in "Uc")
                found.append((at, U.reshape(-1, U.shape[-1]), c.ravel()))
        return found


class _ModelFile:
    """One model file at work."""

    def __init__(self, data: bytes) -> None:
        self.arrays, self.about = unpack(data)
        self.scaling = model_files.stored_scaling(self.arrays, self.about)
        self.n_features = len(self.scaling.mean)
        self.n_tags = self.arrays["params.d"].shape[-1]

    def probabilities(self, X: Floats, observed: Floats) -> Floats:
        x, given = self.scaling(X).astype(np.float64), observed
        observed = given[:, : self.n_tags]
        P = self._by_rbm(x, observed) if "params.U" in self.arrays else self._linear(x, "params.")
        correction = model_files.stored_recalibration(self.arrays, observed.shape[1])
        P = P if correction is None else correction(P, model_files.observed_fraction(observed))
        if f"{VALUES}W" in self.arrays:
            P = np.concatenate([P, self._linear(x, VALUES)], axis=1)
        return np.where(np.isnan(given), P, given)

    def is_music(self, X: Floats) -> Mask:
        """(n,) which sounds are music; all of them if the model cannot tell."""
        if f"{MUSIC}W" not in self.arrays:
            return np.ones(len(X), bool)
        return self._linear(self.scaling(X).astype(np.float64), MUSIC)[:, 0] >= 0.5

    def together(self, observed: Floats) -> Floats | None:
        """The probabilities from what people give together, (n_tags,); None if that is unknown."""
        if "together.U" not in self.arrays:
            return None
        rbm = TagRBM(*(self.arrays[f"together.{k}"].astype(np.float64) for k in "Ucd"))
        y = observed[: self.n_tags].astype(np.float64)
        if "together.steps" in self.arrays:  # trained with this number of steps
            steps = int(self.arrays["together.steps"][0])
            found = mean_field(rbm, np.zeros((1, 1)), y[None], steps)[0]
        else:
            found = tag_probabilities(rbm, y)
        values = np.nan_to_num(observed[self.n_tags :])  # they depend on no tag
        return np.concatenate([found, values]).astype(np.float32)

    def _by_rbm(self, x: Doubles, observed: Floats) -> Floats:
        y = observed.astype(np.float64)
        steps = model_files.chosen_inference(self.about["parameters"])[1]
        U, W, c, d = (self.arrays[f"params.{k}"].astype(np.float64) for k in "UWcd")
        if d.ndim == 1:  # one member
            U, W, c, d = U[None], W[None], c[None], d[None]
        members = [
            mean_field(TagRBM(U[k], c[k], d[k]), x @ W[k].T, y, steps).astype(np.float32)
            for k in range(len(d))
        ]
        return model_files.mean_probabilities(members)

    def _linear(self, x: Doubles, params: str) -> Floats:
        """What a logistic regression says about scaled features, (n, n_tags)."""
        W, d = (self.arrays[params + name].astype(np.float64) for name in "Wd")
        return model_files.sigmoid(x @ W.T + d).astype(np.float32)


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without loading an estimator."""
    way_out = "`harmonium train` makes a new one."
    arrays, about = model_files.from_bytes(data, name="The stored model", way_out=way_out)
    if about.get("class") not in PARAMETERS:
        kind = about.get("class")
        raise ModelFileError(f"The stored model is a {kind}, which is unknown. {way_out}")
    try:
        names = PARAMETERS[about["class"]]
        params = {key: model_files.stored_parameter(arrays, f"params.{key}") for key in names}
        *members, n_tags = params["d"].shape
        n_features = len(model_files.stored_scaling(arrays, about).mean)
        sizes = {"C": n_tags, "D": n_features, "H": np.shape(params.get("c", (0,)))[-1]}
        shapes = {"d": "C", "c": "H", "U": "HC", "W": "HD" if "c" in params else "CD"}
        for key, array in params.items():
            if array.shape != (*members, *(sizes[axis] for axis in shapes[key])):
                raise ValueError(f"{key} has the shape {array.shape}")
        if "c" in params:
            method, steps = model_files.chosen_inference(about["parameters"])
            if method != "mean_field" or type(steps) is not int or steps < 1:
                raise ValueError(f"it predicts by {steps!r} steps of {method}")
        model_files.stored_recalibration(arrays, n_tags)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The stored model is damaged ({error}). {way_out}") from None
    return arrays, about


def keep_compiled() -> None:
    """Cache the programs that JAX compiles in the user's folder, so that each is compiled once."""
    # Call it before JAX is imported; environment variables take precedence.
    from harmonium.files import user_cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


class Gains(NamedTuple):
    """What some tags gain, as a function of the sound."""

    refinements: Sequence[Refinement]
    W: Floats  # (N_AXES, n_tags)
    bias: Floats  # (n_tags,)

    @classmethod
    def of(cls, refinements: Sequence[Refinement], sounds: SoundVectors) -> "Gains":
        """The gains from refinements; a track without a vector teaches nothing."""
        columns = []
        for one in refinements:
            there = sounds.rows(one.ids)
            columns.append(sounds.at(one.ids[there]).T @ one.weights[there] * SOUND_DEVIATION**2)
        W = np.stack(columns, axis=1).astype(np.float32)
        return cls(refinements, W, np.array([one.bias for one in refinements], np.float32))

    @property
    def places(self) -> list[int]:
        """The tags' places in the model's vocabulary; 0 if the model has no say."""
        return [one.place if one.has_model else 0 for one in self.refinements]

    def added(self, P: Floats, vectors: NDArray[np.int8]) -> Floats:
        """The tags' probabilities (n, n_tags), from the model's at `places`."""
        gained = np.empty((len(vectors), len(self.bias)), np.float32)
        for start in range(0, len(vectors), _PAGE):  # all as floats would not fit the cache
            some = vectors[start : start + _PAGE].astype(np.float32)
            gained[start : start + _PAGE] = some @ (self.W / np.float32(FULL))
        has_model = np.array([one.has_model for one in self.refinements])
        odds = np.where(has_model, log_odds(P), np.float32(0)) + (gained + self.bias)
        return (1 / (1 + np.exp(-odds))).astype(np.float32)


def refined_columns(
    library: Library, model: StoredModel, refinements: Sequence[Refinement], sounds: SoundVectors
) -> dict[int, tuple[Ids, Floats]]:
    """Place → the tracks that the model has tagged, (n,), and their probabilities, (n,)."""
    if not refinements:
        return {}
    gains = Gains.of(refinements, sounds)
    ids, P = library.predictions.columns(model.id, gains.places, refined=False)
    there = sounds.rows(ids)
    found = gains.added(P[there], sounds.vectors[np.searchsorted(sounds.ids, ids[there])])
    return {one.place: (ids[there], found[:, i]) for i, one in enumerate(refinements)}


def tag_library(
    library: Library,
    model: StoredModel | None = None,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> int:
    """Store the model's predictions for all present tracks not tagged yet; returns how many.

    Each block of tracks is stored when done, so that an interrupted run continues from there.
    With ``again``, tracks that it has tagged already are tagged again.
    """
    model = model or current_model(library)
    tagger, done, new = Tagger(model), 0, library.tracks.ids()
    if not again:
        new = np.setdiff1d(new, library.predictions.columns(model.id, [0], refined=False)[0])
    for block in np.split(new, np.flatnonzero(np.diff(new // _PAGE)) + 1):
        ids, X = library.tracks.features(block, extractor=model.extractor)
        if len(ids):
            library.predictions.put(model.id, ids, tagger.probabilities(X))
            done += len(ids)
            if progress:
                progress(done, len(new))
    if done and (model := library.models.get(model.id, whole=False)).refinements:
        update_sound_vectors(library)
        columns = refined_columns(library, model, model.refinements, SoundVectors.of(library))
        library.refinements.put_columns(model.id, columns)
    return done


class TagRBM(NamedTuple):
    """An RBM over tags: p(y, h) ∝ exp(hᵀUy + dᵀy + cᵀh)."""

    U: Doubles  # (n, C)
    c: Doubles  # (n,)
    d: Doubles  # (C,)


def mean_field(rbm: TagRBM, drive: Doubles, y: Doubles, steps: int) -> Doubles:
    """p(y_j = 1 | the known tags) of many tracks, (n, C), after ``steps`` mean-field steps.

    h ← σ(c + drive + U y), y ← σ(d + Uᵀh), from y = 0 on. ``drive`` (n, n_hidden) is what the sound
    adds to c; ``y`` (n, C) has NaN for unknown tags.
    """
    unknown = np.isnan(y)
    fixed = rbm.c + drive + np.where(unknown, 0, y) @ rbm.U.T
    tags = np.zeros_like(unknown, rbm.d.dtype)
    for _ in range(steps):
        tags = model_files.sigmoid(
            rbm.d + model_files.sigmoid(fixed + (tags * unknown) @ rbm.U.T) @ rbm.U
        )
    return np.where(unknown, tags, y)


def tag_probabilities(
    rbm: TagRBM, y: Doubles, steps: int = 20, damping: float = 0.5, tolerance: float = 1e-3
) -> Doubles:
    """p(y_j = 1 | the known tags) by belief propagation, (C,).

    ``y`` is (C,) with NaN for unknown tags; known ones come back as given. If it does not converge,
    even with more patience, mean field is used.
    """
    unknown = np.isnan(y)
    free = TagRBM(rbm.U[:, unknown], rbm.c + rbm.U[:, ~unknown] @ y[~unknown], rbm.d[unknown])
    found = beliefs(free, steps, damping, tolerance)
    if found is None:
        found = beliefs(free, 10 * steps, (1 + damping) / 2, tolerance)
    if found is None:
        found = mean_field(free, np.zeros((1, 1)), np.full((1, len(free.d)), np.nan), 10 * steps)[0]
    result = y.copy()
    result[unknown] = found
    return result


def beliefs(rbm: TagRBM, steps: int, damping: float, tolerance: float) -> Doubles | None:
    """p(y_j = 1) by loopy belief propagation, (C,), or None if it has not converged.

    The messages, their order, the damping and the stopping rule are those of
    ``harmonium.rbm.belief``, but as ratios: in double precision these work for weights of any size.
    """
    U, c, d = rbm
    A = np.exp(U)
    down, up = np.ones_like(U), np.ones_like(U)  # ratios r = e^m
    total_h, total_y = c, d
    for _ in range(steps):
        down = damping * down + (1 - damping) * _message(total_h[:, None], up, A)
        new_y = d + np.log(down).sum(axis=0)
        up = damping * up + (1 - damping) * _message(new_y[None, :], down, A)
        new_h = c + np.log(up).sum(axis=1)
        change = max(_change(total_y, new_y), _change(total_h, new_h)) / (1 - damping)
        total_h, total_y = new_h, new_y
        if change <= tolerance:
            return model_files.sigmoid(total_y)
    return None


def _message(total: Doubles, r: Doubles, A: Doubles) -> Doubles:
    """(1 + A q) / (1 + q) with q = e^total / r."""
    t, s = np.exp(np.minimum(total, 0)), np.exp(-np.maximum(total, 0))
    x = s * r
    return (x + A * t) / (x + t)


def _change(old: Doubles, new: Doubles) -> float:
    """The largest change in a probability, but at least a hundredth of that in a total."""
    probability = np.abs(model_files.sigmoid(new) - model_files.sigmoid(old))
    return float(np.maximum(probability, 0.01 * np.abs(new - old)).max(initial=0))


class Words(NamedTuple):
    """Which tags go together in several collections, whatever the sound.

    The log-odds of a tag j are the mean of two: the RBMs', by one mean-field step, and those from
    counting, the mean of p(j | k) over the observed tags k that share a collection with j.
    """

    tags: tuple[str, ...]
    members: tuple[TagRBM, ...]
    beside: Doubles  # (C, C): p(y_j = 1 | y_k = 1) at [k, j]; NaN where no collection has both
    rates: Doubles  # (C,)

    @classmethod
    def of(cls, data: bytes) -> "Words":
        """Those of a file."""
        arrays, about = model_files.from_bytes(data, name="words.safetensors")
        U, c, d, odds = (arrays[name].astype(np.float64) for name in ("U", "c", "d", "rates"))
        gains = np.where(arrays["gains"] == NO_GAIN, np.nan, arrays["gains"] / GAIN_STEPS)
        members = tuple(TagRBM(*member) for member in zip(U, c, d, strict=True))
        return cls(tuple(about["tags"]), members, *map(model_files.sigmoid, (odds + gains, odds)))

    def __call__(self, y: Doubles) -> Doubles:
        """Log-odds of the tags, (n, C), for observed tags ``y``, (n, C); in both NaN is unknown."""
        known, with_k, k = ~np.isnan(self.beside), np.nan_to_num(self.beside), self.rates[:, None]
        # p(j | not k) follows from p(j) and p(j | k); above 0, since shares are smoothed
        without_k = np.maximum((self.rates - k * with_k) / (1 - k), self.rates / 10) * known
        n = ~np.isnan(y) @ known.astype(np.float64)
        mean = ((y == 1) @ with_k + (y == 0) @ without_k) / np.maximum(n, 1)
        found = (self.by_members(y) + model_files.log_odds(mean, MIN_PROBABILITY)) / 2
        return np.where(n > 0, found, np.nan)

    def by_members(self, y: Doubles) -> Doubles:
        """The same by the RBMs alone."""
        y, sigmoid = np.nan_to_num(y), model_files.sigmoid
        return np.mean([d + sigmoid(c + y @ U.T) @ U for U, c, d in self.members], axis=0)


@cache
def words() -> Words | None:
    """The package's words; None if somebody deleted the file because of its licence."""
    return Words.of(WORDS_FILE.read_bytes()) if WORDS_FILE.exists() else None


@cache
def builtin_model() -> StoredModel:
    """The package's model, as if it were stored; it has no number."""
    return model_of_file(BUILTIN_FILE.read_bytes(), builtin_extractor())


def builtin_extractor() -> str:
    """The key of the features that the built-in model takes."""
    from harmonium.audio.extractors import extractor_key

    return extractor_key("musicnn")


def use_builtin(library: Library) -> StoredModel | None:
    """The library's model, else the built-in one if the library has its features, else None."""
    # A library with an older version of the built-in model gets the new one.
    model = library.models.current()
    if model is not None and model.name == BUILTIN and model.bytes != builtin_model().bytes:
        model = None
    if model is None and library.settings.get(EXTRACTOR) == builtin_extractor():
        model = builtin_model().without(library.hidden_tags(), library.renamed_tags())
        model = replace(model, id=library.models.add(model))
    return model


def model_of_file(data: bytes, extractor: str) -> StoredModel:
    """The model in a file like the package's."""
    way_out = "Install Harmonium again."
    about = model_files.from_bytes(data, name="The built-in model", way_out=way_out)[1].get(BUILTIN)
    if about is None:
        raise ModelFileError(f"The built-in model's file has changed. {way_out}")
    tags = [{**tag, "learnt": tag["threshold"] is not None} for tag in about["tags"]]
    thresholds = [UNREACHABLE if tag["threshold"] is None else tag["threshold"] for tag in tags]
    scored = [tag for tag in tags if "auc" in tag]
    n_tracks = sum(about["clips"].values())
    report = about | {"tags": tags, "own": 0, "left_out": [], "tracks": n_tracks}
    report["precision"] = {tag["tag"]: tag["precision"] for tag in scored}
    report["mean_auc"] = float(np.mean([tag["auc"] for tag in scored]))
    return StoredModel(
        name=BUILTIN,
        vocabulary=[tag["tag"] for tag in tags],
        thresholds=np.array(thresholds, np.float32),
        extractor=extractor,
        bytes=data,
        report=report,
    )


@cache
def _vocabulary() -> dict[str, Any]:
    """Kind → the built-in tags of that kind, and other words for them."""
    found = read_toml(BUILTIN_FILE.with_name("vocabulary.toml"), "The built-in vocabulary")
    return {kind: found[kind] for kind in (*KINDS, FEATURE) if kind in found}


@cache
def builtin_aliases() -> dict[str, str]:
    """Other words → the built-in tags that they mean."""
    tables = [one.get("also", {}).items() for one in _vocabulary().values()]
    return {word: tag for table in tables for tag, words in table for word in words}


@cache
def builtin_kinds() -> dict[str, str]:
    """Tag → its kind, for the genres of the built-in tree and the words of the built-in model."""
    tree = builtin_tree()
    kinds = dict.fromkeys(words_that_are_not_tags(), NO_TAG)
    kinds |= dict.fromkeys([*tree.aliases, *tree.parents], "genre")
    own = {tag: kind for kind, table in _vocabulary().items() for tag in table["tags"]}
    own = {tag: kind.replace(FEATURE, "mood") for tag, kind in own.items()}
    return kinds | {word: own[tag] for word, tag in builtin_aliases().items()} | own


RANKED: dict[str, Any] = dict.fromkeys(("thresholds", "effective", "expected"), np.float32)
RANKED |= dict.fromkeys(("chosen", "right"), np.int32)
"""What a curve has for each rank, and the type it is stored as."""


@dataclass(frozen=True, eq=False)
class PrecisionCurve:
    """A tag's held-out tracks by probability, the most probable first; arrays (n_ranks,)."""

    thresholds: Doubles  # probabilities, strictly descending
    chosen: Ids  # how many tracks have at least this probability
    right: Ids  # how many of these have the tag
    positives: int  # how many tracks have the tag
    effective: Doubles  # how many tracks by different artists would tell as much as those chosen
    expected: Doubles  # mean probability of those chosen

    @property
    def precision(self) -> Doubles:
        """The share of the tracks chosen that have the tag."""
        return self.right / self.chosen

    @property
    def recall(self) -> Doubles:
        """The share of the tracks with the tag that are chosen."""
        return self.right / max(1, self.positives)

    def below(self, share: float = DOUBT) -> Doubles:
        """The precision's quantile at ``share``; by default, its lower bound."""
        from scipy.stats import beta

        right = PRIOR * np.clip(self.expected, 0.01, 0.99) + self.precision * self.effective
        return beta.ppf(share, right, PRIOR + self.effective - right)

    def nearby(self) -> Doubles:
        """The precision among the last tracks chosen: a quarter of all, and at least a few.

        The probability at the threshold counts as much as `PRIOR` tracks.
        """
        from_rank = self.chosen - np.maximum(MIN_EFFECTIVE, self.chosen / 4)
        before = np.searchsorted(self.chosen, from_rank, side="right")
        chosen, right = (np.append(0, column)[before] for column in (self.chosen, self.right))
        n = self.chosen - chosen
        return (PRIOR * self.thresholds + self.right - right) / (PRIOR + n)

    def at(self, threshold: float) -> int | None:
        """The last rank that reaches a threshold; None if no track does."""
        n = int(np.sum(self.thresholds >= threshold))
        return n - 1 if n else None


def threshold_for(curve: PrecisionCurve, precision: float) -> float:
    """The threshold at which a tag has this precision; `UNREACHABLE` if it never does.

    Near the threshold, most tracks must have the tag, however good the others are. A probability
    this high is enough if held-out tracks at or below it did not fall short.
    """
    if not 0 <= precision < 1:
        raise DataError(f"'precision' must be at least 0 and below 1. Got {precision}.")
    enough = curve.effective >= MIN_EFFECTIVE
    passed = (curve.below() >= precision) & (curve.nearby() >= min(precision, MIN_NEARBY))
    shown = enough & np.logical_and.accumulate(passed | ~enough)
    threshold = float(curve.thresholds[shown].min(initial=UNREACHABLE))
    credible = (curve.below(0.5) >= curve.thresholds) | (curve.thresholds < MIN_NEARBY)
    at = curve.at(precision)
    return threshold if at is None or not credible[at:].all() else min(threshold, precision)


def precision_curves(model: StoredModel) -> list[PrecisionCurve]:
    """The curve of each tag of a stored model; empty if it has none."""
    if not model.bytes:
        return []
    return curves_from_arrays(model_files.from_bytes(model.bytes, name="The stored model")[0])


def curves_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> list[PrecisionCurve]:
    """What `curves_to_arrays` was given, or nothing."""
    if "curves.expected" not in arrays:
        return []
    wide: dict[Any, Any] = {np.float32: np.float64, np.int32: np.int64}
    columns = {name: arrays[f"curves.{name}"].astype(wide[kind]) for name, kind in RANKED.items()}
    ends = arrays["curves.ends"].tolist()
    return [
        PrecisionCurve(
            positives=int(positives), **{name: x[begin:end] for name, x in columns.items()}
        )
        for begin, end, positives in zip([0, *ends], ends, arrays["curves.positives"], strict=False)
    ]


def thresholds_for(model: StoredModel, precision: float | None) -> Floats | None:
    """(n_tags,) the probability above which each tag has this precision; else `UNREACHABLE`."""
    # None if no precision is asked for, or the model has no curves.
    if precision is None or not (curves := precision_curves(model)):
        return None
    found = np.full(len(model.vocabulary), UNREACHABLE)
    found[: len(curves)] = [threshold_for(curve, precision) for curve in curves]
    return np.where(model.learnt & model.confirmed, found, UNREACHABLE).astype(np.float32)


def write_thresholds(
    model: StoredModel, precision: float | None, owner: Owner | None = None
) -> Floats:
    """(n_tags,) the least probability at which each tag of a model is written, as trained.

    ``precision`` is what predictions must reach, tag by tag. None takes everything that reaches the
    thresholds of `harmonium tag`, but built-in tags only if these were right for most held-out
    clips (`StoredModel.sure`), and everything that a precision of `MIN_NEARBY` takes. A lower
    precision never takes less, and None takes the most.
    """
    model = model.as_trained()
    lowest, found = thresholds_for(model, MIN_NEARBY), thresholds_for(model, precision)
    sure = model.sure().thresholds
    least = sure if lowest is None else np.minimum(sure, lowest)
    wanted = replace(model, thresholds=least if found is None else np.maximum(found, least))
    return wanted.only(owner).thresholds
