"""A PostgreSQL server for tests: started from the system's package, on a socket in a folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from small_disks import mount, unmount

from harmonium.library import Library
from harmonium.library.store.schema import table_version

QUICK = "-F -c full_page_writes=off"
"""Options of a server that need not outlive a power cut."""


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, or None."""
    if found := shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return folders[-1].parent if folders else None


def why_not() -> str | None:
    """Why no server can be started here; None where one can."""
    if binaries() is None:
        return "there is no PostgreSQL on this machine (Debian's package is postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user postgres"
    return None


@contextmanager
def restartable_server(options: str = QUICK, *, size: str = ""):
    """A running server; gives the URL of its database, and what stops and starts it.

    That is called with "stop", "start" or "restart", and perhaps with the mode of stopping. With a
    ``size``, the server's data are on a small disk of their own, which only the superuser can make.
    """
    # A socket's path may have about 100 characters, so the folder is not pytest's.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    run = partial(_run, folder)
    make = ["-A", "trust", "-U", "harmonium", "-E", "UTF8", "--no-sync"]
    try:
        if size:
            data_folder(folder).mkdir()
            assert mount(data_folder(folder), size)
            make.append("--wal-segsize=1")
        run("initdb", "-D", "data", *make)
        options = f"-c listen_addresses= -k {folder} {options}"
        start = ("-w", "-t", "120", "-l", "log", "-o", options)

        def control(what: str, mode: str = "immediate") -> None:
            stopping = ("-m", mode) if what != "start" else ()
            run("pg_ctl", "-D", "data", *stopping, *(start if what != "stop" else ()), what)

        control("start")
        try:
            yield f"postgresql://harmonium@/postgres?host={folder}", control
        finally:
            run("pg_ctl", "-D", "data", "-m", "immediate", "stop")
    finally:
        if size:
            unmount(data_folder(folder))
        shutil.rmtree(folder, ignore_errors=True)


def data_folder(server: str | Path) -> Path:
    """The folder with the data of a server, given by its folder or the URL of its database."""
    return Path(str(server).rpartition("host=")[2]) / "data"


def new_schema(url: str) -> tuple[str, str]:
    """An empty place in a database, which takes less time than a new one; its name and URL."""
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return name, f"{url}&options=-csearch_path%3D{name}"


@contextmanager
def schema(url: str):
    """A `new_schema` that is gone afterwards; gives its URL."""
    name, place = new_schema(url)
    try:
        yield place
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages = error")
            connection.execute(f"DROP SCHEMA {name} CASCADE")


class EmptyLibrary:
    """A library in a schema of its own that is emptied again and again.

    That takes a fifth of the time of a new one: many tests begin with an empty library.
    """

    def __init__(self, url: str) -> None:
        _, self.url = new_schema(url)
        Library.open(self.url).close()
        self._made = self._relations()
        steps = [f"DELETE FROM {table}" for table in self._made["r"] if table != table_version.name]
        steps += [f"ALTER SEQUENCE {sequence} RESTART" for sequence in self._made["S"]]
        # as a replica, it need not delete in the order that foreign keys ask for
        self._emptying = "SET session_replication_role = replica; " + "; ".join(steps)

    def empty(self) -> bool:
        """Whether it could be emptied, and is as it was made."""
        try:
            with psycopg.connect(self.url) as connection:
                connection.execute("SET lock_timeout = '5s'")
                connection.execute(self._emptying)
        except psycopg.Error:  # a table is gone, or somebody holds a lock on it
            return False
        return self._relations() == self._made

    def _relations(self) -> dict[str, list[str]]:
        query = "SELECT relkind::text, relname FROM pg_class WHERE relnamespace = %s::regnamespace"
        found: dict[str, list[str]] = {}
        with psycopg.connect(self.url) as connection:
            name = connection.execute("SELECT current_schema()").fetchone()[0]
            for kind, relation in connection.execute(query, (name,)).fetchall():
                found.setdefault(kind, []).append(relation)
        return {kind: sorted(names) for kind, names in found.items()}


def _run(folder: Path, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL in a folder, as a user that may."""
    user: dict[str, int] = {}
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        for place in (folder, data_folder(folder)):
            if place.is_dir():
                os.chown(place, entry.pw_uid, entry.pw_gid)
        user = {"user": entry.pw_uid, "group": entry.pw_gid}
    command = [binaries() / program, *arguments]
    with (folder / "output").open("a") as out:  # the server would hold a pipe open
        pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        done = subprocess.run(command, cwd=folder, check=False, **pipes, **user)
    if done.returncode:
        logs = [folder / name for name in ("output", "log")]
        said = "\n".join(log.read_text() for log in logs if log.is_file())
        raise RuntimeError(f"{program} failed:\n{said}")
