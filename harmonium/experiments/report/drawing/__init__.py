"""Pictures drawn with matplotlib, which is imported here and nowhere else."""

import io

from matplotlib.figure import Figure

from harmonium.experiments.report.drawing.bars import draw_bars
from harmonium.experiments.report.drawing.counts import draw_counts
from harmonium.experiments.report.drawing.dots import draw_dots
from harmonium.experiments.report.drawing.lines import draw_lines
from harmonium.experiments.report.drawing.style import house_style
from harmonium.experiments.report.pictures import Bars, Counts, Dots, Lines, Picture


def drawn(picture: Picture) -> dict[str, bytes]:
    """The picture as "png" and as "svg", the same bytes for the same picture."""
    with house_style():
        figure = draw(picture)
        png = _saved(figure, "png", {"Software": None})
        figure.set_layout_engine("none")  # everything has found its place
        return {
            "png": png,
            "svg": _saved(figure, "svg", {"Date": None, "Creator": None}),
        }


def draw(picture: Picture) -> Figure:
    """The picture as a figure of matplotlib, in the style that is set."""
    match picture:
        case Bars():
            return draw_bars(picture)
        case Lines():
            return draw_lines(picture)
        case Counts():
            return draw_counts(picture)
        case Dots():
            return draw_dots(picture)


def _saved(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=metadata)
    return file.getvalue()
