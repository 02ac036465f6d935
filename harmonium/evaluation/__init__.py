"""How models are judged: metrics, folds, significance. See docs/evaluation.md."""

from harmonium.evaluation.folds import (
    FoldReport,
    GroupedTagKFold,
    Split,
    fold_report,
    grouped_folds,
    nested_folds,
)
from harmonium.evaluation.metrics import (
    MetricResult,
    Reliability,
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    brier_per_tag,
    calibration_error_per_tag,
    evaluate,
    log_loss_per_tag,
    precision_at_k_per_clip,
    precision_at_k_per_tag,
    reliability,
)
from harmonium.evaluation.significance import FriedmanTest, PairedTests, friedman, paired_t_tests

__all__ = [
    "FoldReport",
    "FriedmanTest",
    "GroupedTagKFold",
    "MetricResult",
    "PairedTests",
    "Reliability",
    "Split",
    "auc_per_clip",
    "auc_per_tag",
    "average_precision_per_tag",
    "brier_per_tag",
    "calibration_error_per_tag",
    "evaluate",
    "fold_report",
    "friedman",
    "grouped_folds",
    "log_loss_per_tag",
    "nested_folds",
    "paired_t_tests",
    "precision_at_k_per_clip",
    "precision_at_k_per_tag",
    "reliability",
]
