"""A report in the formats that people read: Markdown, HTML, LaTeX; and a table for the terminal."""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape as escape_html
from typing import Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from harmonium.experiments.report.tables import Align, Cell, Picture, Report, Table, one_line

# Markdown, with the figures beside it

_MARKDOWN_RULES: dict[Align, str] = {"left": ":--", "right": "--:", "centre": ":-:"}


def markdown(report: Report) -> str:
    """The whole report; figures are files under figures/."""
    parts = [
        f"# {escape_markdown(report.title)}",
        *(escape_markdown(text) for text in report.paragraphs),
    ]
    if report.unfinished:
        parts.append(f"**Not finished:** {escape_markdown(report.unfinished)}")
    for item in report.items:
        parts.append(f"## {escape_markdown(item.title)}")
        image = f"![{escape_markdown(item.title)}](figures/{item.name}.png)"
        parts.append(image if isinstance(item, Picture) else markdown_table(item))
        parts.append(escape_markdown(item.caption))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """One table, without its title and caption."""
    rows = [
        [escape_markdown(column.header) for column in table.columns],
        [_MARKDOWN_RULES[column.align] for column in table.columns],
        *([_marked(cell, escape_markdown, "**{}**", "*{}*") for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escape_markdown(text: str) -> str:
    """Text without any meaning to Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", one_line(text))


def _marked(cell: Cell, escape: Callable[[str], str], strong: str, faint: str) -> str:
    """The cell's text, within the marks of a strong or a faint one."""
    text = escape(cell.text)
    return strong.format(text) if cell.strong else faint.format(text) if cell.faint else text


# HTML: one page that needs no other file

_HTML_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #ffffff; --soft: #5c6370;
        --line: #d5d9df; --tint: #f4f6f8; --warn: #fff4d6; --link: #0059a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #16181b; --soft: #a5acb7; --line: #3a3f46; --tint: #1f2226;
          --warn: #40361a; --link: #7db8f0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; background: var(--paper);
       color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.75rem 0 .6rem; }
p { max-width: 46rem; }
a { color: var(--link); }
nav ul { margin: .5rem 0; padding-left: 1.2rem; }
.caption, figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin: .6rem 0 0; }
.notice { background: var(--warn); padding: .6rem .9rem; border-radius: .4rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
        border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
th, td { padding: .28rem .7rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tr.group td { border-top: 1px solid var(--line); }
tbody tr:hover { background: var(--tint); }
.right { text-align: right; }
.right, td:first-child { white-space: nowrap; }
.centre { text-align: center; }
.faint { color: var(--soft); font-style: italic; }
figure { margin: 0; }
figure img { display: block; width: 100%; max-width: 60rem; height: auto; background: #ffffff;
             border: 1px solid var(--line); border-radius: .4rem; }
@media print { body { max-width: none; padding: 0; } nav { display: none; }
               h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def html_page(report: Report, pictures: Mapping[str, bytes]) -> str:
    """The whole report; ``pictures`` are the figures by name, as SVG."""
    notice = (
        f'<p class="notice"><strong>Not finished:</strong> {escape_html(report.unfinished)}</p>\n'
        if report.unfinished
        else ""
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_html(report.title)}</title>\n<style>{_HTML_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape_html(report.title)}</h1>\n"
        + "".join(f"<p>{escape_html(text)}</p>\n" for text in report.paragraphs)
        + notice
        + _html_contents(report)
        + "".join(_html_section(item, pictures) for item in report.items)
        + "</body>\n</html>\n"
    )


def _html_contents(report: Report) -> str:
    links = "".join(
        f'<li><a href="#{item.name}">{escape_html(item.title)}</a></li>\n' for item in report.items
    )
    return f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>\n'


def _html_section(item: Table | Picture, pictures: Mapping[str, bytes]) -> str:
    title, caption = escape_html(item.title), escape_html(item.caption)
    if isinstance(item, Table):
        inside = html_table(item)
    else:
        source = f"data:image/svg+xml;base64,{base64.b64encode(pictures[item.name]).decode()}"
        inside = (
            f'<figure>\n<img src="{source}" alt="{title}">\n'
            f"<figcaption>{caption}</figcaption>\n</figure>\n"
        )
    return f'<section id="{item.name}">\n<h2>{title}</h2>\n{inside}</section>\n'


def html_table(table: Table) -> str:
    """One table with its caption."""
    heads = "".join(
        f'<th scope="col" class="{column.align}">{escape_html(column.header)}</th>'
        for column in table.columns
    )
    rows = ""
    for number, row in enumerate(table.rows):
        cells = "".join(
            f'<td class="{column.align}{" faint" if cell.faint else ""}">'
            f"{_marked(cell, escape_html, '<strong>{}</strong>', '{}')}</td>"
            for cell, column in zip(row, table.columns, strict=True)
        )
        group = ' class="group"' if table.begins_group(number) else ""
        rows += f"<tr{group}>{cells}</tr>\n"
    return (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}'
        f'</tbody>\n</table></div>\n<p class="caption">{escape_html(table.caption)}</p>\n'
    )


# LaTeX: each table in a file of its own, and a document of them all

LATEX_ROWS = 40
"""Rows of a table on a page: a longer one is continued in the next."""

_LATEX_COLUMNS: dict[Align, str] = {"left": "l", "right": "r", "centre": "c"}
_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "²": "$^2$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "ν": r"$\nu$",
    "χ": r"$\chi$",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "\u00a0": "~",
}
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
        *(escape_latex(text) for text in report.paragraphs),
    ]
    if report.unfinished:
        parts.append(rf"\textbf{{Not finished:}} {escape_latex(report.unfinished)}")
    for item in report.items:
        parts.append(
            _latex_figure(item)
            if isinstance(item, Picture)
            else rf"\input{{tables/{item.name}.tex}}"
        )
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def latex_table(table: Table) -> str:
    """One table, in parts if it is long. Needs the packages booktabs, caption and graphicx."""
    first, *others = _latex_pages(table)
    words = escape_latex(f"{table.title}. {table.caption}")
    parts = [_latex_part(table, first, rf"\caption{{{words}}} \label{{tab:{table.name}}}")]
    again = rf"\caption*{{Table~\ref{{tab:{table.name}}}, continued.}}"
    return "\n".join([*parts, *(_latex_part(table, rows, again) for rows in others)])


def _latex_pages(table: Table) -> list[range]:
    """The rows in parts that fit on a page, which begin with a group where they can."""
    pages, start = [], 0
    while len(table.rows) - start > LATEX_ROWS:
        breaks = [
            i
            for i in range(start + LATEX_ROWS // 2, start + LATEX_ROWS + 1)
            if table.begins_group(i)
        ]
        end = breaks[-1] if breaks else start + LATEX_ROWS
        pages.append(range(start, end))
        start = end
    return [*pages, range(start, len(table.rows))]


def escape_latex(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    pattern = "|".join(re.escape(character) for character in _LATEX_CHARACTERS)
    return re.sub(pattern, lambda found: _LATEX_CHARACTERS[found.group()], one_line(text))


def _latex_part(table: Table, rows: range, caption: str) -> str:
    """Rows of a table, made narrower where they are wider than the text."""
    columns = "".join(_LATEX_COLUMNS[column.align] for column in table.columns)
    head = " & ".join(escape_latex(column.header) for column in table.columns)
    marks = (r"\textbf{{{}}}", r"\textit{{{}}}")
    body = ""
    for i in rows:
        cells = [_marked(cell, escape_latex, *marks) for cell in table.rows[i]]
        rule = "\\midrule\n" if i > rows.start and table.begins_group(i) else ""
        body += f"{rule}{' & '.join(cells)} \\\\\n"
    return rf"""\begin{{table}}[htbp]
\centering
{caption}
\small
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{{columns}}}
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

_JUSTIFY: dict[Align, Literal["left", "right", "center"]] = {
    "left": "left",
    "right": "right",
    "centre": "center",
}

_RULER = Console(width=10_000)
"""For measuring how wide a table is if nothing limits it."""


def terminal_table(table: Table, *, width: int) -> RichTable:
    """The table as Rich draws it, without its details.

    Standard errors are left out where they would not fit.
    """
    kept = [number for number, column in enumerate(table.columns) if not column.detail]
    table = replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
    )
    whole = _rich(table)
    if Measurement.get(_RULER, _RULER.options, whole).maximum <= width:
        return whole
    rows = tuple(
        tuple(replace(cell, text=re.sub(r" ± [\d.]+", "", cell.text)) for cell in row)
        for row in table.rows
    )
    if rows == table.rows:
        return whole
    note = "Standard errors are in the report: this window is too narrow for them."
    return _rich(replace(table, rows=rows, caption=f"{table.caption} {note}"))


def _rich(table: Table) -> RichTable:
    made = RichTable(
        title=Text(table.title, style="bold"),
        caption=Text(table.caption, style="dim"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(table.columns):
        made.add_column(
            Text(column.header),
            justify=_JUSTIFY[column.align],
            no_wrap=number == 0,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        if table.begins_group(number):
            made.add_section()
        styles = ("bold" if c.strong else "dim italic" if c.faint else "" for c in row)
        made.add_row(*(Text(cell.text, style) for cell, style in zip(row, styles, strict=True)))
    return made
