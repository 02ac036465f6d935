"""A lock on an open file that other processes respect, where the system has one."""

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everything but Windows
    msvcrt = None  # type: ignore[assignment]


def try_lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file; False where another process holds the lock and we do not wait for it.

    The lock ends when the file is closed, however the process ends. A file system or a Python that
    knows no locks counts as locked: whoever works there has to take care alone.
    """
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # flock's and msvcrt's "another has it"
        return False
    except OSError:
        return True
    return True
