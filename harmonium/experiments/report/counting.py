"""Counts of significantly better and worse tags, as a table and as bars up and down."""

from collections.abc import Sequence

from harmonium.experiments.report.pictures import CountPanel, Counts
from harmonium.experiments.report.significance import CORRECTIONS, Duel
from harmonium.experiments.report.tables import Cell, Column, Figure, Table, first_cells

_TEST = (
    "Two-sided paired t-test over test folds for each tag, at 95 %; if there were no difference on "
    "any tag, about 2.5 % of the tags would count as better and as many as worse."
)
_CORRECTED = (
    "Holm and BH: counts that remain after correcting for the number of tags, by Holm's method and "
    "by Benjamini and Hochberg's."
)
_NAMES = {"none": "", "holm": ", Holm", "bh": ", BH"}


def count_table(
    *,
    name: str,
    title: str,
    caption: str,
    heads: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], Duel]],
) -> Table:
    """Tags better and worse, by each test alone and after corrections for many tests."""
    columns = [Column(head, "centre" if head == "Sm" else "left") for head in heads]
    columns += [Column("Tags"), Column("Folds")]
    for correction in CORRECTIONS:
        columns += [Column(f"{word}{_NAMES[correction]}") for word in ("Better", "Worse")]
    cells = tuple(_count_row(words, fight) for words, fight in rows)
    return Table(
        name=name,
        title=title,
        caption=f"{caption} {_TEST} {_CORRECTED}",
        columns=tuple(columns),
        rows=cells,
        groups=first_cells(cells),
    )


def _count_row(words: tuple[str, ...], fight: Duel) -> tuple[Cell, ...]:
    cells = [*words, str(fight.n_tested), str(fight.n_folds)]
    for correction in CORRECTIONS:
        tests = fight.tests[correction]
        cells += [str(tests.n_better), str(tests.n_worse)]
    return tuple(Cell(text) for text in cells)


def count_figure(
    *,
    name: str,
    title: str,
    up: str,
    down: str,
    panels: Sequence[tuple[str, str, Duel]],
    caption: str,
) -> Figure:
    """Bars up and down; ``panels`` are (panel, dataset, duel)."""
    datasets = list(dict.fromkeys(dataset for _, dataset, _ in panels))
    return Figure(
        name=name,
        title=title,
        caption=f"{caption} {_TEST}",
        picture=Counts(
            title=title,
            up_label=up,
            down_label=down,
            value_label="Number of tags",
            panels=_by_comparison(panels, datasets) if len(datasets) > 1 else _all_in_one(panels),
        ),
    )


def _by_comparison(
    panels: Sequence[tuple[str, str, Duel]], datasets: list[str]
) -> tuple[CountPanel, ...]:
    """As in the paper: a panel per comparison, a bar per dataset, some of which may be missing."""
    by_panel: dict[str, dict[str, Duel]] = {}
    for panel, dataset, fight in panels:
        by_panel.setdefault(panel, {})[dataset] = fight
    return tuple(
        CountPanel(
            title=panel,
            groups=tuple(f"{dataset}\n{_size(fights.get(dataset))}" for dataset in datasets),
            up=tuple(fights[d].better if d in fights else None for d in datasets),
            down=tuple(fights[d].worse if d in fights else None for d in datasets),
        )
        for panel, fights in by_panel.items()
    )


def _all_in_one(panels: Sequence[tuple[str, str, Duel]]) -> tuple[CountPanel, ...]:
    """For one dataset: a bar per comparison."""
    return (
        CountPanel(
            title=panels[0][1],
            groups=tuple(f"{name}\n{_size(fight)}" for name, _, fight in panels),
            up=tuple(fight.better for _, _, fight in panels),
            down=tuple(fight.worse for _, _, fight in panels),
        ),
    )


def _size(fight: Duel | None) -> str:
    if fight is None:
        return "not there"
    partial = not (fight.first.complete and fight.second.complete)
    return f"{fight.n_tested} tags" + (f"\n{fight.n_folds} folds" if partial else "")
