"""Orders by sound: a path from one track to another, and a smooth order of several tracks.

A jump is one minus the similarity of two neighbours (`likeness.similarity_matrix`). A path has as
many stops as asked for, each closer to its end and farther from its start than the one before. Of
all such paths it has the least sum of cubed jumps: one large jump costs more than many small ones.
docs/benchmarks.md compares it with other ways.
"""

import numpy as np

from harmonium.arrays import Doubles, Floats, Places

MAX_STOPS = 500  # of a path or of a smooth order
N_POOL = 1000  # tracks that a path chooses from


def pool_between(to_start: Floats, to_end: Floats, apart: float) -> Places:
    """The tracks nearest to the straight line between two, from its start to its end, (m,).

    ``to_start`` and ``to_end`` (n,) are the similarities of tracks to both ends, which have the
    similarity ``apart``.
    """
    near = np.full(len(to_start), -np.inf)
    for t in np.linspace(0, 1, 9):
        length = np.sqrt((1 - t) ** 2 + t**2 + 2 * t * (1 - t) * apart)
        near = np.maximum(near, ((1 - t) * to_start + t * to_end) / max(length, 1e-6))
    pool = np.sort(np.argsort(-near, kind="stable")[:N_POOL])
    return pool[np.argsort((to_end - to_start)[pool], kind="stable")]


def smoothest(similarity: Floats, n_stops: int) -> Places:
    """The ``n_stops`` ascending rows of (m, m), the first and the last among them, of least cost.

    The cost is the sum of the cubed jumps from each row to the next. Dynamic programming over the
    number of stops finds the least.
    """
    m = len(similarity)
    steps = np.where(np.tri(m, k=-1, dtype=bool), _cost(similarity).T, np.inf)  # to, from before
    best, before = np.where(np.arange(m) == 0, 0.0, np.inf), []
    for _ in range(min(n_stops, m) - 1):
        total = steps + best
        before.append(total.argmin(axis=1))
        best = total[np.arange(m), before[-1]]
    path = [m - 1]
    for choice in reversed(before):
        path.append(int(choice[path[-1]]))
    return np.array(path[::-1], np.intp)


def smooth_order(similarity: Floats) -> Places:
    """An order of all rows of (n, n), from the first one on, with small jumps.

    Always goes to the nearest one left; then reverses parts as long as that lowers the cost.
    """
    n, cost = len(similarity), _cost(similarity)
    left = cost.copy()
    path = np.zeros(n, np.intp)
    for k in range(1, n):
        left[:, path[k - 1]] = np.inf
        path[k] = left[path[k - 1]].argmin()
    while n > 2:
        before, last, after = path[:-1], path[1:], path[2:]
        # reversing the rows from last[i] to last[j] replaces the steps at both ends
        change = cost[before[:, None], last] - cost[before, last][:, None]
        change[:, :-1] += cost[last[:, None], after] - cost[last[:-1], after]
        change[np.tri(n - 1, dtype=bool)] = 0.0
        i, j = np.unravel_index(change.argmin(), change.shape)
        if change[i, j] > -1e-9:
            break
        path[i + 1 : j + 2] = path[i + 1 : j + 2][::-1]
    return path


def _cost(similarity: Floats) -> Doubles:
    return np.maximum(1 - similarity.astype(float), 0.0) ** 3
