"""What an installed Harmonium must do, whoever runs it: ``python story.py`` in an empty folder.

It uses nothing from the repository except this file: the installed command line, on the generated
collection; the page of ``harmonium serve``; the estimators, their files, and the package's data.
"""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

PROGRAM = Path(sys.executable).parent / "harmonium"
LIBRARY = "demo/library.db"


def harmonium(*arguments: str) -> str:
    """What a command prints; raises an error if it fails."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"harmonium {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def check_package() -> None:
    """The installed package is used, and is complete."""
    import harmonium as package
    from harmonium.library.model.builtin import builtin_model

    home = Path(package.__file__).parent
    assert home.is_relative_to(sys.prefix), home
    assert package.__version__ == version("harmonium")
    assert harmonium("--version").strip() == f"harmonium {package.__version__}"
    assert "Write tags into the music files" in harmonium("--help")
    assert "Scan folders of music" in harmonium("index", "--help")
    assert len(builtin_model().vocabulary) > 200
    recipes = harmonium("experiment", "list").splitlines()
    assert any(line.startswith("table2") for line in recipes), recipes
    assert (home / "py.typed").is_file()


def check_commands() -> None:
    """Index, import, train, tag and search; then write and undo in the library that they made."""
    harmonium("demo", "demo", "--tracks", "40", "--jobs", "1")
    tags = ["-L", LIBRARY]
    assert len(harmonium("search", "mellow", *tags).splitlines()) > 3
    harmonium("write", "--precision", "0", "--yes", *tags)
    harmonium("undo", *tags)
    harmonium("doctor", *tags)


def check_page() -> None:
    """The server gives its page, a module of it, and an answer of the API."""
    command = [PROGRAM, "serve", "-L", LIBRARY, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            for line in server.stdout:
                if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
                    break
            address = found[0].decode()
            for path, part in {
                "/": b"<!doctype html>",
                "/static/app.js": b"import",
                "/api/v1/search?q=mellow&limit=3": b'"hits"',
            }.items():
                with urlopen(address + path, timeout=60) as answer:
                    assert part in answer.read(), path
        finally:
            server.terminate()


def check_estimators() -> None:
    """Fit, predict, complete, save and load."""
    import numpy as np

    import harmonium
    from harmonium import DiscriminativeRBM, LogisticTagger, TagSmoother
    from harmonium.synthetic import make_collection

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)).astype(np.float32)
    Y = (X[:, :4] + rng.normal(size=(200, 4)) > 0).astype(float)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    settings = {"max_epochs": 30, "random_state": 0}
    exact = LogisticTagger(solver="newton")
    for model in (DiscriminativeRBM(**settings), LogisticTagger(**settings), exact):
        model.fit(X[:150], Y[:150])
        assert model.score(X[150:], Y[150:]) > 0.7, model
        model.save("model.safetensors")
        again = harmonium.load("model.safetensors")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    smoother = TagSmoother(max_epochs=2, random_state=0)
    smoother.fit(make_collection(n_tracks=8, seed=0).triples)
    assert smoother.smooth().frame().height > 0


if __name__ == "__main__":
    for check in (check_package, check_commands, check_page, check_estimators):
        check()
        print(check.__name__, "passed", flush=True)
