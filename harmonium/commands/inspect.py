"""`harmonium inspect`: a picture of one clip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harmonium.commands.options import StartOption, file_option


def inspect(
    file: Annotated[Path, typer.Argument(help="A music file.")],
    output: Annotated[
        Path, file_option("The picture to write: .png, .svg or .pdf.", "--output", "-o")
    ],
    start: StartOption = None,
    seconds: Annotated[float, typer.Option(metavar="S", min=1, help="Length of the clip.")] = 10,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A saved model, whose tags are drawn too.")
    ] = None,
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor", "-e", metavar="NAME", help="The features that the model was trained on."
        ),
    ] = "paper",
    tags: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many tags to draw, the likeliest first.")
    ] = 20,
) -> None:
    """Draw what a clip sounds like: its spectrum, and how its bands swing.

    With a model, it also draws the tags that the model gives to the clip.

    [dim]Example:[/dim]  harmonium inspect song.mp3 -o song.png --start 60
    """
    from harmonium.audio import decode
    from harmonium.audio.decoding import quoted
    from harmonium.audio.pictures import draw_clip, save_picture
    from harmonium.errors import AudioError, DataError

    clip = decode(file, seconds=seconds, start=start)
    found = [] if model is None else _tags(file, clip.start, model, extractor)[:tags]
    end = clip.start + len(clip.samples) / clip.rate
    title = f"{file.name}, {clip.start:.1f} to {end:.1f} s"
    try:
        figure = draw_clip(clip, title=title, tags=found)
    except DataError as error:
        raise AudioError(f"{quoted(file)} cannot be drawn: {error}") from None
    save_picture(figure, output)
    print(f"Drawn: {output}")


def _tags(file: Path, start: float, model: Path, extractor: str) -> list[tuple[str, float]]:
    """The model's tags for the window at ``start``, with probabilities, the likeliest first."""
    import polars as pl

    from harmonium.audio import features_of_file, get_extractor
    from harmonium.errors import DataError

    chosen = get_extractor(extractor)
    tagger = _load_tagger(model)
    names = getattr(tagger, "feature_names_in_", None)
    if names is None:
        fits = tagger.n_features_in_ == len(chosen.feature_names)
    else:
        fits = tuple(names) == chosen.feature_names
    if not fits:
        raise DataError(
            f"The model '{model}' was trained on {tagger.n_features_in_} features that are not "
            f"those of the extractor '{chosen.name}' ({len(chosen.feature_names)}). Name the one "
            "that it was trained on with --extractor."
        )
    X: Any = features_of_file(file, chosen, start=start)[None]
    if names is not None:
        X = pl.DataFrame(X, schema=list(names))
    found = zip(map(str, tagger.tags_), map(float, tagger.predict_proba(X)[0]), strict=True)
    return sorted(found, key=lambda tag: -tag[1])


def _load_tagger(path: Path) -> Any:
    """The model of a file, whichever class it is of."""
    from harmonium import estimators
    from harmonium.errors import ModelFileError
    from harmonium.estimators.model_files import read_model

    _, about = read_model(path)
    kind: Any = getattr(estimators, str(about.get("class")), None)
    if not hasattr(kind, "predict_proba"):
        raise ModelFileError(
            f"'{path}' holds a {about.get('class')}, which does not tag clips. Give the file of a "
            "tagger, such as a DiscriminativeRBM."
        )
    return kind.load(path)
