"""The tag smoother: which tags a new user would give a clip, learnt from who tagged what."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from harmonium.data import Conditioning
from harmonium.errors import DataError, DataWarning, TrainingInterrupted
from harmonium.estimators.classifier import COUNT, JOBS, NOT_NEGATIVE, POSITIVE
from harmonium.estimators.progress import epoch_progress
from harmonium.estimators.smoother.changes import changes
from harmonium.estimators.smoother.files import StoredSmoother
from harmonium.estimators.smoother.inputs import (
    auxiliary_parts,
    name_codes,
    read_any_triples,
    tag_positions,
    unknown_tag,
    with_vocabulary,
)
from harmonium.estimators.smoother.results import Smoothed, relations, suggestions
from harmonium.estimators.smoother.rows import (
    PARTS,
    Codes,
    Conditions,
    Floats,
    conditions_of,
    without,
)
from harmonium.estimators.smoother.training import (
    Hiding,
    Priors,
    Training,
    arrays_of,
    hold_out,
    objective,
    rates_log_likelihood,
    start,
    training_data,
)
from harmonium.estimators.validation import log_likelihood
from harmonium.rbm.exact import MAX_UNITS
from harmonium.rbm.infer import Options, infer
from harmonium.rbm.model import Params
from harmonium.rbm.training import Result, Schedule

_CHANCE = Interval(Real, 0, 1, closed="left")
_MOST_HELD_OUT = 5000  # pairs: more would tell little more, and take longer than training


class TagSmoother(StoredSmoother, BaseEstimator):
    """Says which tags a new user would give a clip, from who gave which tag to what.

    A conditional RBM p(y, h | u, a) ∝ exp(hᵀUy + hᵀWu + yᵀVa + dᵀy + cᵀh): y is one user's tags
    for a clip; u what the *other* users of that clip said, if ``conditioning`` is "other_users"; a
    who the user is, and which track and clip it is about. A new user has no row in V.

    u_j = (count of tag j among the n others - n · rate_j) / (n + ``prior_users``), scaled: how much
    more often the others gave the tag than users usually do. It is 0 for a clip without other
    users, and grows with their number, since one voice says less than ten.

    Parameters
    ----------
    conditioning : "other_users" for the doubly conditional model, "none" for the singly
        conditional one.
    auxiliary : which of "user", "track" and "clip" have rows in V; any of them, or none. Tracks are
        left out where every track is one clip.
    n_tags : learn the most used tags only; None for all.
    n_hidden : hidden units.
    training, training_steps, inference, inference_steps, damping, tolerance : as for
        :class:`DiscriminativeRBM`.
    prior_users : how many usual users are added to the others of a clip.
    tags_l2, others_l2, user_l2, track_l2, clip_l2 : strengths of the ℓ2 penalties on U, on W, and
        on the rows of V, against the sum of the pairs' log-likelihoods.
    rows_l1, others_l1 : of ℓ1 on V and on W, by proximal steps: zeros are exact.
    hide_user, hide_all : the chance that a training pair loses its user, or everything that it is
        conditioned on, so that the model can do without.
    learning_rate, schedule, batch_size, max_epochs : of the training; ``row_rate`` is the step
        length of V's rows.
    patience, validation_fraction : a share of the pairs is held out; training stops after so many
        epochs in which their log-likelihood, as that of new users, has not risen.
    refit : then train once more with all pairs, for as many epochs as were best.
    n_jobs : threads that predict. random_state : seed. verbose : 1 shows a progress bar.

    Attributes
    ----------
    tags_, items_, users_ : names. params_ : U, W, V, c, d.
    zeros_ : share of exact zeros of W and V.
    history_ : per epoch "log_likelihood" (a proxy), "validation" and "seconds".
    best_epoch_, n_iter_ : the epoch that was best, and how many there were.
    baseline_ : what "validation" would be if every tag had its usual rate.

    Examples
    --------
    >>> from harmonium import TagSmoother
    >>> from harmonium.synthetic import make_collection
    >>> music = make_collection(n_tracks=20, clips_per_track=2)
    >>> smoother = TagSmoother(n_tags=20, max_epochs=5, random_state=0).fit(music.triples)
    >>> smoother.smooth().values.shape
    (40, 20)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "conditioning": [StrOptions({"other_users", "none"})],
        "auxiliary": ["array-like", str],
        "n_tags": [COUNT, None],
        "n_hidden": [COUNT],
        "training": [StrOptions({"cd", "mean_field", "lbp", "pl"})],
        "training_steps": [COUNT, None],
        "inference": [StrOptions({"lbp", "mean_field", "gibbs", "exact"})],
        "inference_steps": [COUNT],
        "damping": [_CHANCE],
        "tolerance": [NOT_NEGATIVE],
        "prior_users": [NOT_NEGATIVE],
        "tags_l2": [NOT_NEGATIVE],
        "others_l2": [NOT_NEGATIVE],
        "user_l2": [NOT_NEGATIVE],
        "track_l2": [NOT_NEGATIVE],
        "clip_l2": [NOT_NEGATIVE],
        "rows_l1": [NOT_NEGATIVE],
        "others_l1": [NOT_NEGATIVE],
        "hide_user": [_CHANCE],
        "hide_all": [_CHANCE],
        "learning_rate": [POSITIVE],
        "row_rate": [POSITIVE],
        "schedule": [StrOptions({"constant", "inverse", "cosine"})],
        "batch_size": [COUNT],
        "max_epochs": [COUNT],
        "patience": [COUNT],
        "validation_fraction": [_CHANCE],
        "refit": ["boolean"],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        conditioning: Literal["other_users", "none"] = "other_users",
        auxiliary: Sequence[str] = PARTS,
        *,
        n_tags: int | None = None,
        n_hidden: int = 50,
        training: Literal["cd", "mean_field", "lbp", "pl"] = "pl",
        training_steps: int | None = None,
        inference: Literal["lbp", "mean_field", "gibbs", "exact"] = "lbp",
        inference_steps: int = 20,
        damping: float = 0.5,
        tolerance: float = 1e-3,
        prior_users: float = 1.0,
        tags_l2: float = 10.0,
        others_l2: float = 1.0,
        user_l2: float = 1.0,
        track_l2: float = 1.0,
        clip_l2: float = 5.0,
        rows_l1: float = 0.0,
        others_l1: float = 0.0,
        hide_user: float = 0.5,
        hide_all: float = 0.2,
        learning_rate: float = 0.01,
        row_rate: float = 0.3,
        schedule: Literal["constant", "inverse", "cosine"] = "inverse",
        batch_size: int = 50,
        max_epochs: int = 100,
        patience: int = 20,
        validation_fraction: float = 0.2,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.conditioning = conditioning
        self.auxiliary = auxiliary
        self.n_tags = n_tags
        self.n_hidden = n_hidden
        self.training = training
        self.training_steps = training_steps
        self.inference = inference
        self.inference_steps = inference_steps
        self.damping = damping
        self.tolerance = tolerance
        self.prior_users = prior_users
        self.tags_l2 = tags_l2
        self.others_l2 = others_l2
        self.user_l2 = user_l2
        self.track_l2 = track_l2
        self.clip_l2 = clip_l2
        self.rows_l1 = rows_l1
        self.others_l1 = others_l1
        self.hide_user = hide_user
        self.hide_all = hide_all
        self.learning_rate = learning_rate
        self.row_rate = row_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # Fitting. --------------------------------------------------------------------------------

    def fit(self, triples: Any, *, tracks: Any = None, pairs: Any = None) -> Self:
        """Learn from (user, item, tag) triples; an item is a clip.

        Parameters
        ----------
        triples : :class:`harmonium.data.Triples`; or a file of them, a frame with the columns user,
            item and tag, or three sequences of these.
        tracks : the track of each item, as a mapping from item to track or in the order of the
            triples' items; by default each item is a track of its own.
        pairs : who saw what, for users who gave an item none of the tags: a pair of sequences
            (users, items), or Triples of more tags. The pairs of ``triples`` are always there.

        Returns
        -------
        self
        """
        self._validate_params()
        kept, pairs = with_vocabulary(read_any_triples(triples), self.n_tags, pairs)
        data = Conditioning.from_triples(kept, tracks=tracks, pairs=pairs)
        self._check_inference(len(data.tags))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=3)
        rng = np.random.default_rng(seeds[0])
        held_out = hold_out(rng, data, self.validation_fraction, _MOST_HELD_OUT)
        conditions, result = self._train(data, held_out, seeds[1:], self.max_epochs)
        self._keep(data, conditions, result)
        self.baseline_ = rates_log_likelihood(data, held_out)
        if len(held_out) and self.refit and not result.interrupted:
            none = np.zeros(0, np.intp)
            conditions, again = self._train(data, none, seeds[1:], result.best_epoch)
            if not again.interrupted:
                self._conditions, self._params = conditions, arrays_of(again.params)
            result = again
        if result.interrupted:
            self._warn_of_interrupt()
        return self

    def _train(
        self,
        data: Conditioning,
        held_out: NDArray[np.intp],
        seeds: NDArray[np.int64],
        max_epochs: int,
    ) -> tuple[Conditions, Result]:
        """Train without the pairs held out, and stop early on them if there are any."""
        known = without(data, held_out)
        conditions = conditions_of(
            known,
            auxiliary=auxiliary_parts(self.auxiliary),
            others=self.conditioning == "other_users",
            prior_users=float(self.prior_users),
        )
        hiding = Hiding(float(self.hide_user), float(self.hide_all))
        gradient = objective(self.training, self.training_steps, float(self.damping))
        training = Training(
            gradient=hiding(gradient, conditions),
            schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
            priors=self._priors(),
            row_rate=float(self.row_rate),
            batch_size=self.batch_size,
            patience=self.patience,
            seed=int(seeds[1]),
        )
        name = type(self).__name__ if len(held_out) else f"{type(self).__name__}, all pairs"
        with epoch_progress(
            max_epochs, shown=bool(self.verbose), name=name, measure="log-likelihood"
        ) as on_epoch:
            result = training(
                start(np.random.default_rng(seeds[0]), known, conditions, self.n_hidden),
                training_data(known, conditions),
                conditions,
                max_epochs=max_epochs,
                score=self._score(known, data, conditions, held_out),
                on_epoch=on_epoch,
            )
        return conditions, result

    def _score(
        self,
        known: Conditioning,
        data: Conditioning,
        conditions: Conditions,
        held_out: NDArray[np.intp],
    ) -> Any:
        """Mean log-likelihood per tag of the held-out pairs, as tags of new users; None without."""
        if not len(held_out):
            return None
        user = np.full(len(held_out), -1, np.int32)
        u, a = conditions(known, user, data.item[held_out])
        y = data.y[held_out].toarray()
        options = self._options()._replace(retry=False, tolerance=max(self.tolerance, 1e-2))
        unknown = np.full_like(y, np.nan)
        return lambda params: log_likelihood(y, infer(params, u, a, unknown, options).y)

    def _priors(self) -> Priors:
        kinds = ("tags", "others", "user", "track", "clip")
        l2 = {kind: float(getattr(self, f"{kind}_l2")) for kind in kinds}
        return Priors(l2, float(self.rows_l1), float(self.others_l1))

    def _keep(self, data: Conditioning, conditions: Conditions, result: Result) -> None:
        self._data, self._conditions = data, conditions
        self._params = arrays_of(result.params)
        self.best_epoch_, self.n_iter_ = result.best_epoch, len(result.history)
        self.history_ = {
            "log_likelihood": result.history.log_likelihood,
            "validation": result.history.score,
            "seconds": result.history.seconds,
        }

    def _warn_of_interrupt(self) -> None:
        kept = f"those of epoch {self.best_epoch_}" if self.best_epoch_ else "those of the start"
        warnings.warn(
            f"Training was interrupted; the best parameters so far, {kept}, are kept.",
            TrainingInterrupted,
            stacklevel=3,
        )

    def _check_inference(self, n_tags: int) -> None:
        if self.inference == "exact" and min(self.n_hidden, n_tags) > MAX_UNITS:
            raise DataError(
                f"inference='exact' enumerates 2^min(n_hidden, n_tags) states and takes at most "
                f"{MAX_UNITS} units on the smaller side. Got {self.n_hidden} hidden units and "
                f"{n_tags} tags; use inference='lbp'."
            )

    # What was learnt. ------------------------------------------------------------------------

    @property
    def params_(self) -> Params:
        """U (n, C), W (n, C or 0), V (one row for each user, track and clip, C), c (n,), d (C,)."""
        check_is_fitted(self)
        return self._params

    @property
    def zeros_(self) -> dict[str, float]:
        """The share of weights that are exactly 0, of W and of V, where the model has them."""
        shares = {"W": self.params_.W, "V": self.params_.V}
        return {name: float(np.mean(w == 0)) for name, w in shares.items() if w.size}

    @property
    def tags_(self) -> NDArray[Any]:
        """The vocabulary, (n_tags,)."""
        return self._names("tags")

    @property
    def items_(self) -> NDArray[Any]:
        """The clips, (n_items,)."""
        return self._names("items")

    @property
    def users_(self) -> NDArray[Any]:
        """The users, (n_users,)."""
        return self._names("users")

    def _names(self, kind: str) -> NDArray[Any]:
        check_is_fitted(self)
        return np.array(getattr(self._data, kind).to_list(), dtype=object)

    # Using. ----------------------------------------------------------------------------------

    def smooth(self, items: Any = None) -> Smoothed:
        """p(y_j = 1) of a new user for clips, given what all users gave them.

        ``items`` names clips of the triples; by default all of them, in the order of ``items_``.
        """
        check_is_fitted(self)
        names = self._data.items
        codes = np.arange(len(names), dtype=np.int32)
        if items is not None:
            codes = name_codes(items, names, name="items")
            if (codes < 0).any():
                strange = ([items] if isinstance(items, str) else list(items))[int(codes.argmin())]
                raise DataError(
                    f"'items' must name clips of the triples that were learnt from. {strange!r} is "
                    f"not among the {len(names):,}."
                )
        new = np.full(len(codes), -1, np.int32)
        return Smoothed(names.gather(codes), self._data.tags, self._predict(new, codes))

    def changes(self, smoothed: Smoothed | None = None) -> pl.DataFrame:
        """Which tags smoothing fills in, and which it doubts.

        Filled in: nobody gave the clip the tag, and yet it is as probable as for the median clip
        that was given it. Doubted: somebody gave it, and yet it is less than half as probable as it
        is of users and clips in general. The columns: item, tag, change ("filled in" or "doubted"),
        count and users (how many gave it, of how many), and probability. ``smoothed``, what
        ``smooth()`` gave for all clips, saves the work if it is at hand.
        """
        P = (self.smooth() if smoothed is None else smoothed).values
        check_is_fitted(self)
        if P.shape != self._data.counts.shape:
            raise DataError(
                f"'smoothed' must be of all {len(self._data.items):,} clips, as smooth() gives it. "
                f"Got {len(P):,}."
            )
        return changes(self._data, P)

    def predict_user(self, user: Any, clip: Any) -> Smoothed:
        """p(y_j = 1) of a known user for a clip, given what the others gave it.

        What the user gave the clip is not used. ``user`` and ``clip`` are names, or sequences of
        them to be taken in pairs. A user who is not known is a new one; of a clip that is not known
        only the user's habits tell.
        """
        check_is_fitted(self)
        users = name_codes(user, self._data.users, name="user")
        clips = name_codes(clip, self._data.items, name="clip")
        if len(users) != len(clips) and 1 not in (len(users), len(clips)):
            raise DataError(
                "'user' and 'clip' must be as long as one another, or one of them a single name. "
                f"Got {len(users):,} users and {len(clips):,} clips."
            )
        users, clips = (np.ascontiguousarray(c) for c in np.broadcast_arrays(users, clips))
        asked = [clip] * len(clips) if isinstance(clip, str) else [str(name) for name in clip]
        names = pl.Series(asked * (len(clips) // len(asked)), dtype=pl.String)
        return Smoothed(names, self._data.tags, self._predict(users, clips))

    def suggest(self, tags: Any, n: int = 10) -> pl.DataFrame:
        """What else people who use these tags would say, whatever the clip.

        ``tags`` is a tag or several. The n most probable other tags, with the columns tag,
        probability (given these tags), and usual (its probability without them).
        """
        check_is_fitted(self)
        vocabulary = self._data.tags.to_list()
        found, strange = tag_positions(tags, vocabulary)
        if strange:
            message = unknown_tag(strange[0], vocabulary)
            if not found:
                raise DataError(message)
            warnings.warn(f"{message} It is left out.", DataWarning, stacklevel=2)
        given = np.full((2, len(vocabulary)), np.nan, np.float32)
        given[0, found] = 1
        present, usual = self._without_clip(given)
        return suggestions(self._data.tags, present, usual, found, n)

    def related(self, tag: str, n: int = 10) -> pl.DataFrame:
        """The n tags that the use of a tag makes most likely, and the n that it makes least likely.

        The columns: tag; log_odds, by how much its log-odds are higher among those who use ``tag``
        than among those who do not, whatever the clip; its probability with and without. Strongest
        first, and the negative ones, weakest first, below.
        """
        check_is_fitted(self)
        vocabulary = self._data.tags.to_list()
        found, strange = tag_positions([tag], vocabulary)
        if strange:
            raise DataError(unknown_tag(strange[0], vocabulary))
        given = np.full((2, len(vocabulary)), np.nan, np.float32)
        given[:, found[0]] = 1, 0
        present, absent = self._without_clip(given)
        return relations(self._data.tags, present, absent, found[0], n)

    def _predict(self, user: Codes, item: Codes) -> Floats:
        """p(y_j = 1), (N, C), of users for items by their codes; -1 is not known."""
        u, a = self._conditions(self._data, user, item)
        unknown = np.full((len(u), len(self._data.tags)), np.nan, np.float32)
        return infer(self._params, u, a, unknown, self._options()).y

    def _without_clip(self, given: Floats) -> Floats:
        """p(y_j = 1) given some tags, (N, C) with NaN for the others, of anybody and anything."""
        u = np.zeros((len(given), self._params.W.shape[1]), np.float32)
        a = np.full((len(given), len(self._conditions.parts.names)), -1, np.int32)
        return infer(self._params, u, a, given, self._options()).y

    def _options(self) -> Options:
        return Options(
            self.inference,
            self.inference_steps,
            self.damping,
            self.tolerance,
            threads=effective_n_jobs(self.n_jobs),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")
