"""The report as LaTeX: each table in a file of its own, and a document of them all."""

import re

from harmonium.experiments.report.tables import Align, Cell, Figure, Report, Table
from harmonium.experiments.report.words import one_line

LONG = 40
"""Rows of a table on a page: a longer one is continued in the next."""

_COLUMNS: dict[Align, str] = {"left": "l", "right": "r", "centre": "c"}
_SPECIAL = {
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
_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=2.2cm]{geometry}
\usepackage{booktabs,caption,graphicx}
"""


def latex(report: Report) -> str:
    """A document with every table (under tables/) and figure (under figures/)."""
    parts = [
        _PREAMBLE + rf"\title{{{escape(report.title)}}}" + "\n\\author{}\n\\date{}",
        "\\begin{document}\n\\maketitle",
        *(escape(text) for text in report.paragraphs),
    ]
    if report.unfinished:
        parts.append(rf"\textbf{{Not finished:}} {escape(report.unfinished)}")
    for item in report.items:
        parts.append(
            _figure(item) if isinstance(item, Figure) else rf"\input{{tables/{item.name}.tex}}"
        )
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def table_latex(table: Table) -> str:
    """One table, in parts if it is long. Needs the packages booktabs, caption and graphicx."""
    first, *others = _pages(table)
    words = escape(f"{table.title}. {table.caption}")
    parts = [_part(table, first, rf"\caption{{{words}}} \label{{tab:{table.name}}}")]
    again = rf"\caption*{{Table~\ref{{tab:{table.name}}}, continued.}}"
    return "\n".join([*parts, *(_part(table, rows, again) for rows in others)])


def _pages(table: Table) -> list[range]:
    """The rows in parts that fit on a page, which begin with a group where they can."""
    pages, start = [], 0
    while len(table.rows) - start > LONG:
        breaks = [i for i in range(start + LONG // 2, start + LONG + 1) if table.begins_group(i)]
        end = breaks[-1] if breaks else start + LONG
        pages.append(range(start, end))
        start = end
    return [*pages, range(start, len(table.rows))]


def escape(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    pattern = "|".join(re.escape(character) for character in _SPECIAL)
    return re.sub(pattern, lambda found: _SPECIAL[found.group()], one_line(text))


def _part(table: Table, rows: range, caption: str) -> str:
    """Rows of a table, made narrower where they are wider than the text."""
    columns = "".join(_COLUMNS[column.align] for column in table.columns)
    head = _line([escape(column.header) for column in table.columns])
    body = "\n".join(_row(table, i, rule=i > rows.start) for i in rows)
    return rf"""\begin{{table}}[htbp]
\centering
{caption}
\small
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{{columns}}}
\toprule
{head}
\midrule
{body}
\bottomrule
\end{{tabular}}}}
\end{{table}}
"""


def _row(table: Table, number: int, *, rule: bool) -> str:
    above = "\\midrule\n" if rule and table.begins_group(number) else ""
    return above + _line([_cell(cell) for cell in table.rows[number]])


def _line(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.strong:
        return rf"\textbf{{{text}}}"
    return rf"\textit{{{text}}}" if cell.faint else text


def _figure(figure: Figure) -> str:
    return rf"""\begin{{figure}}[htbp]
\centering
\includegraphics[width=\linewidth,height=0.8\textheight,keepaspectratio]{{figures/{figure.name}.png}}
\caption{{{escape(f"{figure.title}. {figure.caption}")}}} \label{{fig:{figure.name}}}
\end{{figure}}"""
