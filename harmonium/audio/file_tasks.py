"""One file's way through the cache and a worker."""

import os
import pickle
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.cache import FeatureCache, FileStatus, file_digest, file_status
from harmonium.audio.clip import quoted
from harmonium.audio.extractors import Extractor
from harmonium.engine import EngineError
from harmonium.errors import AudioError

ATTEMPTS = 3
"""How often a file is read that changes while it is read."""


@dataclass(frozen=True)
class FileFeatures:
    """What became of one file: its features, or the reason why there are none."""

    position: int
    """Its place among the paths given, from 0."""
    path: str
    """As given."""
    vector: NDArray[np.float32] | None
    """(n_features,)"""
    reason: str | None = None
    """Why there are no features, in words that follow the file's name."""
    cached: bool = False
    """Whether the features were in the cache."""
    heads: NDArray[np.float32] | None = None
    """(n_heads,) the tag probabilities that the extractor gives besides, if it does."""


@dataclass(frozen=True)
class DigestedFile:
    """A path with a digest that is known already, so that the file need not be read for one."""

    path: str
    digest: bytes
    """SHA-256 of its content, or of its sound alone."""
    size: int
    modified: int
    """What the file was when that was computed; if it is not so any more, the digest is void."""

    def __fspath__(self) -> str:
        return self.path

    def digest_now(self, status: FileStatus) -> bytes | None:
        """The digest, if the file is still what it was."""
        return self.digest if (self.size, self.modified) == status[:2] else None


@dataclass(frozen=True)
class FileTask:
    """A file to read, what to find out, and what is known of it."""

    position: int
    path: str
    full_path: str
    wants_numbers: bool = True
    wants_digest: bool = False
    digested: DigestedFile | None = None
    status: FileStatus | None = None
    digest: bytes | None = None
    attempt: int = 1

    def failed(self, reason: str) -> FileFeatures:
        """The end of it, without features."""
        return FileFeatures(self.position, self.path, None, reason)


@dataclass(frozen=True)
class WorkerAnswer:
    """What a worker found out about a file."""

    numbers: NDArray[np.float32] | None = None
    """(n_numbers,) the features, then the heads"""
    digest: bytes | None = None
    reason: str | None = None


@dataclass(frozen=True)
class FileReader:
    """The function that workers run: task → answer. The extractor is pickled for processes."""

    extractor: bytes | Extractor
    start: float | None

    def __call__(self, task: FileTask) -> WorkerAnswer:
        """Read the file; what is wrong with it is a reason, what is wrong otherwise raises."""
        given = self.extractor
        extractor = given if isinstance(given, Extractor) else _loaded(given)
        numbers = digest = None
        try:
            if task.wants_numbers:  # first, as that knows what is not a music file
                numbers = np.concatenate(extractor.hear_file(task.full_path, self.start))
            if task.wants_digest:
                digest = file_digest(task.full_path)
        except (AudioError, OSError) as error:
            return WorkerAnswer(reason=_reason(error, task.full_path))
        except MemoryError:
            return WorkerAnswer(reason="needs more memory than there is.")
        return WorkerAnswer(numbers, digest)


@dataclass
class CachedExtraction:
    """What one extraction does next for a file, by the cache, if there is one, and by answers."""

    cache: FeatureCache | None
    recipe: str
    extractor: Extractor

    def first_step(self, task: FileTask) -> FileTask | FileFeatures:
        """What is to be done for a file; or its features, where they are known."""
        if self.cache is None:
            return task
        try:
            status = file_status(task.full_path)
        except (OSError, ValueError):
            return task  # a worker finds the words for it
        numbers = self.cache.find_by_path(task.full_path, status, self.recipe)
        if self._is_right(numbers):
            return self._done(task, numbers, cached=True)
        digest = task.digested.digest_now(status) if task.digested else None
        task = replace(task, status=status, digest=digest)
        if digest is not None and (found := self._find(self.cache, task, status, digest)):
            return found
        # This content can be known only if some of its size is: then its digest comes first.
        possible = self.cache.has_size(status.size, self.recipe)
        return replace(task, wants_digest=possible or digest is None, wants_numbers=not possible)

    def next_step(self, task: FileTask, answer: WorkerAnswer) -> FileTask | FileFeatures:
        """What follows from a worker's answer: the features, or what is to be done next."""
        digest = answer.digest or task.digest
        if answer.reason:
            return task.failed(answer.reason)
        if self.cache is None or task.status is None or digest is None:
            return self._done(task, answer.numbers)
        try:
            status = file_status(task.full_path)
        except OSError:
            return task.failed("vanished while it was read.")
        if status != task.status:
            return _again(task, status)
        if answer.numbers is not None:
            self.cache.put(task.full_path, status, digest, self.recipe, answer.numbers)
            return self._done(task, answer.numbers)
        if found := self._find(self.cache, task, status, digest):
            return found
        return replace(task, wants_numbers=True, wants_digest=False, digest=digest)

    def _find(
        self, cache: FeatureCache, task: FileTask, status: FileStatus, digest: bytes
    ) -> FileFeatures | None:
        """The features of a content, if the cache has them; it then knows the path, too."""
        numbers = cache.find_by_content(digest, self.recipe)
        if not self._is_right(numbers):
            return None
        cache.remember(task.full_path, status, digest)
        return self._done(task, numbers, cached=True)

    def _is_right(self, numbers: NDArray[np.float32] | None) -> bool:
        """Whether the cache has as many numbers as the extractor gives."""
        return numbers is not None and len(numbers) == self.extractor.n_numbers

    def _done(
        self, task: FileTask, numbers: NDArray[np.float32] | None, cached: bool = False
    ) -> FileFeatures:
        """The end of it: the numbers as what they are."""
        assert numbers is not None
        vector, heads = np.split(numbers, [len(self.extractor.feature_names)])
        known = heads if len(heads) else None
        return FileFeatures(task.position, task.path, vector, cached=cached, heads=known)


def _again(task: FileTask, status: FileStatus) -> FileTask | FileFeatures:
    """What is to be done for a file that is no longer what it was when it was read."""
    if task.attempt == ATTEMPTS:
        return task.failed(f"changed while it was read, {ATTEMPTS} times.")
    return FileTask(
        *(task.position, task.path, task.full_path),
        wants_digest=True,
        status=status,
        attempt=task.attempt + 1,
    )


def pickled_extractor(extractor: Extractor) -> bytes:
    """The extractor as it goes to workers: pickled once, not for each file."""
    try:
        return pickle.dumps(extractor)
    except Exception as error:
        raise EngineError(
            f"The extractor '{extractor.name}' cannot be sent to other processes ({error}). Define "
            "its function at the top of a module, or work in this process with engine='serial'."
        ) from error


@lru_cache(maxsize=4)
def _loaded(data: bytes) -> Extractor:
    """The extractor in a worker; the same object for all files, so that it can keep things."""
    try:
        extractor = pickle.loads(data)
    except Exception as error:
        raise EngineError(
            f"The extractor cannot be loaded where the workers are ({type(error).__name__}: "
            f"{error}). Install there the package that defines it."
        ) from error
    assert isinstance(extractor, Extractor)
    return extractor


def _reason(error: Exception, path: str | os.PathLike[str]) -> str:
    """The error in words that follow the file's name."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}."
    return str(error).removeprefix(f"{quoted(path)} ")
