"""Draws docs/figures/plots.png: what harmonium.plots shows of a model of emotions.

HARMONIUM_DATA=FOLDER python docs/figures/plots.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from harmonium import DiscriminativeRBM, plots
from harmonium.experiments.datasets import CATALOGUE, load_dataset

SHORT = ("amazed", "happy", "relaxing", "quiet", "sad", "angry")  # the six tags, in their order


def main() -> None:
    """Fit on all clips, and draw what the members say about their held-out folds."""
    data = load_dataset(CATALOGUE["emotions"])
    model = DiscriminativeRBM(random_state=0).fit(data.X, data.Y, groups=data.groups)
    model.tags_ = [*SHORT]
    figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    plots.plot_history(model, ax=axes[0, 0])
    plots.plot_roc(data.Y, model.held_out_, tags=SHORT, ax=axes[0, 1])
    plots.plot_precision_recall(data.Y, model.held_out_, tags=SHORT, ax=axes[0, 2])
    plots.plot_reliability(data.Y, model.held_out_, ax=axes[1, 0])
    plots.plot_dependence(model, ax=axes[1, 1])
    axes[1, 2].axis("off")
    figure.savefig(Path(__file__).parent / "plots.png", dpi=80)


if __name__ == "__main__":
    main()
