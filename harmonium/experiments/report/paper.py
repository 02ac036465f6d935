"""The numbers that the paper prints, to stand beside ours."""

CITATION = "Mandel, Pascanu, Larochelle and Bengio, arXiv:1103.2832, 2011"

MODELS = ("DRBM", "MLP", "RBM", "LOG", "SVM")
_AUCS = {
    ("mturk", 27, False): (68.8, 65.4, 65.4, 65.7, 62.3),
    ("mturk", 27, True): (68.4, 65.6, 64.6, 66.7, 66.0),
    ("mturk", 77, False): (65.9, 65.8, 62.9, 63.4, 59.2),
    ("mturk", 77, True): (65.9, 66.1, 62.4, 64.6, 64.0),
    ("majmin", 77, False): (76.1, 75.3, 70.0, 70.7, 64.5),
    ("majmin", 77, True): (74.8, 74.8, 68.2, 73.3, 71.5),
    ("lastfm", 70, False): (72.2, 72.0, 65.9, 70.3, 64.6),
    ("lastfm", 100, False): (72.4, 72.4, 66.1, 70.2, 64.5),
}
"""Table 2: (dataset, number of tags, smoothed) -> mean AUC in percent of each of `MODELS`."""

_HIDDEN_UNITS = {"mturk": (50, 200), "majmin": (100, 300), "lastfm": (200, 300)}
"""Table 1: dataset -> hidden units of the DRBM and of the RBM."""


def paper_aucs(dataset: str, n_tags: int, *, smoothed: bool) -> dict[str, str]:
    """A row of Table 2: model -> mean AUC in percent; empty if the paper has no such row."""
    row = _AUCS.get((dataset, n_tags, smoothed))
    if row is None:
        return {}
    return dict(zip(MODELS, map(str, row), strict=True))


def paper_settings(dataset: str, model: str) -> dict[str, float]:
    """A row of Table 1: setting -> its value; empty if the paper has no such row."""
    if dataset not in _HIDDEN_UNITS:
        return {}
    of_drbm, of_rbm = _HIDDEN_UNITS[dataset]
    settings: dict[str, dict[str, float]] = {
        "DRBM": {"learning_rate": 0.01, "n_hidden": of_drbm},
        "RBM": {"learning_rate": 0.01, "n_hidden": of_rbm},
        "MLP": {"learning_rate": 0.001, "n_hidden": 250},
        "LOG": {"learning_rate": 2.0},
    }
    return settings.get(model, {})
