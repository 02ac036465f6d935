"""Every comparison of speed, and the page of their results: `make bench`.

    python benchmarks/bench.py                 all of them, about a quarter of an hour if quiet
    python benchmarks/bench.py rbm triples     some of them; the other sections stay as they are
    python benchmarks/bench.py --quick rbm     a look at small sizes; nothing is kept

Each is a script beside this one, which can also be run by itself. Its output is shown as it comes.
What it found goes to docs/benchmarks/NAME.json, and from there to docs/benchmarks.md and its
figures (benchmarks/report.py). A rival that is not installed is named there as skipped. If a
comparison fails, the others are run all the same, and its section stays as it was.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import report


class Comparison(NamedTuple):
    """A script, its arguments for a small trial, and whose versions matter."""

    script: str
    quick: list[str]
    packages: list[str]
    arguments: list[str] = []  # noqa: RUF012
    needs: str | None = None  # a variable of the environment


COMPARISONS = {
    "rbm": Comparison(
        "rbm.py", ["--size", "small", "--rounds", "1"], ["jax", "torch", "scikit-learn", "numpy"]
    ),
    "linear": Comparison(
        "linear_taggers.py", ["--tags", "2"], ["scikit-learn", "numpy"], needs="HARMONIUM_DATA"
    ),
    "smoother": Comparison(
        "smoothing_scale.py",
        ["--sizes", "5000", "--epochs", "3"],
        ["jax", "implicit"],
        ["--sizes", "250000"],
    ),
    "triples": Comparison(
        "triples.py", ["--size", "50000", "--repeats", "2"], ["polars", "pandas"]
    ),
    "auc": Comparison(
        "auc.py", ["--clips", "500", "--tags", "5", "--repeats", "3"], ["numpy", "scikit-learn"]
    ),
    "audio": Comparison(
        "audio.py",
        ["--files", "2", "--rounds", "2"],
        ["numpy", "soxr", "librosa"],
        ["--files", "20", "--rounds", "5"],
    ),
    "musicnn": Comparison(
        "musicnn_speed.py",
        ["--seconds", "3.5", "--rounds", "1"],
        ["numpy", "tensorflow-cpu", "librosa"],
    ),
    "start": Comparison("cold_start.py", ["--runs", "2"], ["typer", "rich"], ["--runs", "15"]),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMPARISONS))
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is kept")
    options = parser.parse_args(arguments)
    names = options.names or list(COMPARISONS)
    if unknown := [name for name in names if name not in COMPARISONS]:
        parser.error(f"no comparison {', '.join(unknown)}; there are {', '.join(COMPARISONS)}")
    failed = []
    for i, name in enumerate(names, 1):
        print(f"\n[{i} of {len(names)}] {name}", flush=True)
        needs = COMPARISONS[name].needs
        if needs and not os.environ.get(needs):
            print(f"Left out: it needs {needs} (docs/datasets.md says what that is).", flush=True)
        elif result := measure(name, quick=options.quick):
            if not options.quick:
                keep(name, result)
        else:
            failed.append(name)
    if failed:
        sys.exit(f"\nNot measured: {', '.join(failed)}. Their sections stay as they were.")


def measure(name: str, *, quick: bool = False) -> report.Result | None:
    """What the script found, with when and where; None if it failed."""
    comparison = COMPARISONS[name]
    arguments = comparison.quick if quick else comparison.arguments
    script, load, began = Path(__file__).parent / comparison.script, os.getloadavg()[0], time.time()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        done = subprocess.run(
            [sys.executable, str(script), *arguments, "--json", str(file)], check=False
        )
        if done.returncode or not file.exists():
            return None
        result: report.Result = json.loads(file.read_text())
    minutes = (time.time() - began) / 60
    print(f"It took {minutes:.1f} minutes.", flush=True)
    for rival in result["skipped"]:
        print(f"Skipped, because not installed: {rival}.", flush=True)
    result["measured"] = {
        "when": datetime.date.today().isoformat(),
        "machine": machine(),
        "load": round(load, 2),
        "minutes": round(minutes, 1),
        "versions": versions(comparison.packages),
    }
    return result


def keep(name: str, result: report.Result) -> None:
    report.RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (report.RESULTS / f"{name}.json").write_text(text)
    report.draw(name, result)
    report.PAGE.write_text(report.rendered(report.PAGE.read_text(), report.kept()))


def machine() -> str:
    """For example "2 cores of an AMD EPYC with 23 GiB, Linux"."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = (line.split(":", 1) for line in cpus.read_text().splitlines() if ":" in line)
        model = next((v.strip() for k, v in lines if k.strip() == "model name"), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores ({model}) with {memory:.0f} GiB, {platform.system()}"


def versions(packages: list[str]) -> dict[str, str]:
    found = {"Python": platform.python_version(), "Harmonium": version("harmonium")}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # named as skipped
    return found


if __name__ == "__main__":
    main()
