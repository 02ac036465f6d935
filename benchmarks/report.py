"""Results of the comparisons → docs/benchmarks.md: tables, ratios and plots, section by section.

    python benchmarks/report.py        rewrite the page and its figures from the results

A comparison writes what it found by `write` here: rows of a task, a program and its seconds, and
notes, which are whole sentences. `benchmarks/bench.py` adds when, where and with which versions it
was measured, and keeps all of it in docs/benchmarks/NAME.json. In the page, what stands between
`<!-- NAME -->` and `<!-- end of NAME -->` is written here and nowhere else; the prose around it is
by hand. So a comparison that is run alone changes its own section alone.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGE, RESULTS, FIGURES = DOCS / "benchmarks.md", DOCS / "benchmarks", DOCS / "figures"
OURS = "Harmonium"

Result = dict[str, Any]
"""rows, notes and skipped of a comparison; once kept, also its title and what it was measured on"""


# What a comparison calls. --------------------------------------------------------------------


def row(task: str, program: str, seconds: float, threads: int | None = None) -> dict[str, Any]:
    return {"task": task, "program": program, "seconds": float(seconds), "threads": threads}


def missing(*modules: str) -> list[str]:
    """Those of the modules that are not installed, to be named as skipped."""
    return [module for module in modules if find_spec(module) is None]


def write(
    file: Path | None,
    rows: Iterable[Mapping[str, Any]],
    notes: Iterable[str] = (),
    skipped: Iterable[str] = (),
) -> None:
    """Pass the result on, where a file is asked for (`--json FILE`)."""
    if file:
        found = {"rows": list(rows), "notes": list(notes), "skipped": list(skipped)}
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


# The page. -----------------------------------------------------------------------------------


def kept() -> dict[str, Result]:
    """All results, in the order in which the page has their sections."""
    files = {file.stem: json.loads(file.read_text()) for file in RESULTS.glob("*.json")}
    return {name: files[name] for name in sections(PAGE.read_text()) if name in files}


def sections(page: str) -> list[str]:
    """The names of what is written here."""
    return re.findall(r"<!-- end of (\w+) -->", page)


def rendered(page: str, results: Mapping[str, Result]) -> str:
    """The page with the sections of these results."""
    for name, text in {name: section(name, result) for name, result in results.items()}.items():
        pattern = rf"<!-- {name} -->.*?<!-- end of {name} -->"
        whole = f"<!-- {name} -->\n\n{text}\n\n<!-- end of {name} -->"
        page, n = re.subn(pattern, lambda _, whole=whole: whole, page, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"{PAGE.name} must have one section <!-- {name} -->, and has {n}.")
    return page


def section(name: str, result: Result) -> str:
    """The command, where and when it was measured, the table, the plot and the notes."""
    where, programs = result["measured"], _programs(result)
    rivals = [program for program in programs if program != OURS and OURS in programs]
    head = ["", *programs, *(f"{rival} / {OURS}" for rival in rivals)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for task, found in _tasks(result).items():
        cells = [_cell(found.get(program)) for program in programs]
        lines.append(f"| {' | '.join([task, *cells, *(_ratio(found, r) for r in rivals)])} |")
    versions = ", ".join(
        f"{package} {number}"
        for package, number in where["versions"].items()
        if package not in ("Python", OURS)
    )
    parts = [
        f"    make bench ONLY={name}",
        f"Measured on {where['when']} in {where['minutes']:.1f} minutes; load {where['load']:.1f} "
        f"before. {versions}.",
        "\n".join(lines),
    ]
    if _ratios(result):
        parts.append(f"![Ratios of the table above](figures/{figure_name(name)})")
    parts += result["notes"]
    if result["skipped"]:
        parts.append(f"Skipped, because not installed: {', '.join(result['skipped'])}.")
    return "\n\n".join(parts)


def _programs(result: Result) -> list[str]:
    return list(dict.fromkeys(row["program"] for row in result["rows"]))


def _tasks(result: Result) -> dict[str, dict[str, Mapping[str, Any]]]:
    """task → program → row"""
    tasks: dict[str, dict[str, Mapping[str, Any]]] = {}
    for found in result["rows"]:
        tasks.setdefault(found["task"], {})[found["program"]] = found
    return tasks


def _ratios(result: Result) -> list[tuple[str, str, float]]:
    """Task, rival, and the rival's time divided by ours."""
    return [
        (task, program, found["seconds"] / programs[OURS]["seconds"])
        for task, programs in _tasks(result).items()
        for program, found in programs.items()
        if program != OURS and OURS in programs
    ]


def _ratio(found: Mapping[str, Mapping[str, Any]], rival: str) -> str:
    if rival not in found or OURS not in found:
        return ""
    return f"{found[rival]['seconds'] / found[OURS]['seconds']:.2f}"


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    threads = f" ({found['threads']})" if found["threads"] else ""
    return duration(found["seconds"]) + threads


def duration(seconds: float) -> str:
    """For example "13.7 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            break
    number = seconds / size
    return f"{number:,.{0 if number >= 99.5 else 1 if number >= 9.95 else 2}f} {unit}"


# The figures. --------------------------------------------------------------------------------


def figure_name(name: str) -> str:
    return f"bench-{name}.svg"


def draw(name: str, result: Result) -> None:
    """Bars of the ratios, on a light card of its own, so that it can be read on a dark page too."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ratios = _ratios(result)
    if not ratios:
        return
    labels = [f"{task}\n{rival}" for task, rival, _ in ratios]
    values = [ratio for *_, ratio in ratios]
    with pyplot.rc_context({"svg.hashsalt": name, "font.size": 9, "svg.fonttype": "path"}):
        figure, axes = pyplot.subplots(
            figsize=(7.5, 0.7 + 0.42 * len(ratios)), layout="constrained"
        )
        colours = ["#2a6f97" if value >= 1 else "#b5542b" for value in values]
        bars = axes.barh(labels, [value - 1 for value in values], left=1, color=colours)
        axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=3)
        axes.set_xscale("log")
        low, high = min([*values, 1]), max([*values, 1])
        axes.set_xlim(low / 1.5, high * 1.5)
        ticks = [
            t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low / 1.5 <= t <= high * 1.5
        ]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.axvline(1, color="black", linewidth=0.8)
        axes.invert_yaxis()
        axes.set_xlabel(
            "its time / Harmonium's: to the right of 1, Harmonium is faster", loc="right"
        )
        axes.spines[["top", "right"]].set_visible(False)
        FIGURES.mkdir(exist_ok=True)
        figure.savefig(FIGURES / figure_name(name), facecolor="white", metadata={"Date": None})
        pyplot.close(figure)


def main() -> None:
    results = kept()
    for name, result in results.items():
        draw(name, result)
    PAGE.write_text(rendered(PAGE.read_text(), results))
    print(f"{PAGE} and {len(results)} figures are written.", file=sys.stderr)


if __name__ == "__main__":
    main()
