"""The report as Markdown, with the figures beside it."""

import re

from harmonium.experiments.report.tables import Align, Cell, Figure, Report, Table
from harmonium.experiments.report.words import one_line

_RULES: dict[Align, str] = {"left": ":--", "right": "--:", "centre": ":-:"}


def markdown(report: Report) -> str:
    """The whole report; figures are files under figures/."""
    parts = [f"# {escape(report.title)}", *(escape(text) for text in report.paragraphs)]
    if report.unfinished:
        parts.append(f"**Not finished:** {escape(report.unfinished)}")
    for item in report.items:
        parts.append(f"## {escape(item.title)}")
        parts += [_figure(item)] if isinstance(item, Figure) else [table_markdown(item)]
        parts.append(escape(item.caption))
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    """One table, without its title and caption."""
    lines = [
        _line([escape(column.header) for column in table.columns]),
        _line([_RULES[column.align] for column in table.columns]),
        *(_line([_cell(cell) for cell in row]) for row in table.rows),
    ]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Text without any meaning to Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", one_line(text))


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.strong:
        return f"**{text}**"
    return f"*{text}*" if cell.faint else text


def _figure(figure: Figure) -> str:
    return f"![{escape(figure.title)}](figures/{figure.name}.png)"
