"""Makes the model that ships with the package, and its card, from the data folder.

    HARMONIUM_DATA=FOLDER python recipes/shipped.py            # writes both into the package
    HARMONIUM_DATA=FOLDER python recipes/shipped.py --check    # says whether they would be the same

The same data on the same machine gives the same bits. It takes the collections 4q, gtzan and
emotify (docs/datasets.md). Emotify's clips are heard by the extractor musicnn, which must have
been fetched: harmonium extractor download musicnn.
"""

import argparse
import sys
from pathlib import Path

import harmonium
from harmonium.files import write_atomically
from harmonium.shipped.card import model_card
from harmonium.shipped.corpus import listening_corpus
from harmonium.shipped.making import make
from harmonium.shipped.robustness import measure_robustness

FOLDER = Path(harmonium.__file__).parent / "shipped"


def main() -> int:
    """Make the files; 1 where --check finds that they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--collections", default="4q,gtzan,emotify", help="what to learn from")
    arguments = parser.parse_args()
    corpus = listening_corpus(arguments.collections.split(","))
    print(f"{len(corpus.X):,} clips, {len(corpus.tags)} tags", file=sys.stderr)
    made = make(corpus, lambda done, of: print(f"held out {done}/{of}", file=sys.stderr))
    if "emotify" in made.report["clips"]:
        made.report["robustness"] = measure_robustness(made.model.predict_proba, made.thresholds)
    files = {
        FOLDER / "model.safetensors": made.to_bytes(),
        FOLDER / "card.md": model_card(made.report).encode(),
    }
    for path, data in files.items():
        if not arguments.check:
            write_atomically(path, data)
            print(f"{path.name}: {len(data):,} bytes")
        elif not path.exists() or path.read_bytes() != data:
            print(f"{path.name} differs")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
