"""Logistic regression of many tags at once, to convergence, by Newton's method.

Finds, for every tag j separately, the minimum of

    (1/N) Σ_{i known} [log(1 + e^{o_ij}) - y_ij o_ij] + (λ/2) |w_j|²,      o_ij = d_j + w_j x_i

The tags share the features, so each step is a few products of the feature matrix with a matrix that
has one column per tag. Newton's equations are solved by conjugate gradients along the principal
axes of the features: there the Hessian Xᵀ diag(s) X + λ of every tag is nearly diagonal, and a few
steps are enough.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.special import expit

from harmonium.arrays import Doubles, Floats, Mask, Places
from harmonium.logistic import log_odds, softplus

MAX_NEWTON = 100  # steps
MAX_CG = 200  # conjugate gradients for each step
MAX_HALVINGS = 40  # of a step
ACCURACY = 0.1  # of the solution of Newton's equations: each step reduces the error by this
TOLERANCE = 1e-5
LEFT = 3 * ACCURACY  # of a step, for the next: the accuracy above is in another norm
ROUNDING = 1e-9  # a change of log-odds that is rounding
DESCENT = 1e-4  # share of the descent that a step's slope promises (Armijo)
BLOCK = 2**22  # entries of a (clips, tags) array to solve at a time: 32 MiB
TINY = 1e-300
MIN_VARIANCE = 1e-12  # relative to the largest; less is rounding error in single precision
SMALL = np.float32(1e-30)  # in single precision
LARGE = 1e15  # single precision also holds its square


class Regressions(NamedTuple):
    """Logistic regressions o = d + Wx + Vz on features x and further columns z."""

    W: Doubles  # (C, D)
    V: Doubles  # (C, M)
    d: Doubles  # (C,)
    converged: Mask  # (C,)


class Axes(NamedTuple):
    """X - mean = Z Bᵀ with uncorrelated columns of Z."""

    Z: Doubles  # (N, R), the coordinates
    B: Doubles  # (D, R), orthonormal columns
    mean: Doubles  # (D,)
    variance: Doubles  # (R,), of the coordinates


class _Problem(NamedTuple):
    G: Doubles  # (N, P): coordinates, further columns, ones
    single: Floats  # G in single precision
    y: Doubles  # (N, C), 0 where unknown
    weight: Doubles  # (N, C): 1 / N where known, else 0
    penalty: Doubles  # (P, 1)
    variance: Doubles  # (P, 1), of the columns of G
    allowed: Doubles  # (P, C): 1 where a regression may use a column, else 0

    def take(self, tags: Places) -> "_Problem":
        return self._replace(
            y=self.y[:, tags], weight=self.weight[:, tags], allowed=self.allowed[:, tags]
        )


def logistic_regressions(
    X: Doubles,
    Y: Doubles,
    l2: float,
    *,
    more: Doubles | None = None,
    allowed: Mask | None = None,
    weights: Floats | None = None,
    tolerance: float = TOLERANCE,
) -> Regressions:
    """The regressions of the columns of Y (N, C), from 0 to 1 or NaN, on X (N, D).

    A column's known labels are neither all 0 nor all 1. ``more`` is (N, M), additional columns;
    regression j uses those with ``allowed[j]``, (C, M), and their weights have the same penalty.
    ``weights`` are what labels count, (N, 1) or (N, C), in place of 1. A
    regression is done when the next step would change its weights by less than ``tolerance`` of
    their length, and every clip's log-odds by less than ``tolerance``. That step is not taken: it
    would be at most a share `LEFT` of the last one.
    """
    n_clips, n_tags = Y.shape
    if more is None:
        more = np.zeros((n_clips, 0))
    if allowed is None:
        allowed = np.ones((n_tags, more.shape[1]), bool)
    axes = principal_axes(X)
    n_axes = axes.Z.shape[1]
    # in units of the largest deviation, single precision holds features of any scale
    unit = float(np.sqrt(axes.variance.max(initial=0.0))) or 1.0

    G = np.hstack([axes.Z / unit, more, np.ones((n_clips, 1))])
    single = _single(G)
    penalty = np.full(G.shape[1], float(l2))
    penalty[:n_axes] /= unit**2
    penalty[-1] = 0.0
    variance = np.concatenate([axes.variance / unit**2, more.var(axis=0), [1.0]])
    may_use = np.ones((G.shape[1], n_tags))
    may_use[n_axes:-1] = allowed.T

    counts = np.broadcast_to(1.0 if weights is None else weights.astype(np.float64), Y.shape)
    theta = np.zeros((G.shape[1], n_tags))
    converged = np.zeros(n_tags, bool)
    width = max(1, BLOCK // n_clips)
    for first in range(0, n_tags, width):
        tags = slice(first, first + width)
        known = ~np.isnan(Y[:, tags])
        problem = _Problem(
            G=G,
            single=single,
            y=np.where(known, Y[:, tags], 0.0),
            weight=known * counts[:, tags] / n_clips,
            penalty=penalty[:, None],
            variance=variance[:, None],
            allowed=may_use[:, tags],
        )
        theta[:, tags], converged[tags] = _minimise(problem, tolerance)
    W = (axes.B @ theta[:n_axes] / unit).T
    return Regressions(
        W=W,
        V=theta[n_axes:-1].T,
        d=theta[-1] - W @ axes.mean,
        converged=converged,
    )


def principal_axes(X: Doubles) -> Axes:
    """Coordinates in which the features are uncorrelated; if D > N, without constant directions.

    A minimum has no weight in a direction in which no clip differs from the mean, and |w|² is the
    same in any orthonormal basis. There are min(N, D) axes.
    """
    mean = X.mean(axis=0)
    Z = X - mean
    basis = None
    if len(X) < X.shape[1]:
        basis, R = qr(Z.T, mode="economic")
        Z = R.T
    variance, rotation = eigh(Z.T @ Z / len(X), driver="evd", overwrite_a=True, check_finite=False)
    return Axes(
        Z=Z @ rotation,
        B=rotation if basis is None else basis @ rotation,
        mean=mean,
        variance=np.maximum(variance, 0),
    )


def _minimise(problem: _Problem, tolerance: float) -> tuple[Doubles, Mask]:
    """The weights (P, C) of all regressions, and which of them converged."""
    theta = np.zeros_like(problem.allowed)
    rate = (problem.weight * problem.y).sum(axis=0) / problem.weight.sum(axis=0)
    theta[-1] = log_odds(rate)
    open_ = np.arange(theta.shape[1])
    for _ in range(MAX_NEWTON):
        theta[:, open_], left = _newton_step(problem.take(open_), theta[:, open_])
        open_ = open_[~(left <= tolerance)]  # NaN does not count as converged
        if not len(open_):
            break
    return theta, ~np.isin(np.arange(theta.shape[1]), open_)


def _newton_step(problem: _Problem, theta: Doubles) -> tuple[Doubles, Doubles]:
    """θ - t H⁻¹g for each regression, with t from a line search; and how far it is from converged.

    That is the length of the step, before it is shortened, relative to the weights', or the largest
    change in a clip's log-odds if that is more; for a whole step, the part that its solution leaves
    open. It counts as 0 if log-odds only change by rounding.
    """
    o = problem.G @ theta
    p = expit(o)
    gradient = problem.G.T @ (problem.weight * (p - problem.y)) + problem.penalty * theta
    gradient *= problem.allowed
    step, along, solved = _solve(problem, problem.weight * p * (1 - p), gradient)
    t = _line_search(problem, theta, step, o, along, (gradient * step).sum(axis=0))
    # the last weight is the offset, which may be much larger than the others
    change = np.sqrt(_squares(step[:-1]) / np.maximum(_squares(theta[:-1] + t * step[:-1]), TINY))
    moved = np.abs(along).max(axis=0)
    left = np.where((t == 1) & solved, LEFT, 1.0) * np.maximum(change, moved)
    return theta + t * step, np.where(moved < ROUNDING, 0.0, left)


def _squares(columns: Doubles) -> Doubles:
    return (columns**2).sum(axis=0)


def _solve(problem: _Problem, s: Doubles, gradient: Doubles) -> tuple[Doubles, Doubles, Mask]:
    """Conjugate gradients for H δ = -g, H = Gᵀ diag(s) G + λ, for every regression.

    Returns δ and Gδ, and for which regressions δ is accurate enough. The preconditioner is the
    diagonal that H has if s does not depend on the clip. It is 0 where a regression may not use a
    column, so δ stays 0 there.
    """
    G = problem.single
    unit = np.sqrt(_squares(gradient)) + TINY  # so that no number is too small for single precision
    variance = np.maximum(problem.variance, MIN_VARIANCE)
    inverse = problem.allowed / (s.sum(axis=0) * variance + problem.penalty + TINY)
    scale = _single(inverse)
    share = _single(s)
    penalty = _single(problem.penalty)
    residual = _single(-gradient / unit)
    step = np.zeros_like(residual)
    along = np.zeros_like(share)
    z = scale * residual
    direction = z
    size = (residual * z).sum(axis=0)
    enough = ACCURACY**2 * size
    solved = np.zeros(len(size), bool)
    open_ = np.arange(len(size))  # the regressions that the arrays in the loop hold
    for _ in range(MAX_CG):
        # Very rarely, the BLAS flags a product of finite numbers as invalid. If a product is
        # not finite, its regression gets no step here and counts as not solved.
        with np.errstate(invalid="ignore"):
            G_direction = G @ direction
            H_direction = G.T @ (share * G_direction) + penalty * direction
        curvature = (direction * H_direction).sum(axis=0)
        alpha = np.where(curvature > SMALL, size / np.maximum(curvature, SMALL), np.float32(0))
        step[:, open_] += alpha * direction
        along[:, open_] += alpha * G_direction
        residual -= alpha * H_direction
        z = scale * residual
        old = size
        size = (residual * z).sum(axis=0)
        more = size > enough
        solved[open_[~more]] = True
        if not more.any():
            break
        direction = z + size / np.maximum(old, SMALL) * direction
        if not more.all():
            open_ = open_[more]
            size = size[more]
            enough = enough[more]
            direction = direction[:, more]
            residual = residual[:, more]
            scale = scale[:, more]
            share = share[:, more]
    return unit * step, unit * along, solved


def _single(values: Doubles) -> Floats:
    return np.minimum(values, LARGE).astype(np.float32)


def _line_search(
    problem: _Problem, theta: Doubles, step: Doubles, o: Doubles, along: Doubles, slope: Doubles
) -> Doubles:
    """For each regression, the largest t of 1, 1/2, 1/4, ... that lowers the objective enough.

    No product with G is needed, since the log-odds are o + t Gδ.
    """
    sign = np.where(problem.y > 0.5, -1.0, 1.0)
    rest = sign * np.minimum(problem.y, 1 - problem.y)  # 0 for labels of 0 and 1

    def objective(t: Doubles) -> Doubles:
        odds = o + t * along
        weights = theta + t * step
        loss = softplus(sign * odds) - rest * odds  # log(1 + e^o) - y o, no cancellation
        penalty = problem.penalty * weights**2
        return (problem.weight * loss).sum(axis=0) + 0.5 * penalty.sum(axis=0)

    t = np.ones(theta.shape[1])
    start = objective(np.zeros_like(t))
    for _ in range(MAX_HALVINGS):
        # rounding errors must not shorten the last steps
        short = objective(t) > start + DESCENT * t * slope + 1e-12 * np.abs(start)
        if not short.any():
            break
        t = np.where(short, t / 2, t)
    return t
