"""The paper's experiments: a recipe (TOML), runs (results on disk), a report (tables, figures).

Running and reporting are apart: a report trains nothing. See docs/experiments.md.
"""
