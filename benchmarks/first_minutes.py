"""From nothing to the first tagged song and to a library that can be searched: commands, seconds.

    python benchmarks/first_minutes.py                    # from a fresh clone of this repository
    python benchmarks/first_minutes.py --wheel FILE.whl   # from a wheel, outside of any repository

Everything happens in a new folder, with an empty home: no cache of pip, no compiled programs.
It needs git, Python and access to a package registry, and nothing of Harmonium. The music
is generated, 200 tracks of ten seconds, and not counted: you have yours. Every command is the one
that a person would type; where it prints something, the last lines are shown.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
GENERATE = """
from harmonium.synthetic import make_collection
make_collection({n}, 1, seed=3).write({folder!r}, jobs=2)
"""
SHOWN = 6
"""Lines of output."""


class Story:
    """Commands one after the other, in a folder, with an empty home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[tuple[str, float, float]] = []
        (folder / "home").mkdir()
        kept = {"PATH", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
        environment = {k: v for k, v in os.environ.items() if k in kept or k.startswith("PIP_")}
        self.environment = environment | {"HOME": str(folder / "home"), "PIP_NO_CACHE_DIR": "1"}

    def run(self, command: str, *arguments: str, show: bool = False, at: str = ".") -> None:
        """Run a command and note the seconds under the name that a person would type."""
        began, used = time.perf_counter(), processor_seconds()
        done = subprocess.run(
            arguments, cwd=self.folder / at, env=self.environment, capture_output=True, text=True
        )
        seconds, used = time.perf_counter() - began, processor_seconds() - used
        if done.returncode:
            sys.exit(f"{command} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
        if command:
            self.rows.append((command, seconds, used))
            print(f"{seconds:8.1f} s   {command}", flush=True)
        if show:
            for line in done.stdout.splitlines()[:SHOWN]:
                print(f"             {line}")

    def table(self) -> None:
        """What it took, as Markdown."""
        print("\n| command | seconds | of the processor | since the beginning |\n|---|---|---|---|")
        total = 0.0
        for command, seconds, used in self.rows:
            total += seconds
            print(f"| `{command}` | {seconds:.1f} | {used:.1f} | {total:.0f} |")


def processor_seconds() -> float:
    """That commands have used so far: on a busy machine it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(folder: Path) -> float:
    """Of all files of a folder, in MB."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="install this instead of a clone")
    parser.add_argument("--tracks", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as name:
        folder = Path(name).resolve()
        story = Story(folder)
        python = folder / "venv" / "bin" / "python"
        base = getattr(sys, "_base_executable", sys.executable)
        if options.wheel:
            wheel = options.wheel.resolve()
            print(f"The wheel has {wheel.stat().st_size / 1e6:.2f} MB.")
            what, install = "pip install harmonium.whl", [str(wheel)]
        else:
            story.run("git clone", "git", "clone", "--quiet", str(REPOSITORY), "clone")
            what, install = "pip install .", ["./clone", "--constraint", "clone/constraints.txt"]
        story.run("python -m venv venv", base, "-m", "venv", "venv")
        story.run(what, str(python), "-m", "pip", "install", "--quiet", *install)
        harmonium = str(folder / "venv" / "bin" / "harmonium")
        code = GENERATE.format(n=options.tracks, folder=str(folder / "Music"))
        story.run("", str(python), "-c", code)
        songs = sorted((folder / "Music").rglob("*.wav"))
        song = str(songs[0].relative_to(folder))
        story.run("harmonium tag song.wav", harmonium, "tag", song, show=True)
        story.run("harmonium index Music", harmonium, "index", "Music", show=True)
        question = "calm piano -drums"
        story.run(f'harmonium search "{question}"', harmonium, "search", question, show=True)
        say = [harmonium, "say", song, "sunday morning"]
        story.run('harmonium say song.wav "sunday morning"', *say, show=True)
        for one in songs[1:5]:
            story.run("", harmonium, "say", str(one), "sunday morning")
        question = '"sunday morning"'
        story.run(f"harmonium search '{question}'", harmonium, "search", question, show=True)
        story.run("python -m harmonium --help", str(python), "-m", "harmonium", "--help")
        story.table()
        packages = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
        print(
            f"\nHarmonium has {size(packages / 'harmonium'):.1f} MB when installed, with all that "
        )
        print(f"it needs {size(packages):.0f} MB; {len(songs)} tracks.")


if __name__ == "__main__":
    main()
