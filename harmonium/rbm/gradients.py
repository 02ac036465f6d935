"""Ways to train: approximations to the gradient of -log p(y | u, a), behind one signature.

The gradient is a difference of two expectations of ∂E/∂θ: the positive phase, with the known tags
clamped, less the negative phase, with none. :class:`ContrastiveDivergence`, :class:`MeanField`,
:class:`BeliefPropagation` and :class:`Exact` differ in how they find the two.
:class:`PseudoLikelihood` and :class:`MultiPrediction` have other objectives, whose gradients are
exact. Each is called as ``gradient(params, batch, noise)`` and returns the gradient of the batch's
mean loss, and logits of the tags, whose likelihood is a proxy for the model's in the training
history. `OBJECTIVES` makes each of them from an estimator's parameters, by name.

Unknown tags (NaN) are inferred in the positive phase, never treated as zeros. Random numbers come
in as an array, because inside the training scan many small programs would make them.

Labels p may be probabilities: the loss is then F(p) + log Z, a bound (docs/model.md, soft targets).
The pseudo-likelihood flips single tags, which must be 0 or 1: there they are drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from harmonium.rbm.belief import (
    GROUP,
    RATIO_LIMIT,
    Estimate,
    belief_propagation,
    odds,
    sum_logs,
)
from harmonium.rbm.inference import (
    check_enumerable,
    exact,
    fill_unknown,
    gibbs_sweep,
    mean_field,
)
from harmonium.rbm.model import (
    Field,
    Params,
    clamp,
    condition,
    has_numbers,
    hidden_given_tags,
    tags_given_hidden,
)

FILL_SWEEPS = 5  # Gibbs sweeps that draw the unknown tags of a training clip
LIKELIHOOD_SWEEPS = 5  # of the contrastive divergence that ``likelihood_weight`` adds


class Batch(NamedTuple):
    """Clips to learn from."""

    u: Array  # (B, D)
    a: Array  # (B, S), indices into V, negative: none; or (B, C), a number for each tag
    y: Array  # (B, C), tags; NaN unknown
    w: Array  # (B,), weight of each clip; 0 for rows that only fill up the batch
    chains: Any = None  # (B, C), the persistent chains of the clips, if they have any
    label_weights: Any = None  # (B, C), weights of labels beside w, for those who take them


Moments = tuple[Array, Array, Array]  # E[y] (B, C), E[h] (B, n), Σ_b w_b E[h yᵀ] (n, C)


class Gradient(Protocol):
    """What the training loop asks of an objective."""

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """How many random numbers a clip needs, as (sweeps, numbers per sweep); none by default.

        ``unknown`` says whether any tag of the training data is unknown.
        """
        return 0, 0

    @property
    def is_persistent(self) -> bool:
        """Whether the negative phase keeps its chains from one step to the next."""
        return False

    @property
    def needs_binary_tags(self) -> bool:
        """Whether a label that is a probability must be drawn as 0 or 1 first."""
        return False

    @property
    def weighs_labels(self) -> bool:
        """Whether the loss is a sum over labels, each of which may have a weight of its own."""
        return False

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a model with U of this shape, if the objective cannot train it."""
        return None

    def advance(self, params: Any, batch: Batch, noise: Array) -> Any:
        """``batch.chains`` after this step's sweeps, (B, C), if the objective is persistent."""
        return batch.chains

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """The gradient of the mean loss, and logits (B, C) whose likelihood is a proxy.

        ``noise`` is uniform on [0, 1), (sweeps, B, numbers per sweep or more).
        """


@dataclass(frozen=True)
class ContrastiveDivergence(Gradient):
    """CD-K: the negative phase is the end of a K-sweep Gibbs chain started at the data."""

    steps: int = 1

    def noise(self, params: Params, unknown: bool) -> tuple[int, int]:
        """K sweeps for the chain, and some more to draw the unknown tags."""
        return self.steps + FILL_SWEEPS * unknown, sum(params.U.shape)

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """-∂/∂θ log p(y | u, a) ≈ ∂E/∂θ at (y⁰, ĥ⁰) less ∂E/∂θ at (y^K, ĥ^K)."""
        field = condition(params, batch.u, batch.a)
        start = batch.y
        if len(noise) > self.steps:
            start = fill_unknown(field, batch.y, noise[self.steps :])
        y, h = gibbs_sweep(field, start, noise[0])
        logits = field.d + h @ field.U
        if self.steps > 1:
            y, _ = lax.scan(
                lambda tags, u: (gibbs_sweep(field, tags, u)[0], None), y, noise[1 : self.steps]
            )
        positive = _factorised(start, hidden_given_tags(field, start), batch.w)
        negative = _factorised(y, hidden_given_tags(field, y), batch.w)
        return _descent(params, batch, positive, negative), logits


@dataclass(frozen=True)
class PersistentContrastiveDivergence(Gradient):
    """PCD-K: the negative phase is a Gibbs chain that goes on from step to step.

    A chain samples p(y | u, a), so each clip has one of its own, which makes K sweeps whenever its
    clip is used. Without u and a, all clips have the same distribution: there are as many chains as
    clips in a minibatch, and every minibatch moves them on.
    """

    steps: int = 1

    @property
    def is_persistent(self) -> bool:
        """Always."""
        return True

    def noise(self, params: Params, unknown: bool) -> tuple[int, int]:
        """K sweeps for the chains, and some more to draw the unknown tags."""
        return self.steps + FILL_SWEEPS * unknown, sum(params.U.shape)

    def advance(self, params: Params, batch: Batch, noise: Array) -> Array:
        """K sweeps h ~ p(h | y), y ~ p(y | h) of each chain."""
        field = condition(params, batch.u, batch.a)
        y, _ = lax.scan(
            lambda tags, u: (gibbs_sweep(field, tags, u)[0], None),
            batch.chains,
            noise[: self.steps],
        )
        return y

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """∂E/∂θ at (y, ĥ) of the data less ∂E/∂θ at (y, ĥ) of the chains, already moved on."""
        field = condition(params, batch.u, batch.a)
        start = batch.y
        if len(noise) > self.steps:
            start = fill_unknown(field, batch.y, noise[self.steps :])
        h = hidden_given_tags(field, start)
        positive = _factorised(start, h, batch.w)
        end = batch.chains
        negative = _factorised(end, hidden_given_tags(field, end), batch.w)
        return _descent(params, batch, positive, negative), field.d + h @ field.U


@dataclass(frozen=True)
class MeanField(Gradient):
    """Mean-field CD-K: like CD, with expectations in place of samples.

    The K ``steps`` of the negative phase start at the data, or ``from_zero``, as inference does.
    """

    steps: int = 5
    from_zero: bool = False

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """ŷ ← σ(d + Uᵀĥ), ĥ ← σ(c + Wu + Uŷ), K times from the data or from ŷ = 0."""
        field = condition(params, batch.u, batch.a)
        # if every tag is known, this returns the tags themselves
        start = mean_field(field, batch.y, steps=self.steps).y
        h = first = hidden_given_tags(field, start)
        if self.from_zero:
            h = hidden_given_tags(field, jnp.zeros_like(start))
        for _ in range(self.steps):
            y = tags_given_hidden(field, h)
            h = hidden_given_tags(field, y)
        logits = field.d + first @ field.U
        positive = _factorised(start, first, batch.w)
        return _descent(params, batch, positive, _factorised(y, h, batch.w)), logits


@dataclass(frozen=True)
class BeliefPropagation(Gradient):
    """Both phases by loopy belief propagation, with its pairwise marginals for E[h yᵀ].

    ``damp_logs`` damps the logarithms of the messages, as the paper does, and not their ratios.
    """

    steps: int = 10
    damping: float = 0.5
    damp_logs: bool = False

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """E_{h | y_known}[∂E/∂θ] - E_{y, h}[∂E/∂θ], both by message passing."""
        field = condition(params, batch.u, batch.a)
        free = jnp.full_like(batch.y, jnp.nan)
        negative = self._moments(field, free, batch.w)
        positive = self._moments(field, batch.y, batch.w)
        return _descent(params, batch, positive, negative), _log_odds(negative[0])

    def _moments(self, field: Field, y: Array, w: Array) -> Moments:
        beliefs = belief_propagation(
            field,
            y,
            steps=self.steps,
            damping=self.damping,
            pairs=True,
            damp_logs=self.damp_logs,
        )
        return _moments(beliefs, w)


@dataclass(frozen=True)
class Exact(Gradient):
    """Both phases by enumeration: the gradient of -log p(y_known | u, a) itself.

    For models with at most ``MAX_UNITS`` hidden units or tags.
    """

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a model that is large on both sides."""
        check_enumerable("training='exact'", shape, "training='cd'")

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """E_{y_unknown, h | y_known}[∂E/∂θ] - E_{y, h}[∂E/∂θ], summed over all states."""
        check_enumerable("The exact gradient", params.U.shape, "training='cd'")
        field = condition(params, batch.u, batch.a)
        unknown = jnp.isnan(batch.y)
        negative = self._moments(field, jnp.full_like(batch.y, jnp.nan), batch.w)
        positive = lax.cond(
            jnp.any(unknown),
            lambda: self._moments(field, batch.y, batch.w),
            lambda: _factorised(batch.y, hidden_given_tags(field, batch.y), batch.w),
        )
        return _descent(params, batch, positive, negative), _log_odds(negative[0])

    def _moments(self, field: Field, y: Array, w: Array) -> Moments:
        return _moments(exact(field, y, pairs=True), w)


@dataclass(frozen=True)
class PseudoLikelihood(Gradient):
    """The exact gradient of -Σ_j log p(y_j | y_\\j, u, a) over the known tags."""

    @property
    def needs_binary_tags(self) -> bool:
        """Always: it flips them."""
        return True

    def noise(self, params: Params, unknown: bool) -> tuple[int, int]:
        """Only for drawing the unknown tags, on which the known ones are conditioned."""
        return FILL_SWEEPS * unknown, sum(params.U.shape)

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """Algorithm 4 of the paper. With s_kj = p(h_k = 1 | y, tag j flipped), e_j = σ(o_j) - y_j:

        ∂U = Σ_b e_j s_kj + g yᵀ,  g_k = Σ_j ±e_j (s_kj - p(h_k = 1 | y)), - where y_j = 1.
        """
        field = condition(params, batch.u, batch.a)
        known = ~jnp.isnan(batch.y)
        y = fill_unknown(field, batch.y, noise) if len(noise) else batch.y
        share = (batch.w / total_weight(batch))[:, None]
        small = jnp.max(jnp.abs(field.U)) <= RATIO_LIMIT
        # the choice of form is outside the sums, so that the compiler sees them together
        logits, e, direct, g = lax.cond(
            small,
            lambda *inputs: _flip_sums(flips_by_ratios(field, y), *inputs),
            lambda *inputs: _flip_sums(flips_by_logs(field, y), *inputs),
            y,
            jnp.where(known, share, 0.0),
        )
        gradient = Params(
            direct + g.T @ y, g.T @ batch.u, _scatter(params.V, batch.a, e), g.sum(0), e.sum(0)
        )
        return gradient, logits


@dataclass(frozen=True)
class MultiPrediction(Gradient):
    """Trains for the questions asked later: p(tag | x, some of the others) by K mean-field steps.

    Some known tags of each clip are observed. The loss is the cross-entropy of the others, and its
    gradient goes through the K steps of inference that predict them. With one step and no tag
    observed this is a multi-layer perceptron with sigmoid units. For a share ``none_observed`` of
    the clips, no tag is observed; for every other clip, each known tag is observed with probability
    q ~ U(0, 1), drawn per clip.
    """

    steps: int = 5  # K, from y = 0
    none_observed: float = 0.5

    @property
    def weighs_labels(self) -> bool:
        """Always: it asks about tags one by one."""
        return True

    def noise(self, params: Params, unknown: bool) -> tuple[int, int]:
        """For each clip: whether any tag is observed, its q, and one number per tag."""
        return 1, params.U.shape[1] + 2

    def observed(self, y: Array, noise: Array) -> Array:
        """Which known tags are observed, (B, C). ``noise`` is uniform on [0, 1), (B, C + 2)."""
        n_tags = y.shape[1]
        q = jnp.where(noise[:, n_tags] < self.none_observed, 0.0, noise[:, n_tags + 1])
        return ~jnp.isnan(y) & (noise[:, :n_tags] < q[:, None])

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """∂/∂θ of -Σ_j log p_j(y_j) over the known tags j that are not observed.

        The chain rule, backwards through the steps, with e_t = ∂loss/∂(logits of step t) and
        g_t = ∂loss/∂(input of the hidden units of step t):

        e_K = p - y,  g_t = (e_t Uᵀ) h_t (1 - h_t),  e_{t-1} = (g_t U) y_{t-1} (1 - y_{t-1})
        ∂U = Σ_t h_t e_tᵀ + g_t y_{t-1}ᵀ,  ∂c = Σ_t g_t,  ∂d = Σ_t e_t
        """
        # computed once, not for each sum that needs it
        observed = lax.optimization_barrier(self.observed(batch.y, noise[0]))
        known = jnp.where(observed, batch.y, 0.0)
        field = condition(params, batch.u, batch.a)
        logits, hidden, tags = unrolled(field, jnp.where(observed, batch.y, jnp.nan), self.steps)
        asked = ~observed & ~jnp.isnan(batch.y)
        share = jnp.where(asked, weights_of_labels(batch) / total_weight(batch), 0.0)
        e = jnp.where(asked, jax.nn.sigmoid(logits) - batch.y, 0.0) * share
        es, gs = [e], []
        for h, y in zip(hidden[:0:-1], tags[:0:-1], strict=True):
            gs.append((es[-1] @ field.U.T) * h * (1.0 - h))
            es.append((gs[-1] @ field.U) * y * (1.0 - y))
        gs.append((es[-1] @ field.U.T) * hidden[0] * (1.0 - hidden[0]))
        e, g = sum(es[1:], es[0]), sum(gs[1:], gs[0])
        # an observed tag is in the input of the hidden units at every step
        U = jnp.concatenate(hidden[::-1]).T @ jnp.concatenate(es) + jnp.concatenate(
            [*gs[:-1], g]
        ).T @ jnp.concatenate([*tags[:0:-1], known])
        gradient = Params(U, g.T @ batch.u, _scatter(params.V, batch.a, e), g.sum(0), e.sum(0))
        # also for the observed tags, which are not variables above
        return gradient, field.d + hidden[-1] @ field.U


@dataclass(frozen=True)
class Sum(Gradient):
    """The gradient of first loss + weight · second loss; the logits are those of the first."""

    first: Gradient
    second: Gradient
    weight: float = 1.0

    def noise(self, params: Params, unknown: bool) -> tuple[int, int]:
        """The sweeps of both, one after the other."""
        (sweeps, width), (more, other) = (
            part.noise(params, unknown) for part in (self.first, self.second)
        )
        return sweeps + more, max(width, other)

    def __call__(self, params: Params, batch: Batch, noise: Array) -> tuple[Params, Array]:
        """Each from its own share of the noise."""
        unknown = len(noise) > self.noise(params, False)[0]
        sweeps = self.first.noise(params, unknown)[0]
        first, logits = self.first(params, batch, noise[:sweeps])
        second, _ = self.second(params, batch, noise[sweeps:])
        return jax.tree.map(lambda g, more: g + self.weight * more, first, second), logits


def unrolled(field: Field, y: Array, steps: int) -> tuple[Array, list[Array], list[Array]]:
    """K mean-field steps from 0; NaN in y is unknown, and a known tag is 0 here as a variable.

    Returns the logits of the unknown tags (B, C), the hidden units of each step, and the tags that
    each step starts from.
    """
    free = clamp(field, y)
    tags, hidden = [jnp.zeros_like(y)], [jax.nn.sigmoid(free.c)]
    logits = free.d + hidden[0] @ free.U
    for _ in range(steps - 1):
        tags.append(jax.nn.sigmoid(logits))
        hidden.append(hidden_given_tags(free, tags[-1]))
        logits = free.d + hidden[-1] @ free.U
    return logits, hidden, tags


def _moments(marginals: Estimate, w: Array) -> Moments:
    """Moments from marginals with pairs."""
    return marginals.y, marginals.h, jnp.sum(marginals.pairs * w[None, None, :], axis=2)


def _log_odds(p: Array) -> Array:
    p = jnp.clip(p, 1e-6, 1 - 1e-6)
    return jnp.log(p) - jnp.log1p(-p)


def _factorised(y: Array, h: Array, w: Array) -> Moments:
    """Moments with E[h yᵀ] = E[h] E[y]ᵀ."""
    return y, h, (w[:, None] * h).T @ y


def _descent(params: Params, batch: Batch, positive: Moments, negative: Moments) -> Params:
    """∂(-log p)/∂θ: ∂E/∂U = -hyᵀ, ∂E/∂W = -huᵀ, ∂E/∂V = -yaᵀ, ∂E/∂c = -h, ∂E/∂d = -y."""
    total = total_weight(batch)
    share = (batch.w / total)[:, None]
    (y_0, h_0, hy_0), (y_1, h_1, hy_1) = positive, negative
    h = (h_1 - h_0) * share  # (B, n)
    y = (y_1 - y_0) * share  # (B, C)
    return Params(
        (hy_1 - hy_0) / total,
        h.T @ batch.u,
        _scatter(params.V, batch.a, y),
        jnp.sum(h, axis=0),
        jnp.sum(y, axis=0),
    )


def _scatter(V: Array, a: Array, y: Array) -> Array:
    """Σ_b y_b a_bᵀ for one-hot parts a: row a_bs of the result gains y_b. Shape of V, (A, C).

    If a has a number for each tag, V is diagonal, and the result is Σ_b y_bj a_bj, (1, C).
    """
    if a.shape[1] and has_numbers(a):
        return jnp.sum(y * a, axis=0, keepdims=True)
    rows = jnp.zeros_like(V)
    for part in range(a.shape[1]):
        index = a[:, part]
        rows = rows.at[index].add(jnp.where((index >= 0)[:, None], y, 0.0), mode="drop")
    return rows


def total_weight(batch: Batch) -> Array:
    """Σ_b w_b, or the smallest positive number: a batch without weight has a gradient of 0."""
    return jnp.maximum(jnp.sum(batch.w), jnp.finfo(batch.w.dtype).tiny)


def weights_of_labels(batch: Batch) -> Array:
    """How much each label of the batch counts, (…, B, 1), or (…, B, C) if they differ."""
    of_clips = batch.w[..., None]
    return of_clips if batch.label_weights is None else of_clips * batch.label_weights


def log_probabilities(logits: Array, batch: Batch) -> Array:
    """Σ w log p(y_j) over the clips with tag j known, by tag: logits (…, B, C) to (…, C)."""
    known = ~jnp.isnan(batch.y)
    terms = log_probability(logits, jnp.where(known, batch.y, 0.0))
    return jnp.sum(jnp.where(known, weights_of_labels(batch) * terms, 0.0), axis=-2)


Flips = tuple[Array, Array, Array]
"""The model at y, and at each of its C neighbours with one tag flipped.

The logits o_j (B, C) with p(y_j = 1 | y_\\j) = σ(o_j); p(h_k = 1 | y), (B, n); and
p(h_k = 1 | y with tag j flipped), (B, n, C).
"""


def conditional_logits(field: Field, y: Array) -> Array:
    """o_j = d_j + Σ_k [softplus(a_k - U_kj y_j + U_kj) - softplus(a_k - U_kj y_j)], a = c + Uy.

    Shapes (B, C).
    """
    a = field.c + y @ field.U.T  # (B, n)
    without = a[:, :, None] - field.U[None, :, :] * y[:, None, :]  # (B, n, C)
    terms = jax.nn.softplus(without + field.U[None, :, :]) - jax.nn.softplus(without)
    return field.d + jnp.sum(terms, axis=1)


def log_probability(logits: Array, y: Array) -> Array:
    """log p(y_j) = log σ(±o_j), elementwise; y may be a probability."""
    return y * logits - jax.nn.softplus(logits)


def flips_by_ratios(field: Field, y: Array) -> Flips:
    """o_j = d_j ± Σ_k log[(1 + q_k E_kj) / (1 + q_k)], q_k = e^{a_k}; - where y_j = 1. y is binary.

    Flipping tag j multiplies the odds q_k by E_kj = e^{U_kj} (0 to 1) or e^{-U_kj} (1 to 0).
    """
    n = field.U.shape[0]
    a = field.c + y @ field.U.T  # (B, n)
    t, s = odds(a)
    rest = -n % GROUP  # units that fill up groups: t = 0, s = 1 and so a factor of 1
    U = jnp.pad(field.U, ((0, rest), (0, 0)))[None, :, :]
    t_all = jnp.pad(t, ((0, 0), (0, rest)))[:, :, None]
    s_all = jnp.pad(s, ((0, 0), (0, rest)), constant_values=1.0)[:, :, None]
    sign = 1.0 - 2.0 * y
    grown = t_all * jnp.where(sign[:, None, :] > 0, jnp.exp(U), jnp.exp(-U))  # (B, n', C)
    total = s_all + grown
    log_ratio = sum_logs(total, 1) - jnp.sum(jnp.log(s + t), axis=1, keepdims=True)  # (B, C)
    return field.d + sign * log_ratio, t / (s + t), (grown / total)[:, :n]


def flips_by_logs(field: Field, y: Array) -> Flips:
    """The same with softplus and σ, which no weight overflows."""
    a = field.c + y @ field.U.T
    sign = (1.0 - 2.0 * y)[:, None, :]
    flipped = jax.nn.sigmoid(a[:, :, None] + sign * field.U[None, :, :])
    return conditional_logits(field, y), jax.nn.sigmoid(a), flipped


def _flip_sums(at: Flips, y: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    """o, e_j (B, C), Σ_b e_j s_kj (n, C) and g_k (B, n) of Algorithm 4; ``weight`` is (B, C)."""
    logits, h, flipped = at
    e = (jax.nn.sigmoid(logits) - y) * weight
    signed = e * (1.0 - 2.0 * y)
    flipped = lax.optimization_barrier(flipped)  # computed once, not for each sum
    products = (e[:, None, :] * flipped).reshape(len(y), -1)
    direct = (jnp.ones((1, len(y)), y.dtype) @ products).reshape(flipped.shape[1:])
    g = jnp.einsum("bkj,bj->bk", flipped, signed)
    return logits, e, direct, g - h * jnp.sum(signed, axis=1, keepdims=True)


def for_soft_targets(gradient: Any) -> Any:
    """The gradient of an RBM if some labels are probabilities."""
    if getattr(gradient, "needs_binary_tags", False):
        return DrawnTags(gradient)
    parts = {field.name: getattr(gradient, field.name) for field in fields(gradient)}
    inner = {name: for_soft_targets(part) for name, part in parts.items() if callable(part)}
    return replace(gradient, **inner)


@dataclass(frozen=True)
class DrawnTags(Gradient):
    """A gradient at tags y_j ~ Bernoulli(p_j), drawn again at each visit; 0, 1 and NaN stay."""

    gradient: Gradient

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """One sweep more than the gradient takes."""
        sweeps, width = self.gradient.noise(params, unknown)
        return sweeps + 1, max(width, params.d.shape[0])

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """The gradient at y ~ p."""
        p = batch.y
        y = jnp.where(jnp.isnan(p), p, (noise[-1, :, : p.shape[1]] < p).astype(p.dtype))
        return self.gradient(params, batch._replace(y=y), noise[:-1])


@dataclass(frozen=True)
class HiddenConditions(Gradient):
    """A gradient on clips with single parts of a, or all of u and a, hidden at random.

    A smoother is used for new users and for tags without a clip, but in training every user and
    clip is known.
    """

    gradient: Gradient  # the gradient of what is left
    a: tuple[float, ...]  # the probability that each part of a is hidden, (S,)
    all: float  # the same for everything; 0 replaces u

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """One sweep more than the gradient takes."""
        sweeps, width = self.gradient.noise(params, unknown)
        return sweeps + 1, max(width, 1 + len(self.a))

    @property
    def is_persistent(self) -> bool:
        """As the gradient is."""
        return self.gradient.is_persistent

    def advance(self, params: Any, batch: Batch, noise: Array) -> Any:
        """The chains, given what is not hidden."""
        return self.gradient.advance(params, self.hidden(batch, noise[-1]), noise[:-1])

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """The gradient at the batch with some of u and a hidden."""
        return self.gradient(params, self.hidden(batch, noise[-1]), noise[:-1])

    def hidden(self, batch: Batch, draws: Array) -> Batch:
        """The batch with some of u and a hidden; ``draws`` is uniform on [0, 1), (B, ≥ 1 + S)."""
        something = draws[:, :1] >= self.all
        chances = jnp.asarray(self.a, draws.dtype)[None, :]
        a_known = something & (draws[:, 1 : 1 + len(self.a)] >= chances)
        u, a = jnp.where(something, batch.u, 0.0), jnp.where(a_known, batch.a, -1)
        return batch._replace(u=u, a=a)


# The objectives by name


class ObjectiveSettings(NamedTuple):
    """What an estimator's parameters say about its objective."""

    steps: int = 1
    damping: float = 0.5
    mean_field_start: Literal["data", "zero"] = "data"
    likelihood_weight: float = 0.0


def _mean_field(settings: ObjectiveSettings) -> Gradient:
    return MeanField(settings.steps, from_zero=settings.mean_field_start == "zero")


def _multi_prediction(settings: ObjectiveSettings) -> Gradient:
    predictions = MultiPrediction(settings.steps)
    if not settings.likelihood_weight:
        return predictions
    likelihood = ContrastiveDivergence(LIKELIHOOD_SWEEPS)
    return Sum(predictions, likelihood, settings.likelihood_weight)


OBJECTIVES: dict[str, Callable[[ObjectiveSettings], Gradient]] = {
    "cd": lambda settings: ContrastiveDivergence(settings.steps),
    "pcd": lambda settings: PersistentContrastiveDivergence(settings.steps),
    "mean_field": _mean_field,
    "lbp": lambda settings: BeliefPropagation(settings.steps, settings.damping),
    "pl": lambda settings: PseudoLikelihood(),
    "exact": lambda settings: Exact(),
    "multi_prediction": _multi_prediction,
}
"""What `training` names; `TRAINING_METHODS` in estimators/inference.py has their default steps."""
