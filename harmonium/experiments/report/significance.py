"""On how many tags one model is significantly better than another, as the paper counts it."""

from dataclasses import dataclass

from harmonium.evaluation import PairedTests, paired_t_tests
from harmonium.experiments.report.scores import Score

CORRECTIONS = ("none", "holm", "bh")


@dataclass(frozen=True, eq=False)
class Duel:
    """Two scores on the same folds and tags."""

    first: Score
    second: Score
    n_folds: int
    """Test folds that both have finished."""
    tests: dict[str, PairedTests]
    """Correction for many tests -> a test per tag."""

    @property
    def better(self) -> int:
        """Tags on which the first is significantly better, each test alone."""
        return self.tests["none"].n_better

    @property
    def worse(self) -> int:
        """Tags on which the first is significantly worse, each test alone."""
        return self.tests["none"].n_worse

    @property
    def n_tested(self) -> int:
        """Tags with an AUC in at least two common folds."""
        tests = self.tests["none"]
        return len(tests.p) - len(tests.reasons)


def duel(first: Score, second: Score) -> Duel | None:
    """Two-sided paired t-tests over folds, one per tag; None with fewer than two common folds."""
    common = int((first.finished & second.finished).sum())
    if common < 2 or first.n_tags != second.n_tags:
        return None
    tests = {c: paired_t_tests(first.aucs, second.aucs, correction=c) for c in CORRECTIONS}
    return Duel(first, second, common, tests)
