"""A report on disk.

report.md, report.html, report.tex   everything, in three formats
tables/NAME.tex                      each table alone
figures/NAME.png, NAME.svg           each figure alone
per-tag.csv                          for programs, where the form has it
"""

from pathlib import Path

from harmonium.errors import DataError
from harmonium.experiments.report.building import build_report
from harmonium.experiments.report.html import page
from harmonium.experiments.report.latex import latex, table_latex
from harmonium.experiments.report.markdown import markdown
from harmonium.experiments.report.tables import Report


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    report = build_report(results)
    contents = _contents(report)
    folder = Path(results) / "report" if folder is None else Path(folder)
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"The report could not be written to {folder}: {error.strerror}. "
            "Name another folder with -o."
        ) from None
    return report, folder


def _contents(report: Report) -> dict[str, bytes]:
    """Every file by name; all is made before anything is written."""
    pictures = _pictures(report)
    texts = {
        "report.md": markdown(report),
        "report.html": page(report, {n: files["svg"] for n, files in pictures.items()}),
        "report.tex": latex(report),
        **{f"tables/{table.name}.tex": table_latex(table) for table in report.tables},
        **report.files,
    }
    files = {name: text.encode() for name, text in texts.items()}
    for name, kinds in pictures.items():
        files |= {f"figures/{name}.{kind}": content for kind, content in kinds.items()}
    return files


def _pictures(report: Report) -> dict[str, dict[str, bytes]]:
    """Figure -> "png" and "svg" -> content."""
    if not report.figures:
        return {}
    from harmonium.experiments.report.drawing import drawn  # matplotlib, only where it draws

    return {figure.name: drawn(figure.picture) for figure in report.figures}
