"""One file's way through the cache and a worker."""

import os
import pickle
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.cache import FeatureCache, Known, Stamp, digest_of, stamp_of
from harmonium.audio.decoding import quoted
from harmonium.audio.extractors import Extractor, features_of_file
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
    digest: bytes | None = None
    """SHA-256 of its content, where it was asked for or a cache needed it."""
    cached: bool = False
    """Whether the features were in the cache."""


@dataclass(frozen=True)
class Job:
    """A file to read, what to find out, and what is known of it."""

    position: int
    path: str
    full_path: str
    wants_vector: bool = True
    wants_digest: bool = False
    stamp: Stamp | None = None
    digest: bytes | None = None
    attempt: int = 1

    def done(
        self,
        vector: NDArray[np.float32] | None = None,
        *,
        reason: str | None = None,
        digest: bytes | None = None,
        cached: bool = False,
    ) -> FileFeatures:
        """The end of it."""
        return FileFeatures(self.position, self.path, vector, reason, digest, cached)


@dataclass(frozen=True)
class Heard:
    """What a worker says about a file."""

    vector: NDArray[np.float32] | None = None
    digest: bytes | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Listener:
    """The function that workers run: job → what was heard. The extractor is packed."""

    extractor: bytes | Extractor
    start: float | None

    def __call__(self, job: Job) -> Heard:
        """Read the file; what is wrong with it is a reason, what is wrong otherwise raises."""
        extractor = unpacked(self.extractor)
        vector = digest = None
        try:
            if job.wants_vector:  # first, as it knows what is not a file of music
                vector = features_of_file(job.full_path, extractor, start=self.start)
            if job.wants_digest:
                digest = digest_of(job.full_path)
        except (AudioError, OSError) as error:
            return Heard(reason=_reason(error, job.full_path))
        except MemoryError:
            return Heard(reason="needs more memory than there is.")
        return Heard(vector, digest)


@dataclass
class Shelf:
    """The cache, or none, as one extraction uses it."""

    cache: FeatureCache | None
    recipe: str
    n_features: int
    digests: bool

    def first(self, job: Job) -> Job | FileFeatures:
        """What is to be done for a file; or its features, where they are known."""
        if self.cache is None:
            return replace(job, wants_digest=self.digests)
        try:
            stamp = stamp_of(job.full_path)
        except (OSError, ValueError):
            return job  # a worker finds the words for it
        known = self._checked(self.cache.of_file(job.full_path, stamp, self.recipe))
        if known:
            return job.done(known.vector, digest=known.digest, cached=True)
        # This content can be known only if some of its size is: then its digest comes first.
        possible = self.cache.has_size(stamp.size, self.recipe)
        return replace(job, stamp=stamp, wants_digest=True, wants_vector=not possible)

    def then(self, job: Job, heard: Heard) -> Job | FileFeatures:
        """What follows from a worker's answer: the features, or what is to be done next."""
        digest = heard.digest or job.digest
        if heard.reason or self.cache is None or job.stamp is None or digest is None:
            return job.done(heard.vector, reason=heard.reason, digest=digest)
        try:
            stamp = stamp_of(job.full_path)
        except OSError:
            return job.done(reason="vanished while it was read.")
        if stamp != job.stamp:
            return _again(job, stamp)
        if heard.vector is not None:
            self.cache.put(job.full_path, stamp, digest, self.recipe, heard.vector)
            return job.done(heard.vector, digest=digest)
        known = self._checked(self.cache.of_content(digest, self.recipe))
        if known is None:
            return replace(job, wants_vector=True, wants_digest=False, digest=digest)
        self.cache.remember(job.full_path, stamp, digest)
        return job.done(known.vector, digest=digest, cached=True)

    def _checked(self, known: Known | None) -> Known | None:
        """What the cache has, unless it is not what the extractor gives."""
        return known if known and len(known.vector) == self.n_features else None


def _again(job: Job, stamp: Stamp) -> Job | FileFeatures:
    """What is to be done for a file that is no longer what it was when it was read."""
    if job.attempt == ATTEMPTS:
        return job.done(reason=f"changed while it was read, {ATTEMPTS} times.")
    attempt = job.attempt + 1
    return Job(job.position, job.path, job.full_path, True, True, stamp, attempt=attempt)


def packed(extractor: Extractor) -> bytes:
    """The extractor as it goes to workers: pickled once, not for each file."""
    try:
        return pickle.dumps(extractor)
    except Exception as error:
        raise EngineError(
            f"The extractor '{extractor.name}' cannot be sent to other processes ({error}). Define "
            "its function at the top of a module, or work in this process with engine='serial'."
        ) from error


def unpacked(extractor: bytes | Extractor) -> Extractor:
    """The extractor in a worker; the same object for all files, so that it can keep things."""
    return extractor if isinstance(extractor, Extractor) else _loaded(extractor)


@lru_cache(maxsize=4)
def _loaded(data: bytes) -> Extractor:
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
