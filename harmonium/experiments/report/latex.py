"""The report as LaTeX: each table in a file of its own, and a document of them all."""

import re

from harmonium.experiments.report.tables import Align, Cell, Figure, Report, Table

LONG = 40
"""Tables with more rows than this may break across pages."""

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
\usepackage{booktabs,graphicx,longtable}
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
    """One table; it needs the packages booktabs, graphicx and longtable."""
    words = escape(f"{table.title}. {table.caption}")
    caption = rf"\caption{{{words}}} \label{{tab:{table.name}}}"
    columns = "".join(_COLUMNS[column.align] for column in table.columns)
    head = _line([escape(column.header) for column in table.columns])
    body = "\n".join(_row(table, i) for i in range(len(table.rows)))
    return (_long if len(table.rows) > LONG else _short)(caption, columns, head, body)


def escape(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    pattern = "|".join(re.escape(character) for character in _SPECIAL)
    return re.sub(pattern, lambda found: _SPECIAL[found.group()], " ".join(text.split()))


def _short(caption: str, columns: str, head: str, body: str) -> str:
    """On one page, and made narrower where it is wider than the text."""
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


def _long(caption: str, columns: str, head: str, body: str) -> str:
    return rf"""{{\small\setlength{{\tabcolsep}}{{4pt}}
\begin{{longtable}}{{{columns}}}
{caption} \\
\toprule
{head}
\midrule
\endfirsthead
\toprule
{head}
\midrule
\endhead
{body}
\bottomrule
\end{{longtable}}}}
"""


def _row(table: Table, number: int) -> str:
    rule = "\\midrule\n" if table.begins_group(number) else ""
    return rule + _line([_cell(cell) for cell in table.rows[number]])


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
