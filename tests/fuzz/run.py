"""Coverage-guided fuzzing of everything that reads what others wrote; "make fuzz" calls it.

    python tests/fuzz/run.py [TARGET ...] [--seconds 60]

Each target of tests/helpers/fuzz_targets.py runs in a process of its own. Inputs that raise
anything but an error of Harmonium are kept in --found, one for each place in the code; put them
into tests/fuzz/found/TARGET once they are mended, where the tests repeat them.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "helpers"), str(HERE.parents[1])]


def main() -> None:
    """Run the targets one after the other, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        fuzz(options.targets[0], options)
    else:
        sys.exit(run_all(options))


def run_all(options: argparse.Namespace) -> int:
    """Executions and findings of each target; how many targets had some."""
    from fuzz_targets import TARGETS

    print(f"{'target':16} {'executions':>12} {'findings':>9}")
    bad = 0
    for name in options.targets or TARGETS:
        arguments = [sys.executable, __file__, name, "--inside", "--seconds", options.seconds]
        arguments += ["--seed", options.seed, "--found", options.found.resolve()]
        with tempfile.TemporaryFile("w+") as log:
            done = subprocess.run([*map(str, arguments)], stdout=log, stderr=log, check=False)
            log.seek(0)
            text = log.read()
        count = re.search(r"number_of_executed_units:\s*(\d+)", text)
        places = re.findall(r"^FOUND (.*)", text, re.MULTILINE)
        executions = f"{int(count[1]):,}" if count else f"ended by {done.returncode}"
        print(f"{name:16} {executions:>12} {len(places):>9}", flush=True)
        for place in places:
            print(f"  {place}", flush=True)
        if done.returncode or not count:
            print("\n".join(text.splitlines()[-15:]))
        bad += bool(places or done.returncode)
    return bad


def fuzz(name: str, options: argparse.Namespace) -> None:
    """One target, until the time is over; its findings do not end it."""
    import atheris

    with atheris.instrument_imports(include=["harmonium", "tomllib", "mutagen"]):
        import fuzz_targets

        target = fuzz_targets.TARGETS[name]
        corpus = Path(tempfile.mkdtemp(prefix="harmonium-corpus-"))
        seeds = [*target.seeds(), *(p.read_bytes() for p in (HERE / "found" / name).glob("*"))]
        for number, seed in enumerate(seeds):
            (corpus / f"{number}").write_bytes(seed)
            try:  # what it imports on the way is to be instrumented, too
                fuzz_targets.run(name, seed)
            except Exception:
                print(f"a seed fails: {number}")
    seen: set[str] = set()

    def once(data: bytes) -> None:
        try:
            fuzz_targets.run(name, data)
        except BaseException as error:  # a panic of polars is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            frames = traceback.extract_tb(error.__traceback__)
            last = [one for one in frames if "harmonium" in one.filename] or frames
            place = f"{Path(last[-1].filename).name}:{last[-1].lineno} {type(error).__name__}"
            if place not in seen:
                seen.add(place)
                digest = hashlib.sha256(data).hexdigest()[:12]
                path = options.found / name / digest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                print(f"FOUND {place}: {str(error)[:100]!r} {path}", flush=True)

    longest = max(4096, *(len(seed) for seed in seeds))
    flags = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", f"-max_len={longest}"]
    flags += ["-print_final_stats=1", "-timeout=60", "-rss_limit_mb=6000", "-verbosity=0"]
    flags += [f"-artifact_prefix={options.found}/{name}-"]
    options.found.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    atheris.Setup([sys.argv[0], *flags, str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
