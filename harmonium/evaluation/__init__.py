"""How models are judged: metrics, folds, significance. See docs/evaluation.md."""

from harmonium.evaluation.folds import FoldReport as FoldReport
from harmonium.evaluation.folds import GroupedTagKFold as GroupedTagKFold
from harmonium.evaluation.folds import Split as Split
from harmonium.evaluation.folds import fold_report as fold_report
from harmonium.evaluation.folds import grouped_folds as grouped_folds
from harmonium.evaluation.folds import nested_folds as nested_folds
from harmonium.evaluation.metrics import MetricResult as MetricResult
from harmonium.evaluation.metrics import Reliability as Reliability
from harmonium.evaluation.metrics import auc_per_clip as auc_per_clip
from harmonium.evaluation.metrics import auc_per_tag as auc_per_tag
from harmonium.evaluation.metrics import average_precision_per_tag as average_precision_per_tag
from harmonium.evaluation.metrics import brier_per_tag as brier_per_tag
from harmonium.evaluation.metrics import calibration_error_per_tag as calibration_error_per_tag
from harmonium.evaluation.metrics import evaluate as evaluate
from harmonium.evaluation.metrics import log_loss_per_tag as log_loss_per_tag
from harmonium.evaluation.metrics import precision_at_k_per_clip as precision_at_k_per_clip
from harmonium.evaluation.metrics import precision_at_k_per_tag as precision_at_k_per_tag
from harmonium.evaluation.metrics import reliability as reliability
from harmonium.evaluation.significance import FriedmanTest as FriedmanTest
from harmonium.evaluation.significance import PairedTests as PairedTests
from harmonium.evaluation.significance import friedman as friedman
from harmonium.evaluation.significance import paired_t_tests as paired_t_tests
