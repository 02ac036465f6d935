"""Made the files of this folder, with version 1.0; kept to show what they hold.

    git checkout v1.0 && PYTHONPATH=.:tests/helpers python make_1_0.py FOLDER

library-1.0.db.gz: sixty tracks of made-up features, people's tags, a trained model with what it
learnt from answers, a renamed and a hidden tag, a saved search, a change that was undone.
models-1.0/: one small model of each estimator. expected-1.0.json: what version 1.0 said about them.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from heard_library import trained_quickly
from small_library import fill, world

import harmonium
from harmonium.library import Library


def searched(library, query):
    """Path → probability."""
    return {hit.track.path: round(hit.probability, 4) for hit in library.search(query, limit=100)}


def fitted():
    """Class → a small fitted model."""
    X, truth = world(60)
    Y = truth.astype(float)
    Y[::7, 1] = np.nan
    few = {"n_hidden": 4, "max_epochs": 3, "random_state": 0}
    users = [f"u{i % 4}" for i in range(60)]
    triples = [
        (users[i], f"c{i % 20}", f"tag {j}") for i in range(60) for j in np.flatnonzero(truth[i])
    ]
    smoother = harmonium.TagSmoother(n_hidden=4, max_epochs=3, random_state=0)
    smoother.fit(tuple(map(list, zip(*triples, strict=True))))
    return X, {
        "DiscriminativeRBM": harmonium.DiscriminativeRBM(**few).fit(X, Y),
        "DiscriminativeRBM-cd": harmonium.DiscriminativeRBM(training="cd", n_models=1, **few).fit(
            X, Y
        ),
        "GenerativeRBM": harmonium.GenerativeRBM(**few).fit(X, Y),
        "MLPTagger": harmonium.MLPTagger(**few).fit(X, Y),
        "LogisticTagger": harmonium.LogisticTagger(solver="newton").fit(X, Y),
        "SVMTagger": harmonium.SVMTagger().fit(X, Y),
        "TagSmoother": smoother,
    }


def main(folder: Path) -> None:
    place = folder / "library.db"
    with Library.open(place) as library:
        fill(library, 60, tagged=40, artists=10)
        with trained_quickly(n_hidden=6):
            library.train()
        library.tag_all()
        library.say(50, "rock", "-mellow")
        library.say(51, yes=["late night"])
        for number in (52, 53, 54, 55, 56):
            library.say(number, "late night")
        library.rename("jazz", "Jazz Music")
        library.hide("live")
        library.save_search("Evening", "mellow -rock", limit=10)
        library.undo(library.say(57, "rock").change)
        tags = {
            entry.tag: [entry.owner, entry.people, entry.predicted, entry.hidden]
            for entry in library.tags.list()
        }
        expected = {
            "tags": tags,
            "rock": searched(library, "rock"),
            "late night": searched(library, "late night"),
            "jazz -rock": searched(library, '"jazz music" -rock'),
            "evening": [hit.track.path for hit in library.searches.run("Evening")],
            "changes": [change.command for change in library.changes.list()],
        }
    data = place.read_bytes()
    place.unlink()
    (folder / "library-1.0.db.gz").write_bytes(gzip.compress(data, mtime=0))
    (folder / "models-1.0").mkdir(exist_ok=True)
    X, models = fitted()
    np.save(folder / "models-1.0/X.npy", X[:5])
    expected["models"] = {}
    for name, model in models.items():
        model.save(folder / f"models-1.0/{name}.safetensors")
        if name == "TagSmoother":
            smoothed = model.smooth()
            expected["models"][name] = smoothed.frame().drop("item").to_numpy().round(5).tolist()
        elif name == "SVMTagger":
            expected["models"][name] = model.decision_function(X[:5]).round(5).tolist()
        else:
            expected["models"][name] = model.predict_proba(X[:5]).round(5).tolist()
    (folder / "expected-1.0.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
