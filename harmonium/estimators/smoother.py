"""The tag smoother: which tags a new user would give a clip, learnt from who tagged what."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import jax.numpy as jnp
import numpy as np
import polars as pl
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from harmonium.data import Conditioning
from harmonium.errors import DataError, DataWarning, TrainingWarning
from harmonium.estimators.base import COUNT, NOT_NEGATIVE, POSITIVE
from harmonium.estimators.progress import epoch_progress
from harmonium.estimators.smoother_inputs import (
    name_codes,
    read_any_triples,
    tag_positions,
    unknown_tag,
    with_vocabulary,
)
from harmonium.estimators.smoother_results import Smoothed
from harmonium.estimators.smoother_rows import (
    PARTS,
    Codes,
    others_scale,
    pair_row,
    parts_of,
    tag_rates,
    without,
)
from harmonium.rbm.blinding import Blinded
from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    Gradient,
    MeanField,
    PseudoLikelihood,
)
from harmonium.rbm.infer import Options, infer
from harmonium.rbm.model import Params
from harmonium.rbm.training import Optimiser, Penalty, Result, Schedule, train

_CHANCE = Interval(Real, 0, 1, closed="left")
_MAX_VALIDATION = 5000  # pairs: more would tell little more and take longer than training


class TagSmoother(BaseEstimator):
    """Which tags a new user would give each clip."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "conditioning": [StrOptions({"other_users", "none"})],
        "auxiliary": ["array-like"],
        "n_hidden": [COUNT],
        "training": [StrOptions({"cd", "mean_field", "lbp", "pl"})],
        "training_steps": [COUNT, None],
        "inference": [StrOptions({"lbp", "mean_field", "gibbs", "exact"})],
        "inference_steps": [COUNT],
        "damping": [_CHANCE],
        "tolerance": [NOT_NEGATIVE],
        "n_tags": [COUNT, None],
        "prior_users": [NOT_NEGATIVE],
        "learning_rate": [POSITIVE],
        "row_rate": [POSITIVE],
        "schedule": [StrOptions({"constant", "inverse", "cosine"})],
        "batch_size": [COUNT],
        "max_epochs": [COUNT],
        "patience": [COUNT],
        "averaging": [NOT_NEGATIVE],
        "validation_fraction": [_CHANCE],
        "l1": [NOT_NEGATIVE],
        "l2": [NOT_NEGATIVE],
        "row_l1": [NOT_NEGATIVE],
        "row_l2": [NOT_NEGATIVE],
        "hide_others": [_CHANCE],
        "hide_parts": [_CHANCE],
        "hide_all": [_CHANCE],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        conditioning: Literal["other_users", "none"] = "other_users",
        auxiliary: Sequence[str] = PARTS,
        *,
        n_hidden: int = 100,
        training: Literal["cd", "mean_field", "lbp", "pl"] = "cd",
        training_steps: int | None = None,
        inference: Literal["lbp", "mean_field", "gibbs", "exact"] = "lbp",
        inference_steps: int = 20,
        damping: float = 0.5,
        tolerance: float = 1e-3,
        n_tags: int | None = None,
        prior_users: float = 1.0,
        learning_rate: float = 0.01,
        row_rate: float = 0.3,
        schedule: Literal["constant", "inverse", "cosine"] = "inverse",
        batch_size: int = 50,
        max_epochs: int = 100,
        patience: int = 10,
        averaging: float = 0.0,
        validation_fraction: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.01,
        row_l1: float = 0.0,
        row_l2: float = 3.0,
        hide_others: float = 0.0,
        hide_parts: float = 0.5,
        hide_all: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.conditioning = conditioning
        self.auxiliary = auxiliary
        self.n_hidden = n_hidden
        self.training = training
        self.training_steps = training_steps
        self.inference = inference
        self.inference_steps = inference_steps
        self.damping = damping
        self.tolerance = tolerance
        self.n_tags = n_tags
        self.prior_users = prior_users
        self.learning_rate = learning_rate
        self.row_rate = row_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.averaging = averaging
        self.validation_fraction = validation_fraction
        self.l1 = l1
        self.l2 = l2
        self.row_l1 = row_l1
        self.row_l2 = row_l2
        self.hide_others = hide_others
        self.hide_parts = hide_parts
        self.hide_all = hide_all
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # Fitting. --------------------------------------------------------------------------------

    def fit(self, triples: Any, *, tracks: Any = None, pairs: Any = None) -> Self:
        """Learn from (user, item, tag) triples; an item is a clip.

        Parameters
        ----------
        triples : Triples; or a file, a frame with the columns user, item and tag, or three
            sequences of them.
        tracks : the track of each item, as a mapping or in the order of the triples' items; by
            default each item is a track of its own.
        pairs : who saw what, for users who gave an item no tag: (users, items), or Triples.

        Returns
        -------
        self
        """
        self._validate_params()
        kept, pairs = with_vocabulary(read_any_triples(triples), self.n_tags, pairs)
        data = Conditioning.from_triples(kept, tracks=tracks, pairs=pairs)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self._parts = parts_of(data, self._auxiliary())
        held_out = self._hold_out(rng, data)
        known = without(data, held_out)
        self._others = others_scale(known, float(self.prior_users))
        start = self._start(rng, known)
        result = self._train(start, known, data, held_out, int(rng.integers(2**31)))
        self._data = data
        self._keep(result)
        return self

    def _auxiliary(self) -> tuple[str, ...]:
        names = [self.auxiliary] if isinstance(self.auxiliary, str) else list(self.auxiliary)
        strange = [name for name in names if name not in PARTS]
        if strange:
            raise DataError(
                f"'auxiliary' must be a selection of {', '.join(map(repr, PARTS))}. "
                f"Got {strange[0]!r}."
            )
        return tuple(names)

    def _hold_out(self, rng: np.random.Generator, data: Conditioning) -> NDArray[np.intp]:
        """Rows to stop early on: pairs whose clip has other users, at most one of each clip."""
        wanted = min(int(self.validation_fraction * len(data)), _MAX_VALIDATION)
        order = rng.permutation(np.flatnonzero(data.n_others > 0))
        _, first = np.unique(data.item[order], return_index=True)
        return order[np.sort(first)[:wanted]]

    def _start(self, rng: np.random.Generator, data: Conditioning) -> Params:
        """Small random weights, no effect of user, track or clip, and d at the tags' log-odds."""
        n, n_tags = self.n_hidden, len(data.tags)
        n_inputs = n_tags if self.conditioning == "other_users" else 0
        rates = tag_rates(data)
        arrays = (
            rng.normal(0, 0.01, (n, n_tags)),
            rng.normal(0, 1, (n, n_inputs)),
            np.zeros((self._parts.n_rows, n_tags)),
            np.zeros(n),
            np.log(rates / (1 - rates)),
        )
        return Params(*(jnp.asarray(array, jnp.float32) for array in arrays))

    def _train(
        self,
        start: Params,
        known: Conditioning,
        data: Conditioning,
        held_out: NDArray[np.intp],
        seed: int,
    ) -> Result:
        n = len(known)
        everything = np.arange(n)
        u = self._u(known.counts[known.item] - known.y, known.n_others)
        a = self._parts.indices(user=known.user, track=known.track, clip=known.item)
        batch = Batch(u, a, known.y.toarray(), np.ones(len(everything), np.float32))
        item = data.item[held_out]
        valid_u = self._u(known.counts[item], known.n_users[item])
        valid_a = self._parts.indices(
            user=data.user[held_out], track=data.track[held_out], clip=item
        )
        valid_y = data.y[held_out].toarray()

        def score(params: Params) -> float:
            options = self._options()._replace(retry=False, tolerance=max(self.tolerance, 1e-2))
            anonymous = valid_a.copy()
            if "user" in self._parts.names:
                anonymous[:, 0] = -1
            P = self._infer(params, valid_u, anonymous, None, options)
            return log_likelihood(valid_y, P)

        with epoch_progress(
            self.max_epochs, shown=bool(self.verbose), name=type(self).__name__
        ) as on_epoch:
            return train(
                start,
                batch,
                gradient=self._objective(),
                optimiser=Optimiser("adam", 0.9),
                schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
                penalty=self._penalty(n),
                batch_size=self.batch_size,
                max_epochs=self.max_epochs,
                patience=self.patience,
                averaging=self.averaging,
                row_rate=self.row_rate if self._parts.n_rows else None,
                seed=seed,
                score=score if len(held_out) else None,
                on_epoch=on_epoch,
            )

    def _penalty(self, n: int) -> Penalty:
        """ℓ2 on U and W, ℓ1 on W; on V's rows per minibatch, so that an epoch adds up to all."""
        share = min(self.batch_size, n) / n

        def by_row(value: float) -> Any:
            return self._parts.by_row(dict.fromkeys(PARTS, value * share))

        zero = np.float32(0)
        l1, l2 = np.float32(self.l1), np.float32(self.l2)
        return Penalty(
            Params(zero, l1, by_row(self.row_l1), zero, zero),
            Params(l2, l2, by_row(self.row_l2), zero, zero),
        )

    def _objective(self) -> Gradient:
        steps = self.training_steps
        gradient: Gradient = PseudoLikelihood()
        if self.training == "cd":
            gradient = ContrastiveDivergence(steps or 1)
        elif self.training == "mean_field":
            gradient = MeanField(steps or 5)
        elif self.training == "lbp":
            gradient = BeliefPropagation(steps or 10, float(self.damping))
        hidden = (float(self.hide_parts),) * len(self._parts.names)
        return Blinded(gradient, float(self.hide_others), hidden, float(self.hide_all))

    def _keep(self, result: Result) -> None:
        self._params = Params(*(np.array(array) for array in result.params))
        self.best_epoch_ = result.best_epoch
        self.history_ = {
            "log_likelihood": result.history.log_likelihood,
            "validation": result.history.score,
            "seconds": result.history.seconds,
        }
        self.n_iter_ = len(result.history)
        self.tags_ = self._data.tags.to_numpy()
        self.items_ = self._data.items.to_numpy()
        self.users_ = self._data.users.to_numpy()
        if result.interrupted:
            warnings.warn(
                f"Training was interrupted in epoch {self.n_iter_ + 1}; the best parameters so "
                "far are kept.",
                TrainingWarning,
                stacklevel=3,
            )

    # Using. ----------------------------------------------------------------------------------

    @property
    def params_(self) -> Params:
        """U (n, C), W (n, C or 0), V (users + tracks + clips, C), c (n,), d (C,)."""
        check_is_fitted(self)
        return self._params

    def smooth(self, items: Any = None) -> Smoothed:
        """p(y_j = 1) of a new user for these clips, by default for all; see :class:`Smoothed`."""
        check_is_fitted(self)
        data = self._data
        codes = np.arange(len(data.items), dtype=np.int32)
        if items is not None:
            codes = name_codes(items, data.items)
            if (codes < 0).any():
                strange = ([items] if isinstance(items, str) else list(items))[codes.argmin()]
                raise DataError(
                    f"'items' must hold clips of the triples that were learnt from. {strange!r} is "
                    f"not among the {len(data.items):,}."
                )
        nobody = np.full(len(codes), -1, np.int32)
        return self._predict(nobody, codes, data.items.gather(codes))

    def predict_user(self, user: Any, clip: Any) -> Smoothed:
        """p(y_j = 1) of a user for a clip, or of users for clips, one by one."""
        check_is_fitted(self)
        users, clips = name_codes(user, self._data.users), name_codes(clip, self._data.items)
        users, clips = np.broadcast_arrays(users, clips)
        names = pl.Series([clip] if isinstance(clip, str) else list(clip), dtype=pl.String)
        return self._predict(users, clips, names)

    def _predict(self, user: Codes, item: Codes, names: pl.Series) -> Smoothed:
        """For users (-1: a new one) and items (-1: an unknown one)."""
        data = self._data
        known = item >= 0
        at = np.maximum(item, 0)
        own = pair_row(data, user, item)
        mine = data.y[np.maximum(own, 0)].multiply((own >= 0)[:, None]).tocsr()
        counts = data.counts[at].multiply(known[:, None]).tocsr() - mine
        n = np.where(known, data.n_users[at], 0) - (own >= 0)
        a = self._parts.indices(
            user=user, track=np.where(known, data.item_track[at], -1), clip=item
        )
        P = self._infer(self._params, self._u(counts, n), a, None, self._options())
        return Smoothed(names, data.tags, P)

    def suggest(self, tags: Any, n: int = 10) -> pl.DataFrame:
        """What else people who use these tags would say: columns tag, probability and usual."""
        check_is_fitted(self)
        found, strange = tag_positions(tags, self.tags_.tolist())
        if strange and not found:
            raise DataError(unknown_tag(strange[0], self.tags_.tolist()))
        if strange:
            warnings.warn(
                unknown_tag(strange[0], self.tags_.tolist()) + " It is left out.",
                DataWarning,
                stacklevel=2,
            )
        known = np.full((2, len(self.tags_)), np.nan, np.float32)
        known[0, found] = 1
        P = self._without_clip(known)
        order = [j for j in np.argsort(-P[0], kind="stable") if j not in found][:n]
        return pl.DataFrame(
            {
                "tag": self._data.tags.gather(order),
                "probability": P[0][order],
                "usual": P[1][order],
            }
        )

    def related(self, tag: str, n: int = 10) -> pl.DataFrame:
        """The strongest relations of a tag."""
        check_is_fitted(self)
        found, strange = tag_positions(tag, self.tags_.tolist())
        if strange:
            raise DataError(unknown_tag(strange[0], self.tags_.tolist()))
        known = np.full((2, len(self.tags_)), np.nan, np.float32)
        known[0, found], known[1, found] = 1, 0
        P = np.clip(self._without_clip(known).astype(np.float64), 1e-7, 1 - 1e-7)
        odds = np.log(P / (1 - P))
        change = odds[0] - odds[1]
        change[found] = 0
        order = np.argsort(-change, kind="stable")
        ends = (i for i in range(len(order)) if i < n or i >= len(order) - n)
        chosen = [int(order[i]) for i in ends if change[order[i]]]
        return pl.DataFrame(
            {
                "tag": self._data.tags.gather(chosen),
                "log_odds": change[chosen],
                "with": P[0][chosen],
                "without": P[1][chosen],
            }
        )

    def _without_clip(self, known: NDArray[np.float32]) -> NDArray[np.float32]:
        u = np.zeros((len(known), self._params.W.shape[1]), np.float32)
        a = np.full((len(known), len(self._parts.names)), -1, np.int32)
        return self._infer(self._params, u, a, known, self._options())

    def _u(self, counts: Any, n: NDArray[Any]) -> NDArray[np.float32]:
        if self.conditioning == "none":
            return np.zeros((len(n), 0), np.float32)
        return self._others(counts, n)

    def _options(self) -> Options:
        return Options(
            self.inference,
            self.inference_steps,
            self.damping,
            self.tolerance,
            threads=effective_n_jobs(self.n_jobs),
        )

    def _infer(
        self,
        params: Params,
        u: NDArray[np.float32],
        a: Codes,
        y: NDArray[np.float32] | None,
        options: Options,
    ) -> NDArray[np.float32]:
        if y is None:
            y = np.full((len(u), params.U.shape[1]), np.nan, np.float32)
        return infer(params, u, a, y, options).y

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")


def log_likelihood(Y: NDArray[np.float32], P: NDArray[np.float32]) -> float:
    """Mean of log p(y_j) over all labels."""
    given = np.where(Y == 1, P, 1 - P)
    return float(np.mean(np.log(np.maximum(given, np.finfo(np.float32).tiny))))
