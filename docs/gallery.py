"""The pages and notebooks of the gallery, made from the scripts in examples/.

``make gallery`` runs every script, and ``make gallery ONLY="smooth_tags"`` some of them. A script
is a docstring with a title and an introduction, and then cells: a line ``# %%``, the cell's text in
comments, and its code. A page shows what each cell prints and draws.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
PAGES = Path(__file__).with_name("gallery")
ORDER = (
    "train_on_your_own_table",
    "smooth_tags",
    "compare_training_methods",
    "rbm_over_trees",
    "complete_tags",
    "calibration_and_decisions",
    "tag_a_folder",
    "map_of_a_collection",
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A piece of a script: what it says, and what it does."""

    text: str
    code: str
    first_line: int  # of the code, in the script


@dataclass(frozen=True, kw_only=True)
class Example:
    """A script of the gallery."""

    name: str
    title: str
    introduction: str
    cells: tuple[Cell, ...]


@dataclass(kw_only=True)
class Output:
    """What a cell printed, and the figures that it drew (as PNG)."""

    printed: str = ""
    figures: list[bytes] = field(default_factory=list)


def read_example(path: Path) -> Example:
    """The script, in parts.

    >>> read_example(EXAMPLES / "smooth_tags.py").title
    'Smooth tags'
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    docstring = "\n".join(lines[: starts[0]]).strip().strip('"')
    title, _, introduction = docstring.partition("\n")
    ends = [*starts[1:], len(lines)]
    cells = tuple(
        _read_cell(lines, start=start, end=end) for start, end in zip(starts, ends, strict=True)
    )
    return Example(
        name=path.stem,
        title=title.rstrip("."),
        introduction=introduction.strip(),
        cells=cells,
    )


def _read_cell(lines: list[str], *, start: int, end: int) -> Cell:
    first_line = start + 1
    while first_line < end and lines[first_line].startswith("#"):
        first_line += 1
    text = [line.removeprefix("#").removeprefix(" ") for line in lines[start + 1 : first_line]]
    return Cell(
        text="\n".join(text).strip(),
        code="\n".join(lines[first_line:end]).strip("\n"),
        first_line=first_line + 1,
    )


def run_example(example: Example) -> Iterator[Output]:
    """Run a script cell by cell in an empty folder; a cell sees the names of those before it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in example.cells:
            output = Output()
            printed = io.StringIO()
            padding = "\n" * (cell.first_line - 1)  # so that an error names the script's own line
            code = compile(padding + cell.code, str(EXAMPLES / f"{example.name}.py"), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            output.printed = printed.getvalue().rstrip()
            for number in pyplot.get_fignums():
                picture = io.BytesIO()
                pyplot.figure(number).savefig(picture, dpi=110, bbox_inches="tight")
                output.figures.append(picture.getvalue())
            pyplot.close("all")
            yield output


def write_page(example: Example, outputs: list[Output]) -> None:
    """Write the page, its figures and the notebook."""
    for picture in PAGES.glob(f"{example.name}-*.png"):
        picture.unlink()
    parts = [f"# {example.title}", example.introduction]
    n_figures = 0
    for cell, output in zip(example.cells, outputs, strict=True):
        parts += page_of(cell)
        if output.printed:
            parts.append(f"```text\n{output.printed}\n```")
        for figure in output.figures:
            n_figures += 1
            name = f"{example.name}-{n_figures}.png"
            (PAGES / name).write_bytes(figure)
            parts.append(f"![{_alternative_text(cell)}]({name})")
    parts.append(
        f"Download this example as [a script](../../examples/{example.name}.py) "
        f"or [a notebook]({example.name}.ipynb)."
    )
    page = "\n\n".join(part for part in parts if part) + "\n"
    (PAGES / f"{example.name}.md").write_text(page, encoding="utf-8")
    notebook = json.dumps(notebook_of(example), indent=1, ensure_ascii=False) + "\n"
    (PAGES / f"{example.name}.ipynb").write_text(notebook, encoding="utf-8")


def page_of(cell: Cell) -> list[str]:
    """What a page shows of a cell, apart from its output."""
    if not cell.code:
        return [cell.text]
    return [cell.text, f"```python\n{cell.code}\n```"]


def _alternative_text(cell: Cell) -> str:
    """The first sentence about the cell."""
    sentences = re.split(r"(?<=[.:?])\s", " ".join(cell.text.replace("**", "").split()))
    return sentences[0].rstrip(".:")


def notebook_of(example: Example) -> dict[str, Any]:
    """The script as a Jupyter notebook without outputs."""
    introduction = f"# {example.title}\n\n{example.introduction}"
    cells = [_markdown_cell("introduction", introduction)]
    for number, cell in enumerate(example.cells, 1):
        if cell.text:
            cells.append(_markdown_cell(f"text-{number}", cell.text))
        if cell.code:
            cells.append(
                {
                    "cell_type": "code",
                    "id": f"code-{number}",
                    "metadata": {},
                    "execution_count": None,
                    "outputs": [],
                    "source": cell.code.splitlines(keepends=True),
                }
            )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _markdown_cell(identifier: str, text: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": identifier,
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }


def main(names: list[str]) -> None:
    """Run the examples, or those that are named, and write their pages."""
    unknown = [name for name in names if name not in ORDER]
    if unknown:
        sys.exit(f"There is no example called {unknown[0]}. There are: {', '.join(ORDER)}.")
    PAGES.mkdir(exist_ok=True)
    for name in names or ORDER:
        print(f"{name} ...", flush=True)
        example = read_example(EXAMPLES / f"{name}.py")
        write_page(example, list(run_example(example)))


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "96")
    main(sys.argv[1:])
