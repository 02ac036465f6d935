"""The report as one HTML page that needs no other file."""

import base64
from collections.abc import Mapping
from html import escape

from harmonium.experiments.report.tables import Cell, Figure, Report, Table

_STYLE = """
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


def page(report: Report, pictures: Mapping[str, bytes]) -> str:
    """The whole report; ``pictures`` are the figures by name, as SVG."""
    notice = (
        f'<p class="notice"><strong>Not finished:</strong> {escape(report.unfinished)}</p>\n'
        if report.unfinished
        else ""
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(report.title)}</h1>\n"
        + "".join(f"<p>{escape(text)}</p>\n" for text in report.paragraphs)
        + notice
        + _contents(report)
        + "".join(_section(item, pictures) for item in report.items)
        + "</body>\n</html>\n"
    )


def _contents(report: Report) -> str:
    links = "".join(
        f'<li><a href="#{item.name}">{escape(item.title)}</a></li>\n' for item in report.items
    )
    return f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>\n'


def _section(item: Table | Figure, pictures: Mapping[str, bytes]) -> str:
    inside = _figure(item, pictures[item.name]) if isinstance(item, Figure) else table_html(item)
    return f'<section id="{item.name}">\n<h2>{escape(item.title)}</h2>\n{inside}</section>\n'


def _figure(figure: Figure, svg: bytes) -> str:
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return (
        f'<figure>\n<img src="{source}" alt="{escape(figure.title)}">\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
    )


def table_html(table: Table) -> str:
    """One table with its caption."""
    heads = "".join(
        f'<th scope="col" class="{column.align}">{escape(column.header)}</th>'
        for column in table.columns
    )
    rows = "".join(_row(table, i) for i in range(len(table.rows)))
    return (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}'
        f'</tbody>\n</table></div>\n<p class="caption">{escape(table.caption)}</p>\n'
    )


def _row(table: Table, number: int) -> str:
    kind = ' class="group"' if table.begins_group(number) else ""
    cells = "".join(
        _cell(cell, column.align)
        for cell, column in zip(table.rows[number], table.columns, strict=True)
    )
    return f"<tr{kind}>{cells}</tr>\n"


def _cell(cell: Cell, align: str) -> str:
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.strong else text
    return f'<td class="{align}{" faint" if cell.faint else ""}">{text}</td>'
