"""Compiled programs of JAX are kept in the user's cache folder, so that each is made once."""

import os


def keep_compiled() -> None:
    """To be called before JAX is imported; settings of the environment come first."""
    from harmonium.user_folders import user_cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
