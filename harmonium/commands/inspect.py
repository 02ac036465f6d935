"""`harmonium inspect`: a picture of one clip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harmonium.commands.options import StartOption, file_option

if TYPE_CHECKING:
    from harmonium.audio import Extractor


def inspect(
    file: Annotated[Path, typer.Argument(help="A file of music.")],
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

    With a model, also the tags that it gives to the clip.

    [dim]Example:[/dim]  harmonium inspect song.mp3 -o song.png --start 60
    """
    from harmonium.audio import decode
    from harmonium.audio.clip import quoted
    from harmonium.audio.picture import draw_clip, save_picture
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
    from harmonium.audio import features_of_file, get_extractor

    chosen = get_extractor(extractor)
    tagger = _load_tagger(model)
    _check_fit(tagger, chosen, model)
    features = features_of_file(file, chosen, start=start)[None]
    probabilities = tagger.predict_proba(_with_names(features, tagger))[0]
    found = zip(map(str, tagger.tags_), map(float, probabilities), strict=True)
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


def _check_fit(tagger: Any, extractor: Extractor, path: Path) -> None:
    """Refuse a model that was trained on other features."""
    from harmonium.errors import DataError

    names = getattr(tagger, "feature_names_in_", None)
    wanted = tagger.n_features_in_ if names is None else tuple(names)
    given = len(extractor.feature_names) if names is None else extractor.feature_names
    if wanted != given:
        count = tagger.n_features_in_
        raise DataError(
            f"The model '{path}' was trained on {count} features that are not those of the "
            f"extractor '{extractor.name}' ({len(extractor.feature_names)}). Name the one that it "
            "was trained on with --extractor."
        )


def _with_names(features: Any, tagger: Any) -> Any:
    """The features as the model has seen them: with names if it knows theirs."""
    import polars as pl

    names = getattr(tagger, "feature_names_in_", None)
    return features if names is None else pl.DataFrame(features, schema=list(names))
