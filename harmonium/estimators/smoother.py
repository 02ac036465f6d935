"""The tag smoother: which tags a new user would give a clip, learnt from who tagged what."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.arrays import Arrays, Codes, Floats, Ids, Places, Rng
from harmonium.data import Conditioning
from harmonium.errors import DataError
from harmonium.estimators import gradient_tagger
from harmonium.estimators import pairs as inputs
from harmonium.estimators.calibration import log_likelihood
from harmonium.estimators.model_files import StoredEstimator, finite_array, typed_array
from harmonium.estimators.networks import (
    DiscriminativeRBM,
    InferenceMethod,
    Training,
    conditional_gradient,
    inference_options,
)
from harmonium.estimators.pairs import Conditions, Others, Smoothed
from harmonium.parameters import (
    Count,
    Jobs,
    NotNegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    estimator,
    parameter,
)
from harmonium.rbm.gradients import HiddenConditions
from harmonium.rbm.inference import infer
from harmonium.rbm.model import Params
from harmonium.rbm.training import Optimiser, Penalty, Result

RBM = DiscriminativeRBM

MAX_HELD_OUT = 5000  # the most held-out pairs: more tell little, and take longer than training


@estimator
class TagSmoother(StoredEstimator, BaseEstimator):
    """Says which tags a new user would give a clip, from who gave which tag to what.

    A conditional RBM p(y, h | u, a) ∝ exp(hᵀUy + hᵀWu + yᵀVa + dᵀy + cᵀh): y is one user's tags
    for a clip; u what the *other* users of that clip said, if ``conditioning`` is "other_users"; a
    who the user is, and which track and clip it is. A new user has no row in V.

    u_j = (count of tag j among the n others - n · rate_j) / (n + ``prior_users``), scaled: how much
    more often the others gave the tag than users usually do. It is 0 for a clip without other
    users, and grows with their number, since one voice says less than ten.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_, items_, users_ : names. params_ : U, W, V, c, d.
    history_ : per epoch "log_likelihood" (a proxy), "validation" and "seconds".
    best_epoch_, n_iter_ : the best epoch, and the number of epochs.
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

    conditioning: Literal["other_users", "none"] = parameter(
        """The doubly conditional model, or ("none") the singly conditional one.""",
        default="other_users",
        kw_only=False,
    )
    auxiliary: Annotated[Sequence[str], "array-like", str] = parameter(
        """Which of "user", "track" and "clip" have rows in V; any of them, or none. Tracks are left
        out if every track is one clip.""",
        default=inputs.PARTS,
        kw_only=False,
    )
    n_tags: Count | None = parameter("Learn the most used tags only; None for all.", default=None)
    n_hidden: Count = parameter("Number of hidden units.", default=50)
    training: Training = parameter(default="pl", like=RBM)
    training_steps: Count | None = parameter(default=RBM.training_steps, like=RBM)
    mean_field_start: Literal["data", "zero"] = parameter(default=RBM.mean_field_start, like=RBM)
    likelihood_weight: NotNegative = parameter(default=RBM.likelihood_weight, like=RBM)
    inference: InferenceMethod = parameter(default=RBM.inference, like=RBM)
    inference_steps: Count | None = parameter(default=RBM.inference_steps, like=RBM)
    damping: Share = parameter(default=RBM.damping, like=RBM)
    tolerance: NotNegative = parameter(default=RBM.tolerance, like=RBM)
    n_jobs: Jobs | None = parameter(default=RBM.n_jobs, like=RBM)
    prior_users: NotNegative = parameter("Average users added to the other users.", default=1.0)
    tags_l2: NotNegative = parameter(
        """Strength of the ℓ2 penalty on U, relative to the sum of the pairs' log-likelihoods, like
        those below.""",
        default=10.0,
    )
    others_l2: NotNegative = parameter("Strength of the ℓ2 penalty on W.", default=1.0)
    user_l2: NotNegative = parameter("Strength of ℓ2 on the users' rows of V.", default=1.0)
    track_l2: NotNegative = parameter("Strength of ℓ2 on the tracks' rows of V.", default=1.0)
    clip_l2: NotNegative = parameter("Strength of ℓ2 on the clips' rows of V.", default=5.0)
    rows_l1: NotNegative = parameter("Strength of ℓ1 on V; zeros are exact.", default=0.0)
    others_l1: NotNegative = parameter("Strength of ℓ1 on W; zeros are exact.", default=0.0)
    hide_user: Share = parameter(
        "Probability that a training pair loses its user, so that the model works without one.",
        default=0.5,
    )
    hide_all: Share = parameter("Probability that it loses all of its conditions.", default=0.2)
    row_rate: Positive = parameter("Step length of V's rows.", default=0.3)
    learning_rate: Positive = parameter(default=RBM.learning_rate, like=RBM)
    schedule: Literal["constant", "inverse", "cosine"] = parameter(default="inverse", like=RBM)
    batch_size: Count = parameter("Pairs per step.", default=50)
    max_epochs: Count = parameter("Maximum number of passes over the pairs.", default=100)
    patience: Count = parameter(
        """Training stops after this many epochs without a better log-likelihood of the held-out
        pairs, taken as new users'.""",
        default=20,
    )
    validation_fraction: Share = parameter("Share of the pairs held out.", default=0.2)
    refit: bool = parameter(
        "Then train again on all pairs, for the best number of epochs.", default=True
    )
    random_state: Seed = parameter(default=RBM.random_state, like=RBM)
    verbose: Verbosity = parameter(default=RBM.verbose, like=RBM)

    _param_type = Params
    _score_name, _score_label = "validation", "log-likelihood"

    def fit(self, triples: Any, *, tracks: Any = None, pairs: Any = None) -> Self:
        """Learn from (user, item, tag) triples; an item is a clip.

        Parameters
        ----------
        triples : :class:`harmonium.data.Triples`; or a file of them, a frame with the columns user,
            item and tag, or three sequences of these.
        tracks : the track of each item, as a mapping from item to track or in the order of the
            triples' items; by default each item is its own track.
        pairs : who saw what, for users who gave an item none of the tags: a pair of sequences
            (users, items), or Triples of more tags. The pairs of ``triples`` are always included.
        """
        self._validate_params()
        kept, pairs = inputs.with_vocabulary(inputs.read_any_triples(triples), self.n_tags, pairs)
        data = Conditioning.from_triples(kept, tracks=tracks, pairs=pairs)
        inference_options(self, (self.n_hidden, len(data.tags)))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=3)
        rng = np.random.default_rng(seeds[0])
        held_out = hold_out(rng, data, self.validation_fraction, MAX_HELD_OUT)
        chosen = self.auxiliary
        parts = (chosen,) if isinstance(chosen, str) else tuple(chosen)
        for name in set(parts) - set(inputs.PARTS):
            known = ", ".join(map(repr, inputs.PARTS))
            raise DataError(f"'auxiliary' must be a selection of {known}. Got {name!r}.")
        conditions, result = self._train(data, held_out, seeds[1:], self.max_epochs, parts)
        gradient_tagger.begin_history(self)
        gradient_tagger.keep(self, [result])
        self._data, self._conditions = data, conditions
        self.baseline_ = rates_log_likelihood(data, held_out)
        if len(held_out) and self.refit and not result.interrupted:
            none = np.zeros(0, np.intp)
            conditions, again = self._train(data, none, seeds[1:], result.best_epoch, parts)
            if not again.interrupted:
                self._conditions = conditions
                self._params = gradient_tagger.numpy_params(again.params)
            result = result._replace(interrupted=again.interrupted)
        gradient_tagger.warn_if_interrupted(self, result.interrupted)
        return self

    def _train(
        self,
        data: Conditioning,
        held_out: Places,
        seeds: Ids,
        max_epochs: int,
        auxiliary: tuple[str, ...],
    ) -> tuple[Conditions, Result]:
        """Train without the held-out pairs, and stop early on them if there are any."""
        known = inputs.without(data, held_out)
        others = None
        if self.conditioning == "other_users":
            others = inputs.others_of(known, float(self.prior_users))
        conditions = inputs.conditions_of(known, auxiliary, others)
        hidden = tuple(float(self.hide_user) * (name == "user") for name in conditions.names)
        gradient = conditional_gradient(self)
        [result] = gradient_tagger.descend(
            [self],
            [self._start(np.random.default_rng(seeds[0]), known, conditions)],
            (*conditions(known, known.user, known.item), known.y.toarray().astype(np.float32)),
            gradient=HiddenConditions(gradient, hidden, float(self.hide_all)),
            optimiser=Optimiser("adam", 0.9),
            penalties=[self._penalty(conditions, len(known))],
            row_rate=float(self.row_rate) if conditions.names else None,
            max_epochs=max_epochs,
            seeds=[int(seeds[1])],
            score=self._score(known, data, conditions, held_out),
            title="" if len(held_out) else ", all pairs",
        )
        return conditions, result

    def _start(self, rng: Rng, data: Conditioning, conditions: Conditions) -> Params:
        """Small random weights, no effect of user, track or clip, and d at the tags' log-odds."""
        n, n_tags, rates = self.n_hidden, len(data.tags), inputs.tag_rates(data)
        U = rng.normal(0, 0.01, (n, n_tags))
        W = rng.normal(0, 1, (n, 0 if conditions.others is None else n_tags))
        V = np.zeros((sum(conditions.sizes), n_tags))
        return gradient_tagger.single_precision(
            Params, U, W, V, np.zeros(n), np.log(rates / (1 - rates))
        )

    def _penalty(self, conditions: Conditions, n_pairs: int) -> Penalty:
        """How strongly weights are pulled to 0, relative to the sum of the pairs' log-likelihoods.

        ``others_l1`` is a threshold in each Adam step on W. The loss is the mean over pairs; V's
        rows get their share in every minibatch.
        """
        share = min(self.batch_size, n_pairs) / n_pairs
        parts = conditions.names

        def strengths(**values: Any) -> Params:
            return gradient_tagger.single_precision(
                Params, *(values.get(name, 0) for name in Params._fields)
            )

        rows_l1 = dict.fromkeys(parts, float(self.rows_l1) * share)
        rows_l2 = {name: float(getattr(self, f"{name}_l2")) * share for name in parts}
        return Penalty(
            strengths(V=conditions.column(rows_l1), W=float(self.others_l1)),
            strengths(V=conditions.column(rows_l2)),
            strengths(U=float(self.tags_l2) / n_pairs, W=float(self.others_l2) / n_pairs),
        )

    def _score(
        self, known: Conditioning, data: Conditioning, conditions: Conditions, held_out: Places
    ) -> Any:
        """Mean log-likelihood per tag of the held-out pairs, as tags of new users; None without."""
        if not len(held_out):
            return None
        user = np.full(len(held_out), -1, np.int32)
        u, a = conditions(known, user, data.item[held_out])
        y = data.y[held_out].toarray()
        options = inference_options(self, (self.n_hidden, y.shape[1]), quick=True)
        unknown = np.full_like(y, np.nan)

        def score(params: Params, _: Any) -> Floats:
            [found] = zip(*params, strict=True)  # the stack of one
            return np.array([log_likelihood(y, infer(Params(*found), u, a, unknown, options).y)])

        return score

    @property
    def params_(self) -> Params:
        """U (n, C), W (n, C or 0), V (one row for each user, track and clip, C), c (n,), d (C,)."""
        check_is_fitted(self)
        return self._params

    tags_ = property(lambda self: self._names("tags"), doc="The vocabulary, (n_tags,).")
    items_ = property(lambda self: self._names("items"), doc="The clips, (n_items,).")
    users_ = property(lambda self: self._names("users"), doc="The users, (n_users,).")

    def _names(self, kind: str) -> NDArray[Any]:
        check_is_fitted(self)
        return np.array(getattr(self._data, kind).to_list(), dtype=object)

    def smooth(self, items: Any = None) -> Smoothed:
        """p(y_j = 1) for a new user on clips, given all users' tags.

        ``items`` names clips in the triples; by default all of them, in the order of ``items_``.
        """
        check_is_fitted(self)
        names = self._data.items
        codes = np.arange(len(names), dtype=np.int32)
        if items is not None:
            codes = inputs.name_codes(items, names, name="items")
            if (codes < 0).any():
                strange = ([items] if isinstance(items, str) else list(items))[int(codes.argmin())]
                raise DataError(
                    f"'items' must name clips of the training triples. {strange!r} is "
                    f"not among the {len(names):,}."
                )
        new = np.full(len(codes), -1, np.int32)
        return Smoothed(names.gather(codes), self._data.tags, self._predict(new, codes))

    def changes(self, smoothed: Smoothed | None = None) -> pl.DataFrame:
        """Which tags smoothing fills in, and which it doubts.

        Filled in: nobody gave the clip the tag, but it is at least as probable as for the median
        clip that has it. Doubted: somebody gave it, but it is less than half as probable as for
        users and clips in general. The columns: item, tag, change ("filled in" or "doubted"), count
        and users (how many gave it, of how many), and probability. ``smoothed``, the result of
        ``smooth()`` for all clips, saves time if you have it.
        """
        P = (self.smooth() if smoothed is None else smoothed).values
        check_is_fitted(self)
        if P.shape != self._data.counts.shape:
            raise DataError(
                f"'smoothed' must have all {len(self._data.items):,} clips, as from smooth(). "
                f"Got {len(P):,}."
            )
        return inputs.changes(self._data, P)

    def predict_user(self, user: Any, clip: Any) -> Smoothed:
        """p(y_j = 1) for a known user on a clip, given the others' tags.

        The user's own tags for the clip are not used. ``user`` and ``clip`` are names, or sequences
        of names to pair up. An unknown user counts as new; for an unknown clip, only the user's
        habits count.
        """
        check_is_fitted(self)
        users = inputs.name_codes(user, self._data.users, name="user")
        clips = inputs.name_codes(clip, self._data.items, name="clip")
        if len(users) != len(clips) and 1 not in (len(users), len(clips)):
            raise DataError(
                "'user' and 'clip' must have the same length, or one must be a single name. "
                f"Got {len(users):,} users and {len(clips):,} clips."
            )
        users, clips = (np.ascontiguousarray(c) for c in np.broadcast_arrays(users, clips))
        asked = [clip] * len(clips) if isinstance(clip, str) else [str(name) for name in clip]
        names = pl.Series(asked * (len(clips) // len(asked)), dtype=pl.String)
        return Smoothed(names, self._data.tags, self._predict(users, clips))

    def suggest(self, tags: Any, n: int = 10) -> pl.DataFrame:
        """What else people who use these tags would say, whatever the clip.

        What they said counts first, and the model if few used these tags: see
        :func:`~harmonium.estimators.pairs.with_counts`. ``tags`` is a tag or several. The n most
        probable other tags, with the columns tag, probability (given these tags), and usual (its
        probability without them).
        """
        check_is_fitted(self)
        vocabulary = self._data.tags.to_list()
        found = inputs.tag_positions(tags, vocabulary)
        given = np.full((2, len(vocabulary)), np.nan, np.float32)
        given[0, found] = 1
        model, rates = self._without_clip(given)
        present = inputs.with_counts(model, self._data.y, found)
        usual = inputs.with_counts(rates, self._data.y, [])
        return inputs.suggestions(self._data.tags, present, usual, found, n)

    def related(self, tag: str, n: int = 10) -> pl.DataFrame:
        """The n tags that a tag makes most likely, and the n that it makes least likely.

        The columns: tag; log_odds, by how much its log-odds are higher among those who use ``tag``
        than among those who do not, whatever the clip; its probability with and without. Strongest
        first, and the negative ones, weakest first, below.
        """
        check_is_fitted(self)
        vocabulary = self._data.tags.to_list()
        found = inputs.tag_positions([tag], vocabulary)
        given = np.full((2, len(vocabulary)), np.nan, np.float32)
        given[:, found[0]] = 1, 0
        model = self._without_clip(given)
        present = inputs.with_counts(model[0], self._data.y, found)
        absent = inputs.with_counts(model[1], self._data.y, found, present=False)
        return inputs.relations(self._data.tags, present, absent, found[0], n)

    def _predict(self, user: Codes, item: Codes) -> Floats:
        """p(y_j = 1), (N, C), for users on items, given by their codes; -1 is unknown."""
        unknown = np.full((len(user), len(self._data.tags)), np.nan, np.float32)
        return self._infer(*self._conditions(self._data, user, item), unknown)

    def _without_clip(self, given: Floats) -> Floats:
        """p(y_j = 1) given some tags, (N, C) with NaN for the others, for any user and any clip."""
        u = np.zeros((len(given), self._params.W.shape[1]), np.float32)
        a = np.full((len(given), len(self._conditions.names)), -1, np.int32)
        return self._infer(u, a, given)

    def _infer(self, u: Floats, a: Codes, y: Floats) -> Floats:
        return infer(self._params, u, a, y, inference_options(self, self._params.U.shape)).y

    # A file has the parameters, the names of users, clips, tracks and tags, and who gave which tag.

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        others = self._conditions.others
        arrays = {"baseline": np.array([self.baseline_]), **inputs.packed_pairs(self._data)}
        arrays |= gradient_tagger.history_arrays(self)
        if others is not None:
            arrays |= {"others.rates": others.rates, "others.spread": others.spread}
        about = {"parts": list(self._conditions.names), "best_epoch": self.best_epoch_}
        return arrays, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        data = self._data = inputs.unpacked_pairs(arrays)
        others, n_tags = None, len(data.tags)
        if self.conditioning == "other_users":
            rates, spread = (
                finite_array(arrays, f"others.{name}", np.float32) for name in ("rates", "spread")
            )
            others = Others(rates, spread, float(self.prior_users))
            if not rates.shape == spread.shape == (n_tags,):
                raise ValueError("the others' tags are scaled for another vocabulary")
            if not (spread > 0).all():
                raise ValueError("others.spread must be above 0")
        self._conditions = inputs.conditions_of(data, tuple(about["parts"]), others)
        self.baseline_ = float(typed_array(arrays, "baseline")[0])
        gradient_tagger.restore_history(self, arrays, about)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n, n_tags = self.n_hidden, len(self._data.tags)
        _, sizes, others = self._conditions
        W, V = (n, 0 if others is None else n_tags), (sum(sizes), n_tags)
        return {"U": (n, n_tags), "W": W, "V": V, "c": (n,), "d": (n_tags,)}


def hold_out(rng: Rng, data: Conditioning, fraction: float, at_most: int) -> Places:
    """Random pairs to stop early on, (n,); each clip keeps one pair to learn from."""
    order = rng.permutation(len(data))
    _, kept = np.unique(data.item[order], return_index=True)
    wanted = min(int(fraction * len(data)), at_most)
    return np.sort(np.delete(order, kept)[:wanted])


def rates_log_likelihood(data: Conditioning, held_out: Places) -> float:
    """Mean log-likelihood per tag of held-out pairs if only the tags' rates are known."""
    if not len(held_out):
        return float("nan")
    rates = inputs.tag_rates(inputs.without(data, held_out))
    share = np.asarray(data.y[held_out].mean(axis=0)).ravel()
    return float(np.mean(share * np.log(rates) + (1 - share) * np.log1p(-rates)))
