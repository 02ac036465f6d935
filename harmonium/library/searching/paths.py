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
N_POINTS = 9  # of the line between two tracks, at which others are compared with it
NO_GAIN = -1e-9  # a change of the cost that is rounding


def pool_between(to_start: Floats, to_end: Floats, apart: float) -> Places:
    """The tracks nearest to the straight line between two, from its start to its end, (m,).

    ``to_start`` and ``to_end`` (n,) are the similarities of tracks to both ends, which have the
    similarity ``apart``.
    """
    nearness = np.full(len(to_start), -np.inf)  # to the point of the line that is nearest
    for t in np.linspace(0, 1, N_POINTS):
        length = np.sqrt((1 - t) ** 2 + t**2 + 2 * t * (1 - t) * apart)
        to_point = ((1 - t) * to_start + t * to_end) / max(length, 1e-6)
        nearness = np.maximum(nearness, to_point)
    pool = np.argsort(-nearness, kind="stable")[:N_POOL]
    pool.sort()
    towards_end = to_end[pool] - to_start[pool]
    return pool[np.argsort(towards_end, kind="stable")]


def smoothest(similarity: Floats, n_stops: int) -> Places:
    """The ``n_stops`` ascending rows of (m, m), the first and the last among them, of least cost.

    The cost is the sum of the cubed jumps from each row to the next. Dynamic programming over the
    number of stops finds the least.
    """
    m = len(similarity)
    rows = np.arange(m)
    is_later = np.tri(m, k=-1, dtype=bool)
    steps = np.where(is_later, _cost(similarity).T, np.inf)  # cost of a step to row i from row j
    best = np.where(rows == 0, 0.0, np.inf)  # of the paths that end at each row
    previous = []  # for each further stop: the row before each row on its best path
    for _ in range(min(n_stops, m) - 1):
        total = steps + best
        previous.append(total.argmin(axis=1))
        best = total[rows, previous[-1]]
    path = [m - 1]
    for row_before in reversed(previous):
        path.append(int(row_before[path[-1]]))
    path.reverse()
    return np.array(path, np.intp)


def smooth_order(similarity: Floats) -> Places:
    """An order of all rows of (n, n), from the first one on, with small jumps.

    Always goes to the nearest one left; then reverses parts as long as that lowers the cost.
    """
    cost = _cost(similarity)
    path = _nearest_first(cost)
    while len(path) > 2:
        change = _changes_by_reversing(path, cost)
        first, last = np.unravel_index(change.argmin(), change.shape)
        if change[first, last] > NO_GAIN:
            break
        part = slice(first + 1, last + 2)
        path[part] = path[part][::-1]
    return path


def _nearest_first(cost: Doubles) -> Places:
    """All rows of (n, n), from the first one on; each is the nearest to the one before, (n,)."""
    left = cost.copy()
    path = np.zeros(len(cost), np.intp)
    for k in range(1, len(path)):
        row = path[k - 1]
        left[:, row] = np.inf
        path[k] = left[row].argmin()
    return path


def _changes_by_reversing(path: Places, cost: Doubles) -> Doubles:
    """By how much it changes the cost to reverse path[i+1 : j+2], for all i < j, (n-1, n-1)."""
    before = path[:-1]
    last = path[1:]
    after = path[2:]
    # only the steps at both ends of that part are replaced
    change = cost[before[:, None], last] - cost[before, last][:, None]
    change[:, :-1] += cost[last[:, None], after] - cost[last[:-1], after]
    change[np.tri(len(before), dtype=bool)] = 0.0
    return change


def _cost(similarity: Floats) -> Doubles:
    return np.maximum(1 - similarity.astype(float), 0.0) ** 3
