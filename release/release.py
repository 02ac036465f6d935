"""Builds the wheel and the sdist, checks them, and tests both outside the repository.

    make release                                               # all of it
    python release/release.py --python 3.12 --with lowest      # some of it

For every Python that is found, and with the lowest and the newest dependencies that pyproject.toml
allows: the wheel is installed into an empty environment, where release/story.py is run; the sdist
is installed into another, where its own tests are run on the installed package. The Python that
runs this program gets all of "make test", with the newest dependencies; the others get the quick
tests.

What passed is kept in dist/tested, and is not tested again as long as the wheel stays the same.
When nothing is left, the table of docs/releasing.md is written.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from archives import PROJECT, Archives, ReleaseError, build, check, run

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOWEST, NEWEST = "lowest", "newest"
KINDS = ("wheel", "sdist")
FAILED = "failed"
EXTRAS = ("dask", "onnx", "postgres")
QUICK = (
    "data/test_tables.py",
    "data/test_triples.py",
    "evaluation",
    "rbm/test_rbm_gradients.py",
    "rbm/test_rbm_model.py",
    "estimators/test_model_files.py",
    "library/filetags/test_read.py",
    "library/filetags/test_write_formats.py",
    "commands/test_cli.py",
    "web/test_api.py",
    "test_public_names.py",
)
"""The tests that every environment gets,"""
TOOLS = (
    "distributed",
    "httpx",
    "hypothesis",
    "pandas",
    "psycopg[binary]",
    "pytest",
    "pytest-xdist",
)
"""and what they need. The others of the extra "test" may need newer dependencies than we do."""
DIST = PROJECT / "dist"
PAGE = PROJECT / "docs" / "releasing.md"
UV = Path(sys.executable).with_name("uv")


@dataclass
class Square:
    """One Python with one choice of dependencies, and the result."""

    python: str
    dependencies: str
    results: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether anything went wrong."""
        return FAILED in self.results.values()


def main() -> int:
    """Build, check, test, write the table; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only this one")
    parser.add_argument("--with", action="append", choices=(LOWEST, NEWEST), dest="dependencies")
    parser.add_argument("--quick", action="store_true", help="run no Python's tests in full")
    parser.add_argument("--keep", type=Path, help="a folder for the environments, to look at them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        try:
            archives = build(folder / "built")
            claims = check(archives)
        except ReleaseError as error:
            print(error, file=sys.stderr)
            return 1
        print(*claims, sep="\n", flush=True)
        for archive in (archives.wheel, archives.sdist):
            DIST.mkdir(exist_ok=True)
            shutil.copy(archive, DIST)
        squares = []
        for version in PYTHONS:
            for chosen in (LOWEST, NEWEST):
                wanted = version in (arguments.python or PYTHONS)
                if wanted and chosen in (arguments.dependencies or (LOWEST, NEWEST)):
                    square = kept(version, chosen, archives.wheel)
                    test(square, archives, folder, full=not arguments.quick)
                    print(version, chosen, square.results, flush=True)
                    squares.append(square)
        done = [kept(v, d, archives.wheel) for v in PYTHONS for d in (LOWEST, NEWEST)]
        if all(len(square.results) == len(KINDS) for square in done):
            write_page(archives, claims, done)
    return 1 if any(square.failed for square in squares) else 0


def _record(square: Square) -> Path:
    return DIST / "tested" / f"{square.python}-{square.dependencies}.json"


def keep(square: Square, wheel: Path) -> None:
    """Keep what passed of a square."""
    _record(square).parent.mkdir(exist_ok=True)
    passed = {kind: said for kind, said in square.results.items() if said != FAILED}
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    record = {"wheel": digest, "square": asdict(replace(square, results=passed))}
    _record(square).write_text(json.dumps(record, indent=1), encoding="utf-8")


def kept(version: str, dependencies: str, wheel: Path) -> Square:
    """What is known about a square with this wheel: nothing, if it has not been tested."""
    empty = Square(version, dependencies)
    if not _record(empty).is_file():
        return empty
    record = json.loads(_record(empty).read_text(encoding="utf-8"))
    same = record["wheel"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Square(**record["square"]) if same else empty


def find_python(version: str) -> Path | None:
    """An interpreter of this version: on the PATH, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python3"))]
    for path in filter(None, found):
        try:
            said = run(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
        except (ReleaseError, OSError):  # pyenv has shims even for versions that are not installed
            continue
        if said.strip() == version:
            return Path(path)
    return None


def test(square: Square, archives: Archives, folder: Path, *, full: bool) -> None:
    """Install both archives, each into its own environment, and try them."""
    python = find_python(square.python)
    if python is None:
        square.results = dict.fromkeys(KINDS, "no such Python was found")
        keep(square, archives.wheel)
        return
    place = folder / f"{square.python}-{square.dependencies}"
    place.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    needed = ("PATH", "LANG", "UV_", "PIP_", "SSL_", "SOURCE_DATE", "JAX_", "OMP_")
    env = {name: value for name, value in os.environ.items() if name.startswith(needed)}
    env |= {"HOME": str(home), "UV_CACHE_DIR": run(UV, "cache", "dir").strip()}
    constraints = place / "constraints.txt"
    everything = square.dependencies == NEWEST and full and sys.version.startswith(square.python)
    for kind, archive in zip(KINDS, (archives.wheel, archives.sdist), strict=True):
        if kind in square.results:
            continue
        start = time.monotonic()
        try:
            lines = lowest(python) if square.dependencies == LOWEST else []
            constraints.write_text("\n".join(lines), encoding="utf-8")
            tools = [] if kind == "wheel" else ["[test]", "pip"] if everything else TOOLS
            interpreter = install(archive, tools, python, constraints, place / kind, env)
            square.versions |= versions(interpreter)
            if kind == "wheel":
                story = shutil.copy(PROJECT / "release" / "story.py", place)
                run(interpreter, story, cwd=place, env=env)
                said = "passed"
            else:
                # old packages warn about newer ones that they find
                warnings = [] if square.dependencies == NEWEST else ["-o", "filterwarnings=default"]
                said = run_tests(interpreter, archive, place, env, warnings, everything=everything)
            square.results[kind] = f"{said}, {time.monotonic() - start:.0f} s"
        except ReleaseError as error:
            (place / f"{kind}.log").write_text(str(error), encoding="utf-8")
            print(str(error)[-6000:], file=sys.stderr)
            square.results[kind] = FAILED
        keep(square, archives.wheel)


def lowest(python: Path) -> list[str]:
    """The lowest version of each dependency that is allowed and has a wheel for this Python."""
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    resolved = run(
        *(UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", python),
        *("--resolution", "lowest-direct", "--only-binary", ":all:"),
        *(*extras, PROJECT / "pyproject.toml"),
    )
    wanted = {name for name, _ in dependencies()}
    return [line for line in resolved.splitlines() if line.partition("==")[0] in wanted]


def dependencies() -> list[tuple[str, str]]:
    """The dependencies of pyproject.toml and of the extras: name, and what is allowed."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["dependencies"] + [
        line for extra in EXTRAS for line in project["optional-dependencies"][extra]
    ]
    parts = [re.match(r"([\w-]+)(?:\[\w+\])?(.*)", line) for line in named]
    return [(part[1], part[2]) for part in parts if part]


def install(
    archive: Path,
    tools: Sequence[str],
    python: Path,
    constraints: Path,
    venv: Path,
    env: dict[str, str],
) -> Path:
    """The interpreter of a new environment with the archive and the tools, or the extra test."""
    run(UV, "venv", "--quiet", "--clear", "--python", python, venv, env=env)
    interpreter = venv / "bin" / "python"
    extra = "[test]" if "[test]" in tools else ""
    wanted = [f"harmonium{extra} @ {archive.as_uri()}", *(t for t in tools if t != extra)]
    command = (UV, "pip", "install", "--quiet", "--python", interpreter, "-c", constraints)
    run(*command, *wanted, cwd=venv.parent, env=env)
    return interpreter


def versions(interpreter: Path) -> dict[str, str]:
    """What is installed of the dependencies, and the version of Python itself."""
    lines = run(UV, "pip", "freeze", "--python", interpreter).splitlines()
    found = dict(line.lower().split("==") for line in lines if "==" in line)
    python = run(interpreter, "-c", "import platform; print(platform.python_version())").strip()
    wanted = [name for name, _ in dependencies()]
    return {"python": python} | {name: found[name] for name in wanted if name in found}


def run_tests(
    interpreter: Path,
    sdist: Path,
    place: Path,
    env: dict[str, str],
    options: Sequence[str],
    *,
    everything: bool,
) -> str:
    """Run the tests of the unpacked sdist on the installed package; says how many passed."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    source = place / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "harmonium")  # the installed package takes its place
    package = run(interpreter, "-c", "import harmonium; print(harmonium.__path__[0])", cwd=place)
    (source / "harmonium").symlink_to(package.strip())
    tests = ["tests"] if everything else [f"tests/{name}" for name in QUICK]
    words = ["-n", "2", "--dist", "loadfile", "-m", "not long", *options, *tests]
    said = run(interpreter.with_name("pytest"), *words, cwd=source, env=env)
    (place / "sdist.log").write_text(said, encoding="utf-8")
    count = re.search(r"\d+ passed", said)
    return f"{count[0] if count else 'passed'}{' (make test)' if everything else ''}"


def write_page(archives: Archives, claims: list[str], squares: list[Square]) -> None:
    """Put what was found into docs/releasing.md, below its line "Measured"."""
    rows = ["| Python | dependencies | wheel: the story | sdist: its tests |", "|---|---|---|---|"]
    for square in squares:
        python = square.versions.get("python", square.python)
        results = " | ".join(square.results[kind] for kind in ("wheel", "sdist"))
        rows.append(f"| {python} | {square.dependencies} | {results} |")
    sizes = ", ".join(
        f"`{path.name}` {path.stat().st_size / 1e6:.1f} MB"
        for path in (archives.wheel, archives.sdist)
    )
    found = [f"Built: {sizes}.", "", *(f"- {claim[0].upper()}{claim[1:]}." for claim in claims)]
    text, mark, _ = PAGE.read_text(encoding="utf-8").partition("<!-- written by make release -->\n")
    parts = ("\n".join(part) for part in (found, rows))
    PAGE.write_text(f"{text}{mark}\n" + "\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
