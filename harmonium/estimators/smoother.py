"""The tag smoother: which tags a new user would give a clip, learnt from who tagged what."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.arrays import Arrays, Codes, Doubles, Floats, Ids, Places, Rng
from harmonium.data import Conditioning
from harmonium.errors import DataError
from harmonium.estimators import pairs as inputs
from harmonium.estimators.architecture import member_of, numpy_params, single_precision
from harmonium.estimators.history import EpochHistory
from harmonium.estimators.model_files import StoredEstimator, finite_array, typed_array
from harmonium.estimators.networks import DiscriminativeRBM
from harmonium.estimators.pairs import Conditions, Others
from harmonium.estimators.rbm_architecture import TAG_WEIGHTS, quick_options
from harmonium.estimators.rbm_parameters import (
    LikelihoodParameters,
    TrainingName,
    check_inference,
)
from harmonium.estimators.related_tags import relations, suggestions, tag_positions, with_counts
from harmonium.estimators.smoothed import Smoothed, changes
from harmonium.estimators.trainer import Member, Score, Trainer, batch_of
from harmonium.estimators.validation import log_likelihood
from harmonium.logistic import log_odds
from harmonium.parameters import (
    Count,
    NotNegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    estimator,
    parameter,
)
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.gradients import HiddenConditions
from harmonium.rbm.inference import InferenceOptions, infer
from harmonium.rbm.model import Params
from harmonium.rbm.training import Result, Schedule
from harmonium.scikit_learn import BaseEstimator

RBM = DiscriminativeRBM

MAX_HELD_OUT = 5000  # the most held-out pairs: more tell little, and take longer than training


@estimator
class TagSmoother(LikelihoodParameters, EpochHistory, StoredEstimator, BaseEstimator):
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
    target: Literal["new_user", "any_user"] = parameter(
        """What `smooth` gives: the probability p that a new user gives the tag, or 1 - (1 - p)^(n +
        1), that at least one of n + 1 users gives it, where n have seen the clip.""",
        default="new_user",
    )
    n_tags: Count | None = parameter("Learn the most used tags only; None for all.", default=None)
    n_hidden: Count = parameter("Number of hidden units.", default=50)
    training: TrainingName = parameter(default="pl")
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
    learning_rate: Positive = parameter("Step length.", default=0.01)
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
    _score_name = "validation"
    _score_label = "log-likelihood"

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
        triples = inputs.read_any_triples(triples)
        triples, pairs = inputs.with_vocabulary(triples, self.n_tags, pairs)
        data = Conditioning.from_triples(triples, tracks=tracks, pairs=pairs)
        parts = self._chosen_parts()
        self._options(len(data.tags))  # an error if the model could not predict
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=3)
        rng = np.random.default_rng(seeds[0])
        held_out = hold_out(rng, data, self.validation_fraction, MAX_HELD_OUT)
        conditions, result = self._train(data, held_out, parts, seeds[1:], self.max_epochs)
        self._begin_history()
        self._extend_history(result)
        self._params = numpy_params(result.params)
        self._data = data
        self._conditions = conditions
        self.baseline_ = rates_log_likelihood(data, held_out)
        interrupted = result.interrupted
        if len(held_out) and self.refit and not interrupted:
            nothing = np.zeros(0, np.intp)
            conditions, again = self._train(data, nothing, parts, seeds[1:], result.best_epoch)
            interrupted = again.interrupted
            if not interrupted:
                self._conditions = conditions
                self._params = numpy_params(again.params)
        self._warn_if_interrupted(interrupted)
        return self

    def _chosen_parts(self) -> tuple[str, ...]:
        """Which of user, track and clip ``auxiliary`` names."""
        chosen = self.auxiliary
        parts = (chosen,) if isinstance(chosen, str) else tuple(chosen)
        for name in set(parts) - set(inputs.PARTS):
            known = ", ".join(map(repr, inputs.PARTS))
            raise DataError(f"'auxiliary' must be a selection of {known}. Got {name!r}.")
        return parts

    def _options(self, n_tags: int) -> InferenceOptions:
        """How to predict."""
        options = self._inference_options(self.training, self.training_steps)
        check_inference(options, (self.n_hidden, n_tags))
        return options

    def _train(
        self,
        data: Conditioning,
        held_out: Places,
        auxiliary: tuple[str, ...],
        seeds: Ids,
        max_epochs: int,
    ) -> tuple[Conditions, Result]:
        """Train without the held-out pairs, and stop early on them if there are any."""
        known = inputs.without(data, held_out)
        others = None
        if self.conditioning == "other_users":
            others = inputs.others_of(known, float(self.prior_users))
        conditions = inputs.conditions_of(known, auxiliary, others)
        member = Member(
            start=self._start(np.random.default_rng(seeds[0]), known, conditions),
            rows=np.arange(len(known)),
            seed=int(seeds[1]),
            penalty=self._penalty(conditions, len(known)),
            schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
        )
        trainer = Trainer(
            gradient=self._gradient(conditions, len(data.tags)),
            optimiser=Optimiser("adam", 0.9),
            batch_size=self.batch_size,
            max_epochs=max_epochs,
            patience=self.patience,
            row_rate=float(self.row_rate) if conditions.names else None,
            verbose=self.verbose,
            title=type(self).__name__ + ("" if len(held_out) else ", all pairs"),
            score_label=self._score_label,
        )
        u, a = conditions(known, known.user, known.item)
        pairs = batch_of(u, known.y.toarray().astype(np.float32), a)
        score = None
        if len(held_out):
            score = self._score(known, data, conditions, held_out)
        [result] = trainer.train([member], pairs, score)
        return conditions, result

    def _gradient(self, conditions: Conditions, n_tags: int) -> HiddenConditions:
        """The gradient of the likelihood, for pairs of which some conditions are hidden."""
        hidden = [float(self.hide_user) if name == "user" else 0.0 for name in conditions.names]
        likelihood = self._likelihood_gradient((self.n_hidden, n_tags))
        return HiddenConditions(likelihood, tuple(hidden), float(self.hide_all))

    def _start(self, rng: Rng, data: Conditioning, conditions: Conditions) -> Params:
        """Small random weights, no effect of user, track or clip, and d at the tags' log-odds."""
        n_tags = len(data.tags)
        n_others = 0 if conditions.others is None else n_tags
        U = rng.normal(0, TAG_WEIGHTS, (self.n_hidden, n_tags))
        W = rng.normal(0, 1, (self.n_hidden, n_others))
        V = np.zeros((sum(conditions.sizes), n_tags))
        d = log_odds(inputs.tag_rates(data))
        return single_precision(Params, U, W, V, np.zeros(self.n_hidden), d)

    def _penalty(self, conditions: Conditions, n_pairs: int) -> Penalty:
        """How strongly weights are pulled to 0, relative to the sum of the pairs' log-likelihoods.

        ``others_l1`` is a threshold in each Adam step on W. The loss is the mean over pairs; V's
        rows get their share in every minibatch.
        """
        share = min(self.batch_size, n_pairs) / n_pairs
        l2_of_part = {"user": self.user_l2, "track": self.track_l2, "clip": self.clip_l2}
        rows_l1 = {name: float(self.rows_l1) * share for name in conditions.names}
        rows_l2 = {name: float(l2_of_part[name]) * share for name in conditions.names}
        return Penalty(
            l1=_strengths(V=conditions.column(rows_l1), W=float(self.others_l1)),
            l2=_strengths(V=conditions.column(rows_l2)),
            ridge=_strengths(U=float(self.tags_l2) / n_pairs, W=float(self.others_l2) / n_pairs),
        )

    def _score(
        self, known: Conditioning, data: Conditioning, conditions: Conditions, held_out: Places
    ) -> Score:
        """Mean log-likelihood per tag of the held-out pairs, as tags of new users."""
        new_users = np.full(len(held_out), -1, np.int32)
        u, a = conditions(known, new_users, data.item[held_out])
        y = data.y[held_out].toarray()
        unknown = np.full_like(y, np.nan)
        options = quick_options(self._options(len(data.tags)))

        def score(params: Params, numbers: Places) -> Doubles:
            P = infer(member_of(params, 0), u, a, unknown, options).y
            return np.array([log_likelihood(y, P)])

        return score

    @property
    def params_(self) -> Params:
        """U (n, C), W (n, C or 0), V (one row for each user, track and clip, C), c (n,), d (C,)."""
        check_is_fitted(self)
        return self._params

    @property
    def tags_(self) -> NDArray[Any]:
        """The vocabulary, (n_tags,)."""
        check_is_fitted(self)
        return _array_of_names(self._data.tags)

    @property
    def items_(self) -> NDArray[Any]:
        """The clips, (n_items,)."""
        check_is_fitted(self)
        return _array_of_names(self._data.items)

    @property
    def users_(self) -> NDArray[Any]:
        """The users, (n_users,)."""
        check_is_fitted(self)
        return _array_of_names(self._data.users)

    def smooth(self, items: Any = None) -> Smoothed:
        """p(y_j = 1) for a new user on clips, given all users' tags; or what ``target`` says.

        ``items`` names clips in the triples; by default all of them, in the order of ``items_``.
        """
        check_is_fitted(self)
        names = self._data.items
        if items is None:
            codes = np.arange(len(names), dtype=np.int32)
        else:
            codes = inputs.name_codes(items, names, name="items")
        if (codes < 0).any():
            asked = [items] if isinstance(items, str) else list(items)
            raise DataError(
                f"'items' must name clips of the training triples. {asked[int(codes.argmin())]!r} "
                f"is not among the {len(names):,}."
            )
        smoothed = self._of_new_users(codes)
        if self.target == "any_user":
            smoothed = smoothed.of_any_user(self._data.n_users[codes])
        return smoothed

    def changes(self, smoothed: Smoothed | None = None) -> pl.DataFrame:
        """Which tags smoothing fills in, and which it doubts.

        Filled in: nobody gave the clip the tag, but it is at least as probable as for the median
        clip that has it. Doubted: somebody gave it, but it is less than half as probable as for
        users and clips in general. The columns: item, tag, change ("filled in" or "doubted"), count
        and users (how many gave it, of how many), and probability: always a new user's.
        ``smoothed``, the result of ``smooth()`` for all clips with the target "new_user", saves
        time if you have it.
        """
        check_is_fitted(self)
        if smoothed is None or self.target != "new_user":
            smoothed = self._of_new_users(np.arange(len(self._data.items), dtype=np.int32))
        if smoothed.values.shape != self._data.counts.shape:
            raise DataError(
                f"'smoothed' must have all {len(self._data.items):,} clips, as from smooth(). "
                f"Got {len(smoothed):,}."
            )
        return changes(self._data, smoothed.values)

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
        asked = [clip] if isinstance(clip, str) else [str(name) for name in clip]
        users, clips = np.broadcast_arrays(users, clips)
        names = pl.Series(asked * (len(clips) // len(asked)), dtype=pl.String)
        return self._smoothed(names, np.ascontiguousarray(users), np.ascontiguousarray(clips))

    def suggest(self, tags: Any, n: int = 10) -> pl.DataFrame:
        """What else people who use these tags would say, whatever the clip.

        What they said counts first, and the model if few used these tags: see
        :func:`~harmonium.estimators.related_tags.with_counts`. ``tags`` is a tag or several. The n
        most probable other tags, with the columns tag, probability (given these tags), and usual
        (its probability without them).
        """
        check_is_fitted(self)
        known = tag_positions(tags, self._data.tags.to_list())
        given = np.full((2, len(self._data.tags)), np.nan, np.float32)
        given[0, known] = 1
        with_known, without = self._without_clip(given)
        present = with_counts(with_known, self._data.y, known)
        usual = with_counts(without, self._data.y, [])
        return suggestions(self._data.tags, present, usual, known, n)

    def related(self, tag: str, n: int = 10) -> pl.DataFrame:
        """The n tags that a tag makes most likely, and the n that it makes least likely.

        The columns: tag; log_odds, by how much its log-odds are higher among those who use ``tag``
        than among those who do not, whatever the clip; its probability with and without. Strongest
        first, and the negative ones, weakest first, below.
        """
        check_is_fitted(self)
        [place] = tag_positions([tag], self._data.tags.to_list())
        given = np.full((2, len(self._data.tags)), np.nan, np.float32)
        given[0, place] = 1
        given[1, place] = 0
        with_tag, without = self._without_clip(given)
        present = with_counts(with_tag, self._data.y, [place])
        absent = with_counts(without, self._data.y, [place], present=False)
        return relations(self._data.tags, present, absent, place, n)

    def _of_new_users(self, item: Codes) -> Smoothed:
        """p(y_j = 1) for a new user on clips, given by their codes."""
        new_users = np.full(len(item), -1, np.int32)
        return self._smoothed(self._data.items.gather(item), new_users, item)

    def _smoothed(self, names: pl.Series, user: Codes, item: Codes) -> Smoothed:
        """p(y_j = 1) for users on items, given by their codes; -1 is unknown."""
        unknown = np.full((len(user), len(self._data.tags)), np.nan, np.float32)
        u, a = self._conditions(self._data, user, item)
        return Smoothed(items=names, tags=self._data.tags, values=self._infer(u, a, unknown))

    def _without_clip(self, given: Floats) -> Floats:
        """p(y_j = 1) given some tags, (N, C) with NaN for the others, for any user and any clip."""
        u = np.zeros((len(given), self._params.W.shape[1]), np.float32)
        a = np.full((len(given), len(self._conditions.names)), -1, np.int32)
        return self._infer(u, a, given)

    def _infer(self, u: Floats, a: Codes, y: Floats) -> Floats:
        return infer(self._params, u, a, y, self._options(len(self._data.tags))).y

    # A file has the parameters, the names of users, clips, tracks and tags, and who gave which tag.

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {
            "baseline": np.array([self.baseline_]),
            **inputs.packed_pairs(self._data),
            **self._history_arrays(),
        }
        others = self._conditions.others
        if others is not None:
            arrays["others.rates"] = others.rates
            arrays["others.spread"] = others.spread
        about = {"parts": list(self._conditions.names), "best_epoch": self.best_epoch_}
        return arrays, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        self._data = inputs.unpacked_pairs(arrays)
        others = None
        if self.conditioning == "other_users":
            others = self._stored_others(arrays)
        self._conditions = inputs.conditions_of(self._data, tuple(about["parts"]), others)
        self.baseline_ = float(typed_array(arrays, "baseline")[0])
        self._restore_history(arrays, about)

    def _stored_others(self, arrays: Arrays) -> Others:
        rates = finite_array(arrays, "others.rates", np.float32)
        spread = finite_array(arrays, "others.spread", np.float32)
        if not rates.shape == spread.shape == (len(self._data.tags),):
            raise ValueError("the others' tags are scaled for another vocabulary")
        if not (spread > 0).all():
            raise ValueError("others.spread must be above 0")
        return Others(rates=rates, spread=spread, prior_users=float(self.prior_users))

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_tags = len(self._data.tags)
        n_others = 0 if self._conditions.others is None else n_tags
        return {
            "U": (self.n_hidden, n_tags),
            "W": (self.n_hidden, n_others),
            "V": (sum(self._conditions.sizes), n_tags),
            "c": (self.n_hidden,),
            "d": (n_tags,),
        }


def _array_of_names(names: pl.Series) -> NDArray[Any]:
    return np.array(names.to_list(), dtype=object)


def _strengths(*, U: float = 0.0, W: float = 0.0, V: float | Floats = 0.0) -> Params:
    return single_precision(Params, U, W, V, 0.0, 0.0)


def hold_out(rng: Rng, data: Conditioning, fraction: float, at_most: int) -> Places:
    """Random pairs to stop early on, (n,); each clip keeps one pair to learn from."""
    order = rng.permutation(len(data))
    _, kept = np.unique(data.item[order], return_index=True)
    n_held_out = min(int(fraction * len(data)), at_most)
    return np.sort(np.delete(order, kept)[:n_held_out])


def rates_log_likelihood(data: Conditioning, held_out: Places) -> float:
    """Mean log-likelihood per tag of held-out pairs if only the tags' rates are known."""
    if not len(held_out):
        return float("nan")
    rates = inputs.tag_rates(inputs.without(data, held_out))
    share = np.asarray(data.y[held_out].mean(axis=0)).ravel()
    return float(np.mean(share * np.log(rates) + (1 - share) * np.log1p(-rates)))
