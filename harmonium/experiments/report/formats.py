"""A report as Markdown, HTML, LaTeX and for a terminal."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape as escape_html

from markdown_it import MarkdownIt
from rich.markdown import Markdown as RichMarkdown

from harmonium.experiments.report.items import Bold, Faint, Picture, Table
from harmonium.experiments.report.wording import NOTHING


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


def on_one_line(text: str) -> str:
    """The text without line breaks and double spaces; non-breaking spaces stay."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip()


def _marked(
    cells: Sequence[str], escape: Callable[[str], str], *, bold: str, faint: str
) -> list[str]:
    """The escaped texts; `Bold` and `Faint` ones in these marks."""
    texts = []
    for cell in cells:
        text = escape(cell)
        if isinstance(cell, Bold):
            text = bold.format(text)
        elif isinstance(cell, Faint):
            text = faint.format(text)
        texts.append(text)
    return texts


# Markdown


def escape_markdown(text: str) -> str:
    """Text without any meaning to Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", on_one_line(text))


def _markdown_cells(cells: Sequence[str]) -> list[str]:
    return _marked(cells, escape_markdown, bold="**{}**", faint="*{}*")


def markdown(report: Report) -> str:
    """The whole report; figures are files under figures/."""
    parts = [f"# {escape_markdown(report.title)}"]
    parts += _markdown_cells(report.paragraphs)
    for item in report.items:
        title = escape_markdown(item.title)
        parts.append(f"## {title}")
        if isinstance(item, Picture):
            parts.append(f"![{title}](figures/{item.name}.png)")
        else:
            parts.append(markdown_table(item))
        parts.append(escape_markdown(item.caption))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """One table, without its title and caption."""
    rows = [
        [escape_markdown(heading) for heading in table.header],
        [":--" if alignment == "l" else "--:" for alignment in table.alignments],
        *map(_markdown_cells, table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


# HTML

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
    links = ""
    body = ""
    for item, section in zip(report.items, sections, strict=True):
        links += f'<li><a href="#{item.name}">{escape_html(item.title)}</a></li>\n'
        text = f'<section id="{item.name}">\n<h2>{section}</section>\n'
        if isinstance(item, Table):
            text = _with_groups(text, item.group_starts)
        body += text
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


def _with_groups(section: str, group_starts: set[int]) -> str:
    """The HTML of a table, with a class on the cells of rows that start a group."""
    before_header, header, *rows = section.split("<tr>")
    for place in group_starts:
        rows[place] = rows[place].replace("<td", '<td class="group"')
    return "<tr>".join([before_header, header, *rows])


# LaTeX

_LATEX_CHARACTERS = str.maketrans(
    {
        **{character: rf"\{character}" for character in "{}&%$#_"},
        **{character: f"{{{character}}}" for character in "[]*"},
        "\\": r"\textbackslash{}",
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
)


def escape_latex(text: str) -> str:
    """Text without any meaning to TeX, on one line."""
    return on_one_line(text).translate(_LATEX_CHARACTERS)


def latex_table(table: Table) -> str:
    """One table, on as many pages as it needs; with the packages booktabs and longtable."""
    caption = escape_latex(f"{table.title}. {table.caption}")
    lines = [
        rf"\begin{{longtable}}{{{table.alignments}}}",
        rf"\caption{{{caption}}} \label{{tab:{table.name}}} \\",
        r"\toprule",
        " & ".join(map(escape_latex, table.header)) + r" \\",
        r"\midrule",
        r"\endhead",
    ]
    for place, row in enumerate(table.rows):
        if place > 0 and place in table.group_starts:
            lines.append(r"\midrule")
        cells = _marked(row, escape_latex, bold=r"\textbf{{{}}}", faint=r"\textit{{{}}}")
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{longtable}", ""])


# Terminal


def terminal_table(table: Table, *, width: int) -> RichMarkdown:
    """The table with its title and caption, without its details.

    Standard errors are left out if they do not fit.
    """
    headings = table.header[: len(table.header) - table.details]
    records = []
    for row in table.records:
        records.append({heading: row.get(heading, NOTHING) for heading in headings})
    text = markdown_table(replace(table, records=records))
    caption = escape_markdown(table.caption)
    is_too_wide = max(map(len, text.splitlines())) > width
    if is_too_wide and " ± " in text:
        text = re.sub(r" ± [\d.]+", "", text)
        caption += " Standard errors are in the report: this window is too narrow for them."
    return RichMarkdown(f"**{escape_markdown(table.title)}**\n\n{text}\n\n{caption}")
