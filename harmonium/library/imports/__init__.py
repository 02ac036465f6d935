"""Importing people's tags from tables and files, and features from tables.

An import of tags is one change: it is done completely or not at all, and can be undone. What people
already say is not added again, so importing the same table twice does nothing.
"""

from harmonium.library.imports.columns import choose_columns
from harmonium.library.imports.features import FeatureReport, import_features
from harmonium.library.imports.file_tags import import_file_tags
from harmonium.library.imports.rows import ImportReport, import_rows
from harmonium.library.imports.table import import_table

__all__ = [
    "FeatureReport",
    "ImportReport",
    "choose_columns",
    "import_features",
    "import_file_tags",
    "import_rows",
    "import_table",
]
