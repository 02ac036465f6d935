"""Every number that the features depend on, in one place."""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite

from harmonium.errors import DataError


@dataclass(frozen=True)
class FeatureParameters:
    """The rates, frames, bands and coefficient numbers of the features of a clip.

    Two equal objects give the same features of the same samples. The defaults give the paper's
    189 timbre and 200 rhythm features.

    >>> FeatureParameters().n_features
    389
    >>> FeatureParameters(n_mfcc=13, n_rhythm=20).n_features
    184
    """

    rate: int = 22_050
    """Samples per second that the clip must have."""
    shortest_clip: float = 1.0
    """Seconds that a clip must last; less says nothing about rhythm."""

    frame_length: int = 1024
    """Samples in a frame of the spectrum (46 ms at the default rate)."""
    hop_length: int = 512
    """Samples from one frame to the next (43 frames a second at the default rate)."""
    n_mels: int = 40
    """Mel bands."""
    lowest_hz: float = 30.0
    """Where the first mel band begins."""
    highest_hz: float = 11_025.0
    """Where the last mel band ends."""
    silence: float = 1e-14
    """Mel energies below it count as it; it is below the rounding noise of 24-bit samples."""
    dynamic_range: float = 80.0
    """dB below the clip's strongest mel energy from where on energies count as this weak."""

    n_mfcc: int = 18
    """Cepstral coefficients, MFCC 0 included."""

    band_names: tuple[str, ...] = ("low", "low-mid", "high-mid", "high")
    """The broad bands of the rhythm features."""
    band_edges: tuple[float, ...] = (200.0, 800.0, 3200.0)
    """Hz between them. A mel band belongs to the broad band that its centre lies in."""
    modulation_frame: int = 430
    """Spectrum frames in a frame of the modulation spectrum (10 s at the default rate)."""
    modulation_fft: int = 512
    """Length of its Fourier transform, zeros included."""
    highest_modulation_hz: float = 10.0
    """Where the modulation spectrum ends."""
    n_rhythm: int = 50
    """DCT coefficients of each broad band's modulation spectrum."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_limits()
        self._check_bands()

    @property
    def frame_rate(self) -> float:
        """Spectrum frames per second."""
        return self.rate / self.hop_length

    @property
    def shortest_length(self) -> int:
        """Samples that a clip must have; at least two frames, so that there is a covariance."""
        return max(ceil(self.shortest_clip * self.rate), self.frame_length + self.hop_length)

    @property
    def n_modulations(self) -> int:
        """Frequencies of the modulation spectrum, 0 Hz included."""
        return 1 + floor(self.highest_modulation_hz / self.frame_rate * self.modulation_fft)

    @property
    def n_timbre(self) -> int:
        """Timbre features: the means, and the distinct entries of the covariance."""
        return self.n_mfcc + self.n_mfcc * (self.n_mfcc + 1) // 2

    @property
    def n_features(self) -> int:
        """All features."""
        return self.n_timbre + len(self.band_names) * self.n_rhythm

    def _check_numbers(self) -> None:
        for name in ("rate", "frame_length", "hop_length", "n_mels", "n_mfcc", "n_rhythm"):
            self._check_whole(name, 1)
        for name in ("modulation_frame", "modulation_fft"):
            self._check_whole(name, 3)  # a window of fewer frames is all zeros
        for name in ("shortest_clip", "silence", "dynamic_range", "highest_modulation_hz"):
            value = getattr(self, name)
            if not isfinite(value) or value <= 0:
                raise DataError(f"'{name}' must be a positive number, got {value!r}.")

    def _check_whole(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or value < least:
            raise DataError(f"'{name}' must be a whole number of at least {least}, got {value!r}.")

    def _check_limits(self) -> None:
        half = self.rate / 2
        if not 0 <= self.lowest_hz < self.highest_hz <= half:
            raise DataError(
                "'lowest_hz' and 'highest_hz' must satisfy 0 ≤ lowest_hz < highest_hz ≤ rate / 2 = "
                f"{half:g}, got {self.lowest_hz!r} and {self.highest_hz!r}."
            )
        if self.n_mfcc > self.n_mels:
            raise DataError(
                f"'n_mfcc' must be at most 'n_mels', got {self.n_mfcc} and {self.n_mels}."
            )
        if self.modulation_frame > self.modulation_fft:
            raise DataError(
                "'modulation_fft' must be at least 'modulation_frame', got "
                f"{self.modulation_fft} and {self.modulation_frame}."
            )
        if self.highest_modulation_hz > self.frame_rate / 2:
            raise DataError(
                "'highest_modulation_hz' must be at most half the frame rate "
                f"({self.frame_rate / 2:.2f} Hz), got {self.highest_modulation_hz!r}. "
                "Choose a smaller 'hop_length', or a lower modulation frequency."
            )
        if self.n_rhythm > self.n_modulations:
            raise DataError(
                "'n_rhythm' must be at most the number of modulation frequencies "
                f"({self.n_modulations}), got {self.n_rhythm}. A longer 'modulation_fft' "
                "gives more."
            )

    def _check_bands(self) -> None:
        names, edges = self.band_names, self.band_edges
        if len(set(names)) != len(names) or len(names) != len(edges) + 1:
            raise DataError(
                "'band_names' must be distinct and one more than 'band_edges', got "
                f"{names!r} and {edges!r}."
            )
        inside = (self.lowest_hz, *edges, self.highest_hz)
        if any(not a < b for a, b in pairwise(inside)):
            raise DataError(
                "'band_edges' must rise between 'lowest_hz' and 'highest_hz' "
                f"({self.lowest_hz:g} and {self.highest_hz:g} Hz), got {edges!r}."
            )
