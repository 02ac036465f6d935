"""scikit-learn transformers: files or samples → features → features of one scale."""

import os
import warnings
from numbers import Integral
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from harmonium.arrays import Floats, Numbers
from harmonium.audio.decoding import quoted
from harmonium.audio.extraction import extract_files
from harmonium.audio.extractors import Extractor, get_extractor
from harmonium.engine import Engine
from harmonium.errors import AudioError, DataError, DataWarning
from harmonium.files import PathLike
from harmonium.parameters import Count, NotNegative, estimator, parameter
from harmonium.scikit_learn import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

FLOATS = [np.float64, np.float32]

ROUNDING = 1e-9  # a deviation below this fraction of the largest value is rounding


@estimator
class AudioFeatures(TransformerMixin, BaseEstimator):
    """Music files, or samples, → a matrix with a row per clip.

    It learns nothing: ``fit`` only checks the parameters, and ``transform`` needs no ``fit``.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clips = 0.1 * rng.normal(size=(3, 2 * 22_050))
    >>> AudioFeatures(extractor="timbre").fit_transform(clips).shape
    (3, 189)
    """

    extractor: Annotated[str | Extractor, str, Extractor] = parameter(
        """"paper" (389 features), "timbre" (its first 189), "rhythm" (the other 200), a name that
        was registered, or an `Extractor`.""",
        default="paper",
        kw_only=False,
    )
    start: NotNegative | None = parameter(
        "Where the window begins, in seconds; None for the middle one.", default=None
    )
    rate: Count | None = parameter(
        "Samples per second of arrays given instead of files; None for the extractor's.",
        default=None,
    )
    on_error: Literal["raise", "nan"] = parameter(
        """What to do about files that cannot be used. "raise": one `AudioError` lists them all.
        "nan": their rows are NaN, and a `DataWarning` lists them.""",
        default="raise",
    )
    n_jobs: Annotated[int, Integral] | None = parameter(
        "Processes that read files; None means this one only, -1 one for each core.", default=None
    )
    engine: Annotated[str | Engine, str, Engine] = parameter(
        """"processes", or the address of a Dask scheduler, whose workers then read the files.""",
        default="processes",
    )
    cache: Annotated[PathLike, str, os.PathLike] | None = parameter(
        "Folder in which features are cached; None for no cache.", default=None
    )

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters, and what X is; nothing is read or learnt."""
        self._validate_params()
        get_extractor(self.extractor)
        if X is not None:
            read_clips(X)
        return self

    def transform(self, X: Any) -> Floats:
        """The features of each clip.

        Parameters
        ----------
        X : paths, or arrays of samples (floats with full scale 1, one channel): a list, an array,
            a series, or a frame with one column. An array of numbers has a clip in each row.

        Returns
        -------
        (n_clips, n_features) float32
        """
        self._validate_params()
        extractor = get_extractor(self.extractor)
        clips = read_clips(X)
        if clips and isinstance(clips[0], str):
            features, reasons = self._of_files(clips, extractor)
        else:
            features, reasons = self._of_samples(clips, extractor)
        if reasons:
            account = "\n".join([f"{len(reasons)} of {len(clips)} clips cannot be used:", *reasons])
            if self.on_error == "raise":
                raise AudioError(f"{account}\nLeave them out, or pass on_error='nan'.")
            warnings.warn(f"{account}\nTheir features are NaN.", DataWarning, stacklevel=3)
        return features

    def _of_files(self, paths: list[str], extractor: Extractor) -> tuple[Floats, list[str]]:
        """Features with rows of NaN, and the reasons for those rows."""
        in_this_process = self.n_jobs in (None, 1) and self.engine == "processes"
        extraction = extract_files(
            paths,
            extractor=extractor,
            jobs=None if self.n_jobs in (None, -1) else self.n_jobs,
            engine="serial" if in_this_process else self.engine,
            cache=self.cache,
            start=self.start,
        )
        features = np.full((len(paths), extraction.features.shape[1]), np.nan, np.float32)
        features[extraction.rows] = extraction.features
        reasons = [f"{quoted(file.path)} {file.reason}" for file in extraction.failures]
        return features, reasons

    def _of_samples(self, clips: list[Floats], extractor: Extractor) -> tuple[Floats, list[str]]:
        features = np.full((len(clips), len(extractor.feature_names)), np.nan, np.float32)
        reasons = []
        for row, samples in enumerate(clips):
            try:
                numbers = extractor.extract((samples, self.rate or extractor.rate), self.start)
                features[row] = numbers[: features.shape[1]]
            except DataError as error:
                reasons.append(f"X[{row}]: {error}")
        return features, reasons

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """What each feature is, (n_features,)."""
        return np.array(get_extractor(self.extractor).feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.no_validation = True  # rows may have any length
        tags.transformer_tags.preserves_dtype = []
        return tags


class ClipNormaliser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """x ← (x − mean) / deviation by dimension, then x ← x / ‖x‖ by clip, as the paper has it.

    Mean and deviation come from the clips given to ``fit``. A dimension that was constant there
    carries no information and becomes 0; a clip that equals the mean in all dimensions stays 0.

    Attributes
    ----------
    mean_ : (n_features,)
    scale_ : (n_features,), the standard deviation; infinite for a constant dimension

    Examples
    --------
    >>> X = [[1.0, 7.0, 3.0], [3.0, 7.0, 0.0], [2.0, 7.0, 3.0]]
    >>> ClipNormaliser().fit_transform(X).round(3)
    array([[-0.866,  0.   ,  0.5  ],
           [ 0.655,  0.   , -0.756],
           [ 0.   ,  0.   ,  1.   ]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and deviation of each dimension from training clips, (n_clips, n_features)."""
        X = validate_data(self, X, dtype=FLOATS).astype(np.float64)
        # In units of the largest value, whose squares neither overflow nor vanish.
        peak = np.abs(X).max(axis=0)
        peak[peak == 0] = 1.0
        deviation = (X / peak).std(axis=0)
        constant = deviation <= ROUNDING
        self.mean_ = np.where(constant, X[0], (X / peak).mean(axis=0) * peak)
        self.scale_ = np.where(constant, np.inf, deviation * peak)
        return self

    def transform(self, X: Any) -> Numbers:
        """Clips of unit norm, (n_clips, n_features), in the precision of X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS)
        scaled = (X.astype(np.float64) - self.mean_) / self.scale_
        largest = np.abs(scaled).max(axis=1, keepdims=True)
        largest[largest == 0] = 1.0
        scaled /= largest
        norm = np.linalg.norm(scaled, axis=1, keepdims=True)
        norm[norm == 0] = 1.0
        return (scaled / norm).astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def read_clips(X: Any) -> list[Any]:
    """The clips of a list, array, series or one-column frame: all paths, or all samples."""
    if isinstance(X, str | os.PathLike | None):
        way_out = "Put it in a list."
        if X is not None and os.path.isdir(X):  # noqa: PTH112
            way_out = "List the files of the folder: sorted(pathlib.Path(folder).rglob('*.mp3'))."
        raise DataError(f"'X' must be a list of paths or of samples, got {X!r}. {way_out}")
    if hasattr(X, "to_numpy"):  # a series or frame of pandas or polars
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "OUT":
        X = X[:, 0]
    clips = list(X)
    if all(isinstance(clip, str | os.PathLike) for clip in clips):
        return [os.fspath(clip) for clip in clips]
    samples = []
    for row, clip in enumerate(clips):
        try:
            array = np.asarray(clip)
        except ValueError:  # its rows have several lengths
            array = np.asarray(clip, dtype=object)
        if array.ndim != 1 or array.dtype.kind != "f":
            raise DataError(
                "'X' must hold paths only, or arrays of samples only: floats with full scale 1 in "
                f"one channel, of shape (n,); got in X[{row}] {type(clip).__name__} of "
                f"{array.dtype} with the shape {array.shape}."
            )
        with np.errstate(over="ignore"):  # too large numbers become infinite, and are refused later
            samples.append(array.astype(np.float32, copy=False))
    return samples
