"""Small disks in memory, which can be full or read-only; only the superuser can mount them."""

import ctypes
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

READ_ONLY, AGAIN, DETACHED = 1, 32, 2  # flags of mount and umount2
BALLAST = ".ballast"  # a file that fills a disk


def can_mount() -> bool:
    """Whether this process may mount disks."""
    with tempfile.TemporaryDirectory() as folder:
        if mounted := mount(Path(folder), "1m"):
            unmount(Path(folder))
        return mounted


def mount(folder: Path, size: str) -> bool:
    """Mount an empty disk of a size such as "3m" at a folder; whether that is possible."""
    return _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={size}".encode())


def unmount(folder: Path) -> None:
    assert _call("umount2", os.fsencode(folder), DETACHED)


def leave(folder: Path, free: int) -> None:
    """Fill a disk up to so many bytes."""
    make_room(folder)
    (folder / BALLAST).write_bytes(bytes(shutil.disk_usage(folder).free - free))
    assert shutil.disk_usage(folder).free == free


def make_room(folder: Path) -> None:
    (folder / BALLAST).unlink(missing_ok=True)


@contextmanager
def full(folder: Path, free: int = 0):
    """A disk with so many free bytes, or with fewer if it has fewer."""
    leave(folder, min(free, shutil.disk_usage(folder).free))
    try:
        yield
    finally:
        make_room(folder)


@contextmanager
def read_only(folder: Path):
    """A disk that nothing can be written to."""
    assert _call("mount", None, os.fsencode(folder), None, READ_ONLY | AGAIN, None)
    try:
        yield
    finally:
        assert _call("mount", None, os.fsencode(folder), None, AGAIN, None)


def _call(name, *arguments) -> bool:
    if os.geteuid() != 0:
        return False
    return getattr(ctypes.CDLL(None), name)(*arguments) == 0
