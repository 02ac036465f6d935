"""The settings by which a model trains as the paper says; its defaults are ours."""

from typing import Any

from harmonium.errors import DataError, did_you_mean

SCALING = {"scale_features": "standard", "unit_norm": True}
"""Each feature to zero mean and unit variance, then each clip's vector to norm 1."""

DESCENT = {
    "batch_size": 1,
    "optimizer": "sgd",
    "momentum": 0.0,
    "schedule": "constant",
    "averaging": 0.0,
    "l1": 0.0,
    "l2": 0.0,
    "calibrate": False,
}
"""θ ← θ - λ ∂loss/∂θ after each example, as in the algorithms of the appendix."""

OPTIONS: dict[str, dict[str, Any]] = {
    "DiscriminativeRBM": {
        "n_hidden": 100,
        "learning_rate": 0.01,
        "training": "cd",
        "training_steps": 1,
        "n_models": 1,
        "l2_tags": None,
        **DESCENT,
        **SCALING,
    },
    "GenerativeRBM": {
        "n_hidden": 300,
        "learning_rate": 0.01,
        "training_steps": 1,
        **DESCENT,
        **SCALING,
    },
    "MLPTagger": {
        "n_hidden": 250,
        "learning_rate": 0.001,
        "n_models": 1,
        **DESCENT,
        **SCALING,
    },
    "LogisticTagger": {
        "solver": "gradient",
        "learning_rate": 2.0,
        **DESCENT,
        **SCALING,
    },
    "SVMTagger": SCALING,
}
"""By the name of an estimator. Step and hidden units are those of Table 1, for MajorMiner."""


def paper_options(estimator: Any = "DiscriminativeRBM") -> dict[str, Any]:
    """The settings by which an estimator of the paper trains as the paper says.

    Plain gradient descent, a step after each clip, no penalty and no averaging; features of zero
    mean and unit variance, clips of norm 1; step and hidden units of the paper's Table 1, for
    MajorMiner. What the paper does not say keeps its default: the weights at the start, when to
    stop, and ν of the SVM. Each clip is a step of its own, so training is slow.

    Parameters
    ----------
    estimator : a class or its name: DiscriminativeRBM, GenerativeRBM, MLPTagger, LogisticTagger
        or SVMTagger.

    Examples
    --------
    >>> from harmonium import DiscriminativeRBM, MLPTagger, paper_options
    >>> DiscriminativeRBM(**paper_options()).batch_size
    1
    >>> MLPTagger(**{**paper_options(MLPTagger), "n_hidden": 50}).learning_rate
    0.001
    """
    name = getattr(estimator, "__name__", estimator)
    if name not in OPTIONS:
        hint = did_you_mean(str(name), OPTIONS)
        raise DataError(
            f"estimator must be one that the paper trains: {', '.join(OPTIONS)}. "
            f"Got {name!r} instead.{hint}"
        )
    return dict(OPTIONS[name])
