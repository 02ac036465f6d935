"""What the paper printed, to stand beside what was found here.

M. Mandel, R. Pascanu, H. Larochelle, Y. Bengio, "Autotagging music with conditional restricted
Boltzmann machines", arXiv:1103.2832, 2011. Table 1 (settings) and Table 2 (mean AUC, percent).
"""

CITATION = "Mandel, Pascanu, Larochelle and Bengio, arXiv:1103.2832, 2011"

CPU_HOURS = 48
"""What training a DRBM on MajorMiner took "on average"."""

_MODELS = ("DRBM", "MLP", "RBM", "LOG", "SVM")

AUC: dict[tuple[str, int, bool], dict[str, float]] = {
    row: dict(zip(_MODELS, values, strict=True))
    for row, values in {
        ("mturk", 27, False): (68.8, 65.4, 65.4, 65.7, 62.3),
        ("mturk", 27, True): (68.4, 65.6, 64.6, 66.7, 66.0),
        ("mturk", 77, False): (65.9, 65.8, 62.9, 63.4, 59.2),
        ("mturk", 77, True): (65.9, 66.1, 62.4, 64.6, 64.0),
        ("majmin", 77, False): (76.1, 75.3, 70.0, 70.7, 64.5),
        ("majmin", 77, True): (74.8, 74.8, 68.2, 73.3, 71.5),
        ("lastfm", 70, False): (72.2, 72.0, 65.9, 70.3, 64.6),
        ("lastfm", 100, False): (72.4, 72.4, 66.1, 70.2, 64.5),
    }.items()
}
"""Table 2: (dataset, number of tags, smoothed) -> model -> mean AUC in percent."""

LEARNING_RATE = {"DRBM": 0.01, "RBM": 0.01, "MLP": 0.001, "LOG": 2.0}
"""Table 1: model -> learning rate, the same for every dataset."""

HIDDEN_UNITS = {
    "DRBM": {"mturk": 50, "majmin": 100, "lastfm": 200},
    "RBM": {"mturk": 200, "majmin": 300, "lastfm": 300},
    "MLP": {"mturk": 250, "majmin": 250, "lastfm": 250},
}
"""Table 1: model -> dataset -> hidden units."""

DATASETS = ("mturk", "majmin", "lastfm")


def settings(dataset: str, model: str) -> dict[str, float]:
    """What Table 1 gives for a model on a dataset; empty where it gives nothing."""
    if dataset not in DATASETS or model not in LEARNING_RATE:
        return {}
    found: dict[str, float] = {"learning_rate": LEARNING_RATE[model]}
    if model in HIDDEN_UNITS:
        found["n_hidden"] = HIDDEN_UNITS[model][dataset]
    return found
