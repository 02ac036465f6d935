"""Plots of a model and of its predictions. Each draws on ``ax``, or on a new one, and returns it.

Labels Y are clips × tags, 1, 0 or NaN (left out); P are the probabilities of the same shape.
matplotlib is loaded when a plot is drawn.

>>> import numpy as np
>>> from harmonium.plots import plot_roc
>>> ax = plot_roc(np.array([[0], [1], [1]]), np.array([[0.2], [0.1], [0.8]]), tags=["sad"])
>>> ax.get_legend().get_texts()[0].get_text()
'sad, AUC 0.50'
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Floats
from harmonium.errors import DataError
from harmonium.evaluation import auc_per_tag, average_precision_per_tag, reliability
from harmonium.evaluation.metrics import checked
from harmonium.logistic import softplus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_dependence",
    "plot_history",
    "plot_precision_recall",
    "plot_reliability",
    "plot_roc",
    "tag_dependence",
]

GREY = "#8a8a8a"
MAX_NAMED = 12  # curves that a legend names


def plot_history(model: Any, ax: "Axes | None" = None) -> "Axes":
    """The validation score by epoch, and where the parameters that were kept come from."""
    ax = _axes(ax)
    name = model._score_name
    scores = np.array(model.history_[name])
    epochs = np.arange(1, len(scores) + 1)
    if np.isfinite(scores).any():
        ax.plot(epochs, scores)
        ax.set_ylabel(f"validation {model._score_label}")
    else:
        ax.plot(epochs, model.history_["log_likelihood"])
        ax.set_ylabel("log-likelihood per tag, in training")
    if model.best_epoch_:
        ax.axvline(model.best_epoch_, color=GREY, linestyle=":")
        ax.annotate(
            f"epoch {model.best_epoch_} is kept",
            (model.best_epoch_, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            color=GREY,
        )
    ax.set_xlabel("epoch")
    return ax


def plot_roc(
    Y: ArrayLike, P: ArrayLike, tags: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """The ROC curve of each tag that has a positive and a negative, with its AUC."""
    from sklearn.metrics import roc_curve

    ax = _axes(ax)
    aucs = auc_per_tag(Y, P).values
    for tag, y, p in _tags(Y, P):
        if np.isfinite(aucs[tag]):
            false_positives, true_positives, _ = roc_curve(y, p)
            ax.plot(
                false_positives,
                true_positives,
                label=f"{_name(tags, tag)}, AUC {aucs[tag]:.2f}",
                gid=str(tag),
            )
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    _finish(ax, "share of clips without the tag", "share of clips with the tag")
    return ax


def plot_precision_recall(
    Y: ArrayLike, P: ArrayLike, tags: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Precision by recall, for each tag that has a positive, with its average precision."""
    from sklearn.metrics import precision_recall_curve

    ax = _axes(ax)
    averages = average_precision_per_tag(Y, P).values
    for tag, y, p in _tags(Y, P):
        if np.isfinite(averages[tag]):
            precision, recall, _ = precision_recall_curve(y, p)
            ax.step(
                recall,
                precision,
                where="post",
                label=f"{_name(tags, tag)}, AP {averages[tag]:.2f}",
                gid=str(tag),
            )
    _finish(ax, "recall", "precision")
    return ax


def plot_reliability(Y: ArrayLike, P: ArrayLike, ax: "Axes | None" = None) -> "Axes":
    """How often tags are true, by their probability, over all tags; dots are larger with more."""
    ax = _axes(ax)
    diagram = reliability(Y, P)
    filled = diagram.n > 0
    n = diagram.n[filled]
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    predicted = diagram.scores[filled] / n
    true = diagram.positives[filled] / n
    ax.plot(predicted, true)
    ax.scatter(predicted, true, s=10 + 90 * n / n.max())
    ax.set_title(f"calibration error {diagram.error:.3f}", fontsize="medium")
    _finish(ax, "probability", "share that is true")
    return ax


def tag_dependence(model: Any) -> Floats:
    """How much a tag's log-odds rise if another holds, for an average clip without others; (C, C).

    D_jl = Σ_k [s(c_k + U_kj + U_kl) - s(c_k + U_kj) - s(c_k + U_kl) + s(c_k)] with s = softplus:
    exact, and the same in both directions; 0 on the diagonal. Of several members, the mean.
    """
    params = getattr(model, "_params", None)
    if params is None or not {"U", "c", "d", "V"} <= set(params._fields):
        raise DataError(f"Only a fitted RBM has weights between tags. Got {type(model).__name__}.")
    U = np.reshape(params.U, (-1, *params.U.shape[-2:])).astype(np.float64)
    c = np.reshape(params.c, (-1, params.c.shape[-1])).astype(np.float64)
    members = [_dependence(*member) for member in zip(U, c, strict=True)]
    return np.mean(members, axis=0).astype(np.float32)


def _dependence(U: Doubles, c: Doubles) -> Doubles:
    total = np.zeros((U.shape[1], U.shape[1]))
    for weights, bias in zip(U, c, strict=True):
        alone = softplus(bias + weights)
        both = softplus(bias + weights[:, None] + weights[None, :])
        total += both - alone[:, None] - alone[None, :] + softplus(np.array(bias))
    np.fill_diagonal(total, 0.0)
    return total


def plot_dependence(model: Any, most: int = 30, ax: "Axes | None" = None) -> "Axes":
    """`tag_dependence` as a map, of the ``most`` dependent tags, with similar tags together."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    ax = _axes(ax)
    dependence = tag_dependence(model)
    chosen = np.sort(np.argsort(-np.abs(dependence).sum(axis=0), kind="stable")[:most])
    part = dependence[np.ix_(chosen, chosen)]
    if len(chosen) > 2:
        order = leaves_list(linkage(part, "average", optimal_ordering=True))
        chosen = chosen[order]
        part = part[np.ix_(order, order)]
    limit = float(np.abs(part).max()) or 1.0
    image = ax.imshow(part, cmap="RdBu_r", vmin=-limit, vmax=limit)
    names = [str(model.tags_[tag]) for tag in chosen]
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.figure.colorbar(image, ax=ax, label="change of log-odds", shrink=0.8)
    return ax


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _tags(Y: ArrayLike, P: ArrayLike) -> Iterator[tuple[int, Floats, Floats]]:
    """Each tag's number, and its known labels with their probabilities."""
    checked(Y, P)
    labels = np.asarray(Y, np.float32)
    for tag, (y, p) in enumerate(zip(labels.T, np.asarray(P, np.float32).T, strict=True)):
        known = ~np.isnan(y)
        yield tag, y[known], p[known]


def _name(tags: Sequence[Any] | None, tag: int) -> str:
    return str(tag if tags is None else tags[tag])


def _finish(ax: "Axes", x: str, y: str) -> None:
    ax.set(xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    handles, names = ax.get_legend_handles_labels()
    if 0 < len(names) <= MAX_NAMED:
        ax.legend(handles, names, fontsize="small", frameon=False)
