"""Export of ``predict_proba`` to ONNX: scaling, steps of mean field, members, calibration.

The `onnx` package is needed to export; the file runs wherever ONNX does. Features are scaled in
double precision, as here, and the network runs in single precision.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats
from harmonium.errors import DataError
from harmonium.estimators.architecture import Parameters
from harmonium.estimators.calibration import MIN_SLOPE, Recalibration
from harmonium.estimators.scaling import NORMAL, Scaling
from harmonium.logistic import MAX_LOG_ODDS

OPSET = 18
INPUT = "features"
OUTPUT = "probabilities"


class Graph:
    """A graph of ONNX, built node by node; a value is the name of a node's output."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper = helper
        self._as_tensor = numpy_helper.from_array
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node; returns its output."""
        name = output or f"{operator}_{len(self._nodes)}"
        node = self._helper.make_node(operator, list(inputs), [name], **attributes)
        self._nodes.append(node)
        return name

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        """An array that is part of the file."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._as_tensor(np.asarray(array, dtype), name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """The value in single or double precision."""
        return self.add("Cast", value, to=self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(self, n_features: int, n_outputs: int) -> Any:
        """The graph as a checked model from `INPUT` (N, D) to `OUTPUT` (N, C)."""
        import onnx

        float32 = onnx.TensorProto.FLOAT
        graph = self._helper.make_graph(
            self._nodes,
            "harmonium",
            [self._helper.make_tensor_value_info(INPUT, float32, ["clips", n_features])],
            [self._helper.make_tensor_value_info(OUTPUT, float32, ["clips", n_outputs])],
            self._constants,
        )
        opsets = [self._helper.make_opsetid("", OPSET)]
        model = self._helper.make_model(graph, opset_imports=opsets, producer_name="harmonium")
        model.ir_version = min(model.ir_version, 10)  # which older runtimes read, too
        onnx.checker.check_model(model)
        return model


def onnx_model(
    scaling: Scaling,
    members: Sequence[Parameters],
    recalibration: Recalibration | None,
    *,
    kind: str,
    steps: int = 1,
    one_column: bool = False,
) -> Any:
    """A model of ONNX that computes ``predict_proba``.

    ``kind`` of network is "rbm" (mean field with this many steps), "mlp" or "logistic".
    """
    try:
        graph = Graph()
    except ImportError:
        raise DataError("Export needs the package onnx: pip install 'harmonium[onnx]'.") from None
    x = _scaled(graph, scaling)
    logits = [_logits(graph, x, params, kind, steps) for params in members]
    if len(logits) > 1 or recalibration is not None:
        logits = [_limited(graph, value) for value in logits]
    total = logits[0]
    for value in logits[1:]:
        total = graph.add("Add", total, value)
    if len(logits) > 1:
        total = graph.add("Div", total, graph.constant(float(len(logits))))
    if recalibration is not None:
        slopes = graph.constant(np.maximum(recalibration.slopes, MIN_SLOPE))
        scaled = graph.add("Mul", _limited(graph, total), slopes)
        total = graph.add("Add", scaled, graph.constant(recalibration.offsets))
    n_tags = members[0].d.shape[-1]
    if not one_column:
        graph.add("Sigmoid", total, output=OUTPUT)
        return graph.model(len(scaling.mean), n_tags)
    present = graph.add("Sigmoid", total)
    absent = graph.add("Sub", graph.constant(1.0), present)
    graph.add("Concat", absent, present, output=OUTPUT, axis=1)
    return graph.model(len(scaling.mean), 2)


def _limited(graph: Graph, logits: str) -> str:
    low = graph.constant(-MAX_LOG_ODDS)
    return graph.add("Clip", logits, low, graph.constant(MAX_LOG_ODDS))


def _scaled(graph: Graph, scaling: Scaling) -> str:
    """x ← (x - mean) / scale, perhaps after quantiles, and perhaps with norm 1."""
    x = graph.cast(INPUT, np.float64)
    if scaling.knots is not None:
        x = _mapped(graph, x, scaling.knots)
    x = graph.add("Sub", x, graph.constant(scaling.mean, np.float64))
    x = graph.add("Div", x, graph.constant(scaling.scale, np.float64))
    if scaling.unit_norm:
        axes = graph.constant([1], np.int64)
        norm = graph.add("ReduceL2", x, axes, keepdims=1)
        zero = graph.add("Equal", norm, graph.constant(0.0, np.float64))
        norm = graph.add("Where", zero, graph.constant(1.0, np.float64), norm)
        x = graph.add("Div", x, norm)
    return graph.cast(x, np.float32)


def _mapped(graph: Graph, x: str, knots: NDArray[np.float64]) -> str:
    """Each feature by its quantiles: a sum of ramps between knots, and of steps at equal knots."""
    lower = knots[:-1].T  # (D, Q - 1)
    width = np.diff(knots, axis=0).T
    rise = np.diff(NORMAL)
    column = graph.add("Unsqueeze", x, graph.constant([2], np.int64))  # (N, D, 1)
    above = graph.add("Sub", column, graph.constant(lower, np.float64))
    ramp = graph.add("Max", above, graph.constant(0.0, np.float64))
    ramp = graph.add("Min", ramp, graph.constant(width, np.float64))
    slope = np.divide(rise, width, out=np.zeros_like(width), where=width > 0)
    ramp = graph.add("Mul", ramp, graph.constant(slope, np.float64))
    # at equal knots the middle of both sides: half a step before, half a step after
    half = np.where(width > 0, 0.0, rise / 2)
    zero = graph.constant(0.0, np.float64)
    after = graph.cast(graph.add("Greater", above, zero), np.float64)
    at = graph.cast(graph.add("GreaterOrEqual", above, zero), np.float64)
    jump = graph.add("Mul", graph.add("Add", after, at), graph.constant(half, np.float64))
    axes = graph.constant([2], np.int64)
    total = graph.add("ReduceSum", graph.add("Add", ramp, jump), axes, keepdims=0)
    return graph.add("Add", total, graph.constant(NORMAL[0], np.float64))


def _logits(graph: Graph, x: str, params: Parameters, kind: str, steps: int) -> str:
    """The log-odds of the tags of one member, (N, C)."""

    def product(values: str, weights: Floats, bias: str) -> str:
        return graph.add("Add", graph.add("MatMul", values, graph.constant(weights)), bias)

    d = graph.constant(params.d)
    if kind == "logistic":
        return product(x, params.W.T, d)
    inputs = product(x, params.W.T, graph.constant(params.c))
    if kind == "mlp":
        return product(graph.add("Tanh", inputs), params.U, d)
    hidden = graph.add("Sigmoid", inputs)
    for _ in range(steps - 1):
        tags = graph.add("Sigmoid", product(hidden, params.U, d))
        hidden = graph.add("Sigmoid", product(tags, params.U.T, inputs))
    return product(hidden, params.U, d)
