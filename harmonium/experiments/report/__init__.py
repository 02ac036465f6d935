"""Tables and figures from results on disk. Nothing is trained, and JAX is not imported.

- ``build_report(folder)`` makes a `Report` of a folder of results: tables and figures as data.
- ``write_report(folder)`` writes it as Markdown, HTML and LaTeX with figures as PNG and SVG.
- ``summarise(recipe, results, measurements)`` gives the numbers behind it as arrays.

The files of a report:

    report.md, report.html, report.tex   everything, in three formats
    tables/NAME.tex                      each table alone
    figures/NAME.png, NAME.svg           each figure alone
    per-tag.csv                          for programs, where the form has it
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape as escape_html
from pathlib import Path

from rich.markdown import Markdown as RichMarkdown

from harmonium.errors import DataError, counted
from harmonium.experiments.report import forms
from harmonium.experiments.report.forms import Bold, Faint, Picture, Table
from harmonium.experiments.report.numbers import summarise
from harmonium.experiments.results import read_results

__all__ = ["Report", "build_report", "summarise", "write_report"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is written for one folder of results."""

    title: str
    paragraphs: tuple[str, ...]
    items: tuple[Table | Picture, ...]  # in the order of reading; the first table is the main one
    unfinished: str = ""  # a sentence on what is missing; empty where nothing is
    files: dict[str, str] = field(default_factory=dict)  # further files by name

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
            "finished yet. Let 'harmonium experiment run' go on."
        )
    items = forms.FORMS[form](summary) + forms.reliability_items(summary)
    items += [] if form == "search" else [forms.settings_table(summary)]
    items += [forms.times_table(summary), forms.unfinished_table(summary)]
    runs = recipe.n_folds - 1
    protocol = (
        f"{recipe.n_folds} folds, seed {recipe.seed}. The score of a test fold is the mean of "
        f"{runs} runs, each with another of the remaining folds for early stopping and "
        f"{runs - 1} for training. Standard errors are over test folds."
    )
    versions = f", made with {'; '.join(summary.versions)}" if summary.versions else ""
    made = f"{counted(summary.n_runs, 'run')} in the results{versions}."
    unfinished = summary.unfinished
    begun = sum(arm.n_finished > 0 for arm in unfinished)
    missing = (
        f"{len(unfinished)} of {len(summary.arms)} arms are not finished, {begun} of them with "
        "some finished test folds. The report shows what is there."
    )
    return Report(
        title=recipe.title,
        paragraphs=tuple(_one_line(text) for text in (recipe.note, protocol, made) if text.strip()),
        items=tuple(i for i in items if (i.rows if isinstance(i, Table) else i.panels)),
        unfinished=missing if unfinished else "",
        files={"per-tag.csv": forms.per_tag_csv(summary)} if form == "comparison" else {},
    )


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    from harmonium.experiments.report.figures import image_files  # matplotlib, only to draw

    report = build_report(results)
    images = {figure.name: image_files(figure) for figure in report.figures}
    texts = {
        "report.md": markdown(report),
        "report.html": html_page(report, {name: files["svg"] for name, files in images.items()}),
        "report.tex": latex(report),
        **{f"tables/{table.name}.tex": latex_table(table) for table in report.tables},
        **report.files,
    }
    contents = {name: text.encode() for name, text in texts.items()}
    for name, files in images.items():
        contents |= {f"figures/{name}.{kind}": image for kind, image in files.items()}
    folder = Path(results) / "report" if folder is None else Path(folder)
    try:
        for name, content in contents.items():
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
    """The text without line ends and double spaces; non-breaking spaces stay."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip()


def _cells(row: tuple[str, ...], escape: Callable[[str], str], bold: str, faint: str) -> list[str]:
    """The escaped cells of a row, within the marks of bold and faint ones."""
    marks = {Bold: bold, Faint: faint}
    return [marks.get(type(cell), "{}").format(escape(cell)) for cell in row]


# Markdown, with the figures beside it

_MARKDOWN_RULES = {"l": ":--", "r": "--:", "c": ":-:"}


def markdown(report: Report) -> str:
    """The whole report; figures are files under figures/."""
    parts = [f"# {escape_markdown(report.title)}", *map(escape_markdown, report.paragraphs)]
    if report.unfinished:
        parts.append(f"**Not finished:** {escape_markdown(report.unfinished)}")
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
        [_MARKDOWN_RULES[align] for align in table.alignments],
        *(_cells(row, escape_markdown, "**{}**", "*{}*") for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escape_markdown(text: str) -> str:
    """Text without any meaning to Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", _one_line(text))


# HTML: one page that needs no other file

_HTML_ALIGN = {"l": "left", "r": "right", "c": "centre"}
_HTML_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --soft: #5c6370; --line: #d5d9df; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #16181b; --soft: #a5acb7; --line: #3a3f46; }
}
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; background: var(--paper);
       color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.75rem 0 .6rem; }
p, figcaption { max-width: 46rem; }
a { color: inherit; }
.caption, figcaption { color: var(--soft); font-size: .92rem; margin-top: .6rem; }
.notice { border-left: .3rem solid #e69f00; padding: .2rem .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
        border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
th, td { padding: .28rem .7rem; vertical-align: top; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
tr.group td { border-top: 1px solid var(--line); }
.left { text-align: left; } .right { text-align: right; } .centre { text-align: center; }
.right, td:first-child { white-space: nowrap; }
.faint { color: var(--soft); font-style: italic; }
figure { margin: 0; }
figure img { width: 100%; max-width: 60rem; background: #fff; border: 1px solid var(--line); }
@media print { nav { display: none; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""


def html_page(report: Report, pictures: Mapping[str, bytes]) -> str:
    """The whole report; ``pictures`` are the figures by name, as SVG."""
    title, unfinished = escape_html(report.title), escape_html(report.unfinished)
    notice = f'<p class="notice"><strong>Not finished:</strong> {unfinished}</p>\n'
    links = "".join(
        f'<li><a href="#{item.name}">{escape_html(item.title)}</a></li>\n' for item in report.items
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_HTML_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        + "".join(f"<p>{escape_html(text)}</p>\n" for text in report.paragraphs)
        + (notice if unfinished else "")
        + f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>\n'
        + "".join(_html_section(item, pictures) for item in report.items)
        + "</body>\n</html>\n"
    )


def _html_section(item: Table | Picture, pictures: Mapping[str, bytes]) -> str:
    title, caption = escape_html(item.title), escape_html(item.caption)
    if isinstance(item, Table):
        inside = f'{html_table(item)}<p class="caption">{caption}</p>\n'
    else:
        source = f"data:image/svg+xml;base64,{base64.b64encode(pictures[item.name]).decode()}"
        inside = (
            f'<figure>\n<img src="{source}" alt="{title}">\n'
            f"<figcaption>{caption}</figcaption>\n</figure>\n"
        )
    return f'<section id="{item.name}">\n<h2>{title}</h2>\n{inside}</section>\n'


def html_table(table: Table) -> str:
    """One table, without its title and caption."""
    classes = [_HTML_ALIGN[align] for align in table.alignments]
    heads = "".join(
        f'<th scope="col" class="{align}">{escape_html(head)}</th>'
        for head, align in zip(table.header, classes, strict=True)
    )
    rows = ""
    for number, row in enumerate(table.rows):
        texts = _cells(row, escape_html, "<strong>{}</strong>", '<span class="faint">{}</span>')
        cells = "".join(
            f'<td class="{align}">{text}</td>' for text, align in zip(texts, classes, strict=True)
        )
        group = ' class="group"' if number in table.group_starts else ""
        rows += f"<tr{group}>{cells}</tr>\n"
    return (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}'
        "</tbody>\n</table></div>\n"
    )


# LaTeX: each table in a file of its own, and a document of them all

MAX_LATEX_ROWS = 40
"""The rows of a table that fit on a page; a longer table is continued on the next."""

_LATEX_CHARACTERS = str.maketrans(
    {character: rf"\{character}" for character in "{}&%$#_"}
    | {character: f"{{{character}}}" for character in "[]*"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "²": "$^2$", "≥": r"$\geq$", "≤": r"$\leq$"}
    | {"α": r"$\alpha$", "β": r"$\beta$", "ν": r"$\nu$", "χ": r"$\chi$"}
    | {"–": "--", "—": "---", "“": "``", "”": "''", "\u00a0": "~"}
)
_LATEX_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=2.2cm]{geometry}
\usepackage{booktabs,caption,graphicx}
"""


def latex(report: Report) -> str:
    """A document with every table (under tables/) and figure (under figures/)."""
    parts = [
        _LATEX_PREAMBLE + rf"\title{{{escape_latex(report.title)}}}" + "\n\\author{}\n\\date{}",
        "\\begin{document}\n\\maketitle",
        *map(escape_latex, report.paragraphs),
    ]
    if report.unfinished:
        parts.append(rf"\textbf{{Not finished:}} {escape_latex(report.unfinished)}")
    for item in report.items:
        table = rf"\input{{tables/{item.name}.tex}}"
        parts.append(_latex_figure(item) if isinstance(item, Picture) else table)
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def escape_latex(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    return _one_line(text).translate(_LATEX_CHARACTERS)


def latex_table(table: Table) -> str:
    """One table, in parts if it is long. Needs the packages booktabs, caption and graphicx."""
    words = escape_latex(f"{table.title}. {table.caption}")
    caption = rf"\caption{{{words}}} \label{{tab:{table.name}}}"
    parts: list[str] = []
    start = 0
    while start < len(table.rows) or not parts:
        end = _page_end(table, start)
        parts.append(_latex_part(table, range(start, end), caption))
        caption, start = rf"\caption*{{Table~\ref{{tab:{table.name}}}, continued.}}", end
    return "\n".join(parts)


def _page_end(table: Table, start: int) -> int:
    """The row that the next page begins with: that of a group where it can."""
    full = start + MAX_LATEX_ROWS
    if len(table.rows) <= full:
        return len(table.rows)
    return max(
        (row for row in table.group_starts if full - MAX_LATEX_ROWS // 2 <= row <= full),
        default=full,
    )


def _latex_part(table: Table, rows: range, caption: str) -> str:
    """Rows of a table, scaled down where they are wider than the text."""
    head = " & ".join(map(escape_latex, table.header))
    body = ""
    for i in rows:
        rule = "\\midrule\n" if i > rows.start and i in table.group_starts else ""
        cells = _cells(table.rows[i], escape_latex, r"\textbf{{{}}}", r"\textit{{{}}}")
        body += f"{rule}{' & '.join(cells)} \\\\\n"
    return rf"""\begin{{table}}[htbp]
\centering
{caption}
\small
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{{table.alignments}}}
\toprule
{head} \\
\midrule
{body}\bottomrule
\end{{tabular}}}}
\end{{table}}
"""


def _latex_figure(figure: Picture) -> str:
    return rf"""\begin{{figure}}[htbp]
\centering
\includegraphics[width=\linewidth,height=0.8\textheight,keepaspectratio]{{figures/{figure.name}.png}}
\caption{{{escape_latex(f"{figure.title}. {figure.caption}")}}} \label{{fig:{figure.name}}}
\end{{figure}}"""


# The terminal


def terminal_table(table: Table, *, width: int) -> RichMarkdown:
    """The table with its title and caption, without its details.

    Standard errors are left out where they do not fit.
    """
    n_shown = len(table.header) - table.details
    rows = [row[:n_shown] for row in table.rows]
    text = markdown_table(replace(table, header=table.header[:n_shown], rows=rows))
    caption = escape_markdown(table.caption)
    if " ± " in text and max(map(len, text.splitlines())) > width:
        text = re.sub(r" ± [\d.]+", "", text)
        caption += " Standard errors are in the report: this window is too narrow for them."
    return RichMarkdown(f"**{escape_markdown(table.title)}**\n\n{text}\n\n{caption}")
