"""From a CSV file of triples to labels and a core, beside pandas.read_csv of the same file.

    python benchmarks/triples.py                   7 million triples; their file is made once
    python benchmarks/triples.py --size 100000     a quick look

Generates triples with heavy tails (84,000 users, 1,000,000 tracks and 280,000 tags for 7 million),
spelling variants and repeated rows, and runs, each in its own process and in turn,

    pandas       pandas.read_csv(file)
    harmonium    read_triples(file), ternary labels of the top 100 tags, and the core in which each
                 user, track and tag occurs at least 25 times

The seconds are those of the work itself, without the imports. The processor's seconds (all threads)
and the peak, the largest resident memory, are those of the whole process, imports and all.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import report

FULL_SIZE, N_USERS, N_TRACKS, N_TAGS = 7_000_000, 84_000, 1_000_000, 280_000
VARIANTS, REPEATED = 0.1, 0.02  # shares of rows in another spelling, and of rows that are repeats
TOP_TAGS, MIN_COUNT, CORE = 100, 2, 25

VOCABULARY = """
    rock pop metal jazz folk soul blues punk funk house techno trance ambient indie hardcore
    classical country reggae electro disco gospel swing latin dub grunge noise drone opera
    melodic heavy slow fast dark happy sad mellow dreamy epic acoustic live vocal female male
    british swedish german japanese brazilian french summer winter night party guitar piano
    drums bass strings brass synth 80s 90s favourite beautiful experimental progressive
    électronique música
"""
WORDS = VOCABULARY.split()


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.child:
        print(json.dumps(CHILDREN[options.child](options)))
        return
    file = Path(options.folder) / f"triples-{options.size}.csv"
    if not file.exists():
        print(f"Making {file} ...", flush=True)
        run_child("generate", file, options)
    skipped = report.missing("pandas")
    runs: dict[str, list[dict[str, float]]] = {"pandas": [], "harmonium": []}
    for name in skipped:
        del runs[name]
    for number in range(1, options.repeats + 1):
        for name, results in runs.items():
            results.append(run_child(name, file, options))
            seconds = results[-1]["seconds"]
            print(f"{number} of {options.repeats}: {name} {seconds:.2f} s", flush=True)
    notes = show(runs, file)
    task = f"{options.size:,} triples to labels and a core, beside reading them alone"
    medians = {name: statistics.median(r["seconds"] for r in runs[name]) for name in runs}
    titles = {"harmonium": "Harmonium", "pandas": "pandas.read_csv"}
    rows = [
        report.row(task, title, medians[name]) for name, title in titles.items() if name in runs
    ]
    report.write(options.json, rows, notes, skipped)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = Path(tempfile.gettempdir()) / "harmonium-benchmarks"
    parser.add_argument("--size", type=int, default=FULL_SIZE, help="number of triples")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each, in turn")
    parser.add_argument("--folder", default=str(folder), help="where the generated file is kept")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def run_child(name: str, file: Path, options: argparse.Namespace) -> dict[str, float]:
    """A step in its own process: a process's peak memory never goes down again."""
    command = [sys.executable, __file__, "--child", name, "--file", str(file)]
    output = subprocess.run(
        [*command, "--size", str(options.size)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    result: dict[str, float] = json.loads(output)
    return result


def generate(options: argparse.Namespace) -> dict[str, float]:
    """The file of triples; the same bytes for the same size."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(2011)
    scale = options.size / FULL_SIZE
    n_distinct = options.size - int(options.size * REPEATED)

    def column(n_names: int, exponent: float) -> "np.ndarray":
        """Every name once, the other rows by Zipf's law, in random order."""
        weights = np.arange(1, n_names + 1, dtype=float) ** -exponent
        cumulated = np.cumsum(weights) / weights.sum()
        others = np.searchsorted(cumulated, rng.random(n_distinct - n_names))
        return rng.permutation(np.concatenate([np.arange(n_names), others]))

    sizes = [max(int(n * scale), 10) for n in (N_USERS, N_TRACKS, N_TAGS)]
    rows = np.stack([column(n, a) for n, a in zip(sizes, (0.7, 0.7, 1.0), strict=True)])
    rows = rows[:, np.r_[:n_distinct, rng.integers(0, n_distinct, options.size - n_distinct)]]
    spelling = np.where(rng.random(options.size) < VARIANTS, rng.integers(1, 5, options.size), 0)
    tags = pl.concat(spellings([tag_name(code) for code in range(sizes[2])]))
    frame = pl.DataFrame(
        {
            "user": pl.Series([user_name(code) for code in range(sizes[0])]).gather(rows[0]),
            "item": pl.Series([track_name(code) for code in range(sizes[1])]).gather(rows[1]),
            "tag": tags.gather(spelling * sizes[2] + rows[2]),
        }
    )
    file = Path(options.file)
    file.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(file.with_suffix(".part"))
    file.with_suffix(".part").rename(file)
    return {}


def user_name(code: int) -> str:
    """For example "jazzsummer4711"."""
    return (
        f"{WORDS[code % len(WORDS)]}{WORDS[code * 31 % (len(WORDS) - 1)]}{code * 7919 % 1_000_003}"
    )


def track_name(code: int) -> str:
    """For example "TRGQHZX128F92D7A31", of the form of the Million Song Dataset's ids."""
    letters = "".join(chr(ord("A") + code * 48_271 // 26**place % 26) for place in range(5))
    return f"TR{letters}128F{code * 2_654_435_761 % 2**28:07X}"


def tag_name(code: int) -> str:
    """One word for the most used tags, then two, then three."""
    n, words = len(WORDS), [code]
    while code >= n ** len(words):
        code -= n ** len(words)
        words.append(0)
    return " ".join(WORDS[code // n**place % n] for place in range(len(words)))


def spellings(names: list[str]) -> list["pl.Series"]:  # noqa: F821
    """The names as they are, and in four other spellings of the same tags."""
    import polars as pl

    tags = pl.Series(names)
    spaced = tags.str.replace_all(" ", "  ") + " "
    return [
        tags,
        tags.str.to_uppercase(),
        tags.str.replace_all(" ", "-"),
        tags.str.replace_all(" ", "_"),
        spaced.str.to_titlecase(),
    ]


def time_pandas(options: argparse.Namespace) -> dict[str, float]:
    import pandas as pd

    start = time.perf_counter()
    frame = pd.read_csv(options.file)
    return measured(start, rows=len(frame))


def time_harmonium(options: argparse.Namespace) -> dict[str, float]:
    from harmonium.data import read_triples

    start = time.perf_counter()
    triples = read_triples(options.file)
    labels = triples.counts().top(TOP_TAGS).labels(min_count=MIN_COUNT)
    core = triples.core(CORE)
    return measured(
        start,
        triples=len(triples),
        users=len(triples.users),
        items=len(triples.items),
        tags=len(triples.tags),
        labels=labels.size,
        core=len(core),
        core_users=len(core.users),
        core_items=len(core.items),
        core_tags=len(core.tags),
    )


def measured(start: float, **sizes: int) -> dict[str, float]:
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in KiB but for macOS
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "peak": usage.ru_maxrss * unit, **sizes}


CHILDREN: dict[str, Callable[[argparse.Namespace], dict[str, float]]] = {
    "generate": generate,
    "pandas": time_pandas,
    "harmonium": time_harmonium,
}


def show(runs: dict[str, list[dict[str, float]]], file: Path) -> list[str]:
    """Print a table; gives the notes for the page."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    last = {name: int(value) for name, value in runs["harmonium"][-1].items()}
    table = Table(title=f"{file.name}, {file.stat().st_size / 1e6:,.0f} MB")
    for heading in ("", "median s", "all runs s", "processor s", "peak GiB"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, results in runs.items():
        seconds = [result["seconds"] for result in results]
        every = " ".join(f"{value:.2f}" for value in seconds)
        processor = statistics.median(result["processor"] for result in results)
        peak = max(result["peak"] for result in results) / 2**30
        median = statistics.median(seconds)
        table.add_row(name, f"{median:.2f}", every, f"{processor:.2f}", f"{peak:.2f}")
    console.print(table)
    peaks = {name: max(r["peak"] for r in results) / 2**30 for name, results in runs.items()}
    memory = " and ".join(f"{peak:.2f} GiB ({name})" for name, peak in peaks.items())
    notes = [f"The file has {file.stat().st_size / 1e6:,.0f} MB. Peak memory is {memory}."]
    if "pandas" in runs:
        ratios = [
            ours["seconds"] / theirs["seconds"]
            for ours, theirs in zip(runs["harmonium"], runs["pandas"], strict=True)
        ]
        notes.append(
            f"Harmonium / pandas in pairs that ran one after the other: median "
            f"{statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}."
        )
    notes.append(
        f"{last['triples']:,} distinct triples, {last['users']:,} users, {last['items']:,} tracks, "
        f"{last['tags']:,} tags; core: {last['core']:,} triples, {last['core_users']:,} users, "
        f"{last['core_items']:,} tracks, {last['core_tags']:,} tags."
    )
    console.print("\n".join(notes))
    return notes


if __name__ == "__main__":
    main()
