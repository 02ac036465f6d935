"""Tables and figures from results on disk. Nothing is trained, and JAX is not imported.

- ``build_report(folder)`` makes a `Report` of a folder of results: tables and figures as data.
- ``write_report(folder)`` writes it as Markdown and HTML with figures as PNG and SVG.
- ``summarise(recipe, results, measurements)`` gives the numbers behind it as arrays.

docs/experiments.md lists the files of a report.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape as escape_html
from pathlib import Path

from markdown_it import MarkdownIt
from rich.markdown import Markdown as RichMarkdown

from harmonium.errors import DataError, counted
from harmonium.experiments.report import forms
from harmonium.experiments.report.forms import Bold, Faint, Picture, Table
from harmonium.experiments.report.numbers import NOTHING, summarise
from harmonium.experiments.results import read_results

__all__ = ["Report", "build_report", "summarise", "write_report"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is written for one folder of results."""

    title: str
    paragraphs: tuple[str, ...]
    items: tuple[Table | Picture, ...]  # in the order of reading; the first table is the main one
    unfinished: str = ""  # a sentence on what is missing; empty if nothing is
    files: dict[str, str] = field(default_factory=dict)  # more files by name

    @property
    def tables(self) -> list[Table]:
        """The tables among the items."""
        return [item for item in self.items if isinstance(item, Table)]

    @property
    def figures(self) -> list[Picture]:
        """The figures among the items."""
        return [item for item in self.items if isinstance(item, Picture)]

    @property
    def shown(self) -> list[Table]:
        """What the terminal shows: the main table, and the differences that judge it."""
        main, *others = self.tables
        return [main, *(table for table in others if table.name == "differences")]


def build_report(folder: str | Path) -> Report:
    """The report of the results in a folder."""
    summary = summarise(*read_results(folder))
    recipe, form = summary.recipe, summary.recipe.form
    if not summary.scores:
        raise DataError(
            f"{folder} holds {counted(summary.n_runs, 'run')}, but no test fold of its recipe is "
            "finished yet. Let 'harmonium experiment run' continue."
        )
    items = forms.FORMS[form](summary) + forms.reliability_items(summary)
    items += [] if form == "search" else [forms.settings_table(summary)]
    items.append(forms.times_table(summary))
    runs = recipe.n_folds - 1
    whole, parts = "The score of a test fold", "runs"
    if recipe.cross_fit:
        whole, parts = "A model", "members"
    protocol = (
        f"{recipe.n_folds} folds, seed {recipe.seed}. {whole} is the mean of {runs} {parts}, each "
        f"with another of the remaining folds for early stopping and {runs - 1} for training. "
        "Standard errors are over test folds."
    )
    refitted = [model.name for model in recipe.models if recipe.cross_fit and model.refit]
    if refitted:
        protocol += f" {' and '.join(refitted)}: tested as one model of all {runs} folds."
    versions = f", made with {'; '.join(summary.versions)}" if summary.versions else ""
    made = f"{counted(summary.n_runs, 'run')} in the results{versions}."
    paragraphs = [_one_line(text) for text in (recipe.note, protocol, made) if text.strip()]
    missing = ""
    if summary.unfinished:
        begun = sum(arm.n_finished > 0 for arm in summary.unfinished)
        missing = (
            f"{len(summary.unfinished)} of {len(summary.arms)} arms are not finished, {begun} of "
            "them with some finished test folds. The report shows what is there."
        )
        paragraphs.append(Bold(f"Not finished: {missing}"))
    return Report(
        title=recipe.title,
        paragraphs=tuple(paragraphs),
        items=tuple(i for i in items if (i.records if isinstance(i, Table) else i.panels)),
        unfinished=missing,
        files={"per-tag.csv": forms.per_tag_csv(summary)} if form == "comparison" else {},
    )


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    from harmonium.experiments.report.figures import image_files  # matplotlib, only to draw

    report = build_report(results)
    files = {
        f"figures/{figure.name}.{kind}": image
        for figure in report.figures
        for kind, image in image_files(figure).items()
    }
    texts = {
        **{"report.md": markdown(report), "report.html": html_page(report, files)},
        "tables.tex": "\n".join(map(latex_table, report.tables)),
        **report.files,
    }
    files |= {name: text.encode() for name, text in texts.items()}
    folder = Path(results) / "report" if folder is None else Path(folder)
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"The report could not be written to {folder}: {error.strerror}. "
            "Name another folder with -o."
        ) from None
    return report, folder


def _one_line(text: str) -> str:
    """The text without line breaks and double spaces; non-breaking spaces stay."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip()


def escape_markdown(text: str) -> str:
    """Text without any meaning to Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", _one_line(text))


def _cells(
    row: tuple[str, ...],
    escape: Callable[[str], str] = escape_markdown,
    bold: str = "**{}**",
    faint: str = "*{}*",
) -> list[str]:
    """The escaped texts, within the marks of bold and faint ones; Markdown by default."""
    marks = {Bold: bold, Faint: faint}
    return [marks.get(type(cell), "{}").format(escape(cell)) for cell in row]


def markdown(report: Report) -> str:
    """The whole report; figures are files under figures/."""
    parts = [f"# {escape_markdown(report.title)}"]
    parts += _cells(report.paragraphs)
    for item in report.items:
        title = escape_markdown(item.title)
        image = f"![{title}](figures/{item.name}.png)"
        shown = image if isinstance(item, Picture) else markdown_table(item)
        parts += [f"## {title}", shown, escape_markdown(item.caption)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """One table, without its title and caption."""
    rows = [
        [escape_markdown(head) for head in table.header],
        [":--" if align == "l" else "--:" for align in table.alignments],
        *map(_cells, table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_HTML_STYLE = """
:root { color-scheme: light dark; font: 16px/1.55 system-ui, sans-serif; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; }
h2 { font-size: 1.2rem; margin: 2.75rem 0 .6rem; }
a { color: inherit; }
p:not(:has(img)) { max-width: 46rem; }
p:has(strong) { border-left: .3rem solid #e69f00; padding-left: .9rem; }
section { overflow-x: auto; }
section > p:last-child, td em { opacity: .75; }
table { border-collapse: collapse; border-block: 2px solid; font-variant-numeric: tabular-nums; }
thead { border-bottom: 1px solid; }
th, td { padding: .28rem .7rem; vertical-align: top; }
.group { border-top: 1px solid #8888; }
[style*=right], td:first-child { white-space: nowrap; }
img { width: 100%; max-width: 60rem; background: #fff; }
@media print { nav { display: none; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""


def html_page(report: Report, files: Mapping[str, bytes]) -> str:
    """The whole report; ``files`` hold the figures as figures/NAME.svg."""
    title = escape_html(report.title)
    head, *sections = MarkdownIt("js-default").render(markdown(report)).split("<h2>")
    links = body = ""
    for item, section in zip(report.items, sections, strict=True):
        links += f'<li><a href="#{item.name}">{escape_html(item.title)}</a></li>\n'
        parts = f'<section id="{item.name}">\n<h2>{section}</section>\n'.split("<tr>")
        for i in item.group_starts if isinstance(item, Table) else ():
            parts[i + 2] = parts[i + 2].replace("<td", '<td class="group"')  # after the header
        body += "<tr>".join(parts)
    for figure in report.figures:
        image = base64.b64encode(files[f"figures/{figure.name}.svg"]).decode()
        body = body.replace(f"figures/{figure.name}.png", f"data:image/svg+xml;base64,{image}")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_HTML_STYLE}</style>
</head>
<body>
{head}<nav aria-label="Contents">
<ul>
{links}</ul>
</nav>
{body}</body>
</html>
"""


_LATEX_CHARACTERS = str.maketrans(
    {character: rf"\{character}" for character in "{}&%$#_"}
    | {character: f"{{{character}}}" for character in "[]*"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "²": "$^2$", "≥": r"$\geq$", "≤": r"$\leq$"}
    | {"α": r"$\alpha$", "β": r"$\beta$", "ν": r"$\nu$", "χ": r"$\chi$"}
    | {"–": "--", "—": "---", "“": "``", "”": "''", "\u00a0": "~"}
)


def escape_latex(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    return _one_line(text).translate(_LATEX_CHARACTERS)


def latex_table(table: Table) -> str:
    """One table, on as many pages as it needs; with the packages booktabs and longtable."""
    caption = escape_latex(f"{table.title}. {table.caption}")
    lines = [rf"\begin{{longtable}}{{{table.alignments}}}"]
    lines += [rf"\caption{{{caption}}} \label{{tab:{table.name}}} \\", r"\toprule"]
    lines += [" & ".join(map(escape_latex, table.header)) + r" \\", r"\midrule", r"\endhead"]
    for i, row in enumerate(table.rows):
        lines += [r"\midrule"] * (i > 0 and i in table.group_starts)
        cells = _cells(row, escape_latex, r"\textbf{{{}}}", r"\textit{{{}}}")
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{longtable}", ""])


def terminal_table(table: Table, *, width: int) -> RichMarkdown:
    """The table with its title and caption, without its details.

    Standard errors are left out if they do not fit.
    """
    shown = table.header[: len(table.header) - table.details]
    records = [{heading: row.get(heading, NOTHING) for heading in shown} for row in table.records]
    text = markdown_table(replace(table, records=records))
    caption = escape_markdown(table.caption)
    if " ± " in text and max(map(len, text.splitlines())) > width:
        text = re.sub(r" ± [\d.]+", "", text)
        caption += " Standard errors are in the report: this window is too narrow for them."
    return RichMarkdown(f"**{escape_markdown(table.title)}**\n\n{text}\n\n{caption}")
