"""Tables and figures from results on disk. Nothing is trained, and JAX is not imported.

- ``build_report(folder)`` makes a `Report` of a folder of results: tables and figures as data.
- ``write_report(folder)`` writes it as Markdown, HTML and LaTeX with figures as PNG and SVG.
- ``summarise(recipe, results, measurements)`` gives the numbers behind it as arrays.
"""

from harmonium.experiments.report.build import build_report, write_report
from harmonium.experiments.report.numbers import summarise
from harmonium.experiments.report.tables import Report

__all__ = ["Report", "build_report", "summarise", "write_report"]
