"""What a report shows, by what an experiment compares.

- ``comparison``: models by datasets, with and without smoothing (Table 2, Figures 4 and 5)
- ``search``: the settings found, and what each is worth (Table 1)
- all others: mean AUCs along an axis, as curves (Figure 2) or as groups of bars (Figure 3)

A table without rows and a figure without panels are left out of the report.
"""

from collections.abc import Callable

from harmonium.experiments.report.axis import AXIS_FORMS, along_axis
from harmonium.experiments.report.comparison import comparison
from harmonium.experiments.report.items import Items
from harmonium.experiments.report.numbers import Summary
from harmonium.experiments.report.search import search

FORMS: dict[str, Callable[[Summary], Items]] = {
    "comparison": comparison,
    "search": search,
    **dict.fromkeys(AXIS_FORMS, along_axis),
}
"""Form -> its tables and figures, the main table first."""
