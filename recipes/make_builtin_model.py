"""Makes the built-in model, and its card, from the data folder.

    HARMONIUM_DATA=FOLDER python recipes/make_builtin_model.py            # writes both
    HARMONIUM_DATA=FOLDER python recipes/make_builtin_model.py --check    # compares them

The same data on the same machine gives the same bits. It takes the collections 4q, gtzan and
emotify (docs/datasets.md). The features of Emotify's clips are extracted by musicnn, as are those
of sounds that are no music, for which espeak-ng must be installed (`builtin_model.not_music`).
"""

import argparse
import sys
import tempfile
from pathlib import Path

from builtin_model.card import model_card
from builtin_model.corpus import listening_corpus
from builtin_model.making import make
from builtin_model.not_music import make_examples
from builtin_model.other_files import hear
from builtin_model.robustness import measure_robustness

import harmonium
from harmonium.files import write_atomically

FOLDER = Path(harmonium.__file__).parent / "library" / "builtin"


def main() -> int:
    """Make the files; 1 where --check finds that they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--collections", default="4q,gtzan,emotify", help="what to learn from")
    arguments = parser.parse_args()
    corpus = listening_corpus(arguments.collections.split(","))
    print(f"{len(corpus.X):,} clips, {len(corpus.tags)} tags", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        made = make(corpus, hear(make_examples("learn", Path(folder))))
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
