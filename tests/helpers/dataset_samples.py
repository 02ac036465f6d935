"""A tiny data folder in the public formats: the text files of samples/, and arrays made here.

Every row is invented.
"""

import shutil
from pathlib import Path

import numpy as np

TEXT = Path(__file__).parent / "samples"

# Each loader with each of its options: name, options.
CASES = [
    (name, options)
    for name, several in {
        "mturk": [{"check_sizes": False}],
        "majmin": [{"check_sizes": False}],
        "majorminer": [{}, {"features": "all"}, {"features": None}],
        "emotify": [{}],
        "4q": [{}, {"features": "both"}],
        "gtzan": [{"features": "heads"}, {"features": None}],
        "hetrec": [{}, {"normalise": True}],
        "hetrec-msd": [{}, {"normalise": True}],
        "msd": [{}, {"n_tags": 2}, {"normalise": True}],
        "mulan:toy": [{}],
        "mulan:words": [{}],
    }.items()
    for options in several
]


def write_samples(folder: Path) -> Path:
    """Fill the folder as HARMONIUM_DATA would be filled, and return it."""
    shutil.copytree(TEXT, folder, dirs_exist_ok=True)
    # 106 columns; the clips in another order than that of the table, and one too many
    clips = ["clip-d", "clip-c", "clip-b", "clip-a", "clip-unused"]
    X = (np.arange(5)[:, None] * 1000 + np.arange(106)).astype(np.float32)
    columns = [f"mfcc_mean_cov.{column}" for column in range(104)] + ["loudness", "tempo"]
    np.savez_compressed(folder / "majorminer" / "features.npz", clip_id=clips, X=X, columns=columns)
    (folder / "msd-subset").mkdir()
    tracks = {"track_id": [f"TR{letter}" for letter in "ABCDE"]}
    tracks |= {"artist_id": ["AR1", "AR1", "AR2", "AR3", "AR3"]}
    tracks |= {"artist_name": ["Quotes", "Quotes", "Silent", "Zoë", "Zoë"]}
    tracks |= {"title": ["One", "Two", "Three", "Four", "Four"]}
    X, columns = np.arange(15, dtype=np.float32), ["timbre_mean_0", "tempo", "loudness"]
    file = folder / "msd-subset" / "features.npz"
    np.savez_compressed(file, X=X.reshape(5, 3), columns=columns, **tracks)
    write_msd_tags(folder / "msd-subset" / "lastfm_top500.npz")
    (folder / "emotify" / "clips").mkdir()
    for name in ("classical_1", "classical_2", "rock_1", "electronic_100", "pop_1"):
        (folder / "emotify" / "clips" / f"{name}.ogg").touch()
    (folder / "listening").mkdir()
    write_listening(folder / "listening")
    return folder


def write_listening(folder: Path) -> None:
    """Two clips of one artist and one of another; three of the two parts of GTZAN."""
    for name, items, group in (
        ("4q", ["MT1", "MT2", "MT3"], [7, 7, 9]),
        ("gtzan", ["blues.0", "hiphop.1", "blues.2"], [1, 0, 0]),
    ):
        embedding = np.arange(1200, dtype=np.float32).reshape(3, 400)
        heads = np.linspace(0.01, 0.99, 300, dtype=np.float32).reshape(3, 100)
        arrays = {"item": np.array(items), "group": np.array(group), "embedding": embedding}
        np.savez(folder / f"{name}.npz", **arrays, heads=heads)
    moods = "MT1\tmood\tLaid-Back\nMT1\tgenre\tvocal\nMT2\tmood\tcalm\nMT3\tgenre\trap\n"
    (folder / "4q_tags.tsv").write_text("item\tkind\ttag\n" + moods, encoding="utf-8")
    genres = "blues.0\tgenre\tblues\nhiphop.1\tgenre\thip hop\nblues.2\tgenre\tblues\n"
    (folder / "gtzan_tags.tsv").write_text("item\tkind\ttag\n" + genres, encoding="utf-8")


def write_msd_tags(path: Path, **changes: np.ndarray) -> None:
    """Four tags, of which "hip-hop" and "hip hop" are one; the track TRC has none."""
    weights = [[100, 0, 0, 0], [0, 20, 90, 0], [0, 0, 0, 0], [5, 60, 40, 0], [7, 0, 0, 3]]
    arrays = {
        "track_id": np.array(["TRA", "TRB", "TRC", "TRD", "TRE"]),
        "Y": np.array(weights, dtype=np.int16),
        "tags": np.array(["rock", "hip-hop", "hip hop", "slow"]),
    }
    np.savez_compressed(path, **{**arrays, **changes})


def as_arff(X, Y, *, sparse=False):
    """The text of an ARFF file with these features and labels."""
    lines = ["@relation generated"]
    lines += [f"@attribute x{column} numeric" for column in range(X.shape[1])]
    lines += [f"@attribute y{column} {{0,1}}" for column in range(Y.shape[1])]
    lines += ["@data"]
    for x, y in zip(X, Y, strict=True):
        cells = [repr(value) for value in x.tolist()] + [str(int(value)) for value in y]
        kept = [f"{i} {cell}" for i, cell in enumerate(cells) if float(cell)]
        lines.append("{" + ",".join(kept) + "}" if sparse else ",".join(cells))
    return "\n".join(lines) + "\n"


def write_toy(folder: Path, *, n: int = 60, n_features: int = 4, n_tags: int = 3) -> None:
    """mulan:toy, whose tags follow from its features but for some noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    Y = (X[:, :n_tags] + rng.normal(0, 0.7, size=(n, n_tags)) > 0).astype(int)
    place = folder / "mulan" / "toy"
    place.mkdir(parents=True)
    (place / "toy.arff").write_text(as_arff(X, Y))
    labels = "".join(f'<label name="y{tag}"></label>' for tag in range(n_tags))
    (place / "toy.xml").write_text(f"<labels>{labels}</labels>")


RECIPE = """
title = "Toy"
form = "comparison"
search_folds = 1
n_folds = 3

[[dataset]]
name = "mulan:toy"
label = "toy"
groups = "item"

[[model]]
name = "LOG"
estimator = "sklearn.LogisticRegression"
search = [
    { C = [0.01, 0.1, 1.0, 10.0] },
    { fit_intercept = [true, false] },
]

[[model]]
name = "fixed"
estimator = "sklearn.LogisticRegression"
settings = { C = 0.5 }
"""
