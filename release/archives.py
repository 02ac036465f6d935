"""The wheel and the sdist: built so that they can be built again, and checked file by file."""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
GENERATED = {"PKG-INFO"}
"""What the sdist has that the repository does not."""


class ReleaseError(Exception):
    """Something is wrong with the release."""


@dataclass(frozen=True)
class Archives:
    """What is released."""

    wheel: Path
    sdist: Path


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a command prints; if it fails, its output is the error."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(folder: Path, *wanted: str) -> Archives:
    """Build both archives, or the ``wanted`` ones, dated by the last commit."""
    date = run("git", "log", "-1", "--format=%ct", cwd=PROJECT).strip()
    env = {**os.environ, "SOURCE_DATE_EPOCH": date}
    command = [sys.executable, "-m", "build", "--installer", "uv", *wanted]
    run(*command, "--outdir", folder, PROJECT, env=env)
    wheels, sdists = (list(folder.glob(f"harmonium-*{end}")) for end in (".whl", ".tar.gz"))
    return Archives(*(found[0] if found else folder for found in (wheels, sdists)))


def check(archives: Archives) -> list[str]:
    """Check both archives; returns what was found to be right."""
    run(sys.executable, "-m", "twine", "check", "--strict", archives.wheel, archives.sdist)
    tracked = set(run("git", "ls-files", cwd=PROJECT).splitlines())
    in_sdist = _files_of_sdist(archives.sdist) - GENERATED
    _same("sdist", in_sdist, {path for path in tracked if _belongs(path)})
    in_wheel = {path for path in _files_of_wheel(archives.wheel) if ".dist-info/" not in path}
    packaged = {path for path in tracked if path.startswith("harmonium/")}
    recipes = {f"harmonium/{path}" for path in tracked if path.startswith("recipes/")}
    _same("wheel", in_wheel, packaged | recipes)
    with tempfile.TemporaryDirectory() as folder:
        again = build(Path(folder))
        direct = build(Path(folder) / "direct", "--wheel")
        pairs = {
            "the wheel is the same when it is built again": (again.wheel, archives.wheel),
            "the sdist is the same when it is built again": (again.sdist, archives.sdist),
            "the wheel of the sdist is the wheel of the repository": (direct.wheel, archives.wheel),
        }
        for claim, (one, other) in pairs.items():
            if one.read_bytes() != other.read_bytes():
                raise ReleaseError(f"Not true: {claim}.")
    return [
        "twine has nothing to say",
        f"the wheel has {len(in_wheel)} files: the package and the recipes, all of them tracked",
        f"the sdist has {len(in_sdist)} files, all of them tracked",
        *pairs,
    ]


def _belongs(path: str) -> bool:
    """Whether a file of the repository is meant for the sdist."""
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    return path.split("/")[0] in {*included, "pyproject.toml", "LICENSE", ".gitignore"}


def _files_of_sdist(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def _files_of_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def _same(archive: str, found: set[str], expected: set[str]) -> None:
    for what, paths in {"stray": found - expected, "missing": expected - found}.items():
        if paths:
            raise ReleaseError(f"The {archive} has {what} files: {', '.join(sorted(paths))}")
