"""Speed of the RBM core beside PyTorch eager and scikit-learn, on the CPU, at MajorMiner's size.

    python benchmarks/rbm.py                 all of it, about five minutes on a quiet machine
    python benchmarks/rbm.py --size small    a check that it runs

2,000 clips, 389 features, 100 hidden units, 77 tags, batches of 20. Every program runs in a process
of its own, once with one thread and once with two; the rounds alternate between the programs, and
the ratios are taken between medians over the rounds, each rival at its better thread count. The
PyTorch programs are written as a user of PyTorch would: vectorised over the batch, no Python loop
over clips or tags. Needs the extra "benchmarks".
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

SIZES = {
    "majorminer": {"N": 2000, "D": 389, "n": 100, "C": 77, "B": 20, "T": 200, "K": 10},
    "small": {"N": 100, "D": 20, "n": 16, "C": 8, "B": 20, "T": 50, "K": 3},
}

MEAN_FIELD_STEPS = 5  # of multi-prediction


def problem(size: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n, c, d = size["n"], size["C"], size["D"]
    X = rng.normal(size=(size["N"], d)) / np.sqrt(d)
    arrays = {
        "X": X,
        "Y": rng.random((size["N"], c)) < 0.05,
        "U": rng.normal(0, 0.3, (n, c)),
        "W": rng.normal(0, 1, (n, d)),
        "c": np.zeros(n),
        "d": np.full(c, -2.0),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def timed(run: Callable[[], object], repeats: int) -> float:
    """Median seconds of one call, after two that warm up (and compile)."""
    for _ in range(2):
        run()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


# Harmonium. ----------------------------------------------------------------------------------


def harmonium_epoch(size: dict[str, int], method: str) -> float:
    import jax.numpy as jnp

    from harmonium.rbm import gradients
    from harmonium.rbm.gradients import Batch
    from harmonium.rbm.loop import train
    from harmonium.rbm.model import Params
    from harmonium.rbm.training import Optimiser, Penalty, Schedule

    p = problem(size)
    params = Params(
        *(jnp.asarray(a) for a in (p["U"], p["W"], np.zeros((0, size["C"]), "f4"), p["c"], p["d"]))
    )
    none = Params(*(np.float32(0) for _ in params))
    index, weight = np.zeros((size["N"], 0), np.int32), np.ones(size["N"], np.float32)
    data = Batch(*(jnp.asarray(a) for a in (p["X"], index, p["Y"], weight)))
    ways = {
        "cd": gradients.ContrastiveDivergence(1),
        "pl": gradients.PseudoLikelihood(),
        "mp": gradients.MultiPrediction(MEAN_FIELD_STEPS),
    }
    epochs = 24
    result = train(
        params,
        data,
        gradient=ways[method],
        optimiser=Optimiser("sgd", 0.0),
        schedule=Schedule("constant", 0.01, epochs),
        penalty=Penalty(none, none),
        batch_size=size["B"],
        max_epochs=epochs,
        patience=epochs,
        seed=0,
    )
    return float(np.median(result.history.seconds[4:]))


def harmonium_lbp(size: dict[str, int], threads: int) -> float:
    import jax.numpy as jnp

    from harmonium.rbm.infer import InferenceOptions, infer
    from harmonium.rbm.model import Params

    p = problem(size)
    params = Params(
        *(jnp.asarray(a) for a in (p["U"], p["W"], np.zeros((0, size["C"]), "f4"), p["c"], p["d"]))
    )
    options = InferenceOptions("lbp", size["K"], 0.5, tolerance=0.0, threads=threads, retry=False)
    index = np.zeros((size["N"], 0), np.int32)
    unknown = np.full((size["N"], size["C"]), np.nan, np.float32)
    return timed(lambda: infer(params, p["X"], index, unknown, options), 7)


# PyTorch. ------------------------------------------------------------------------------------


def torch_problem(size: dict[str, int], threads: int) -> dict[str, object]:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return {name: torch.from_numpy(array) for name, array in problem(size).items()}


def torch_cd(size: dict[str, int], threads: int) -> float:
    import torch

    p = torch_problem(size, threads)
    X, Y, U, W, c, d = (p[k] for k in ("X", "Y", "U", "W", "c", "d"))

    @torch.no_grad()
    def epoch() -> None:
        rate = 0.01 / size["B"]
        for rows in torch.randperm(size["N"]).split(size["B"]):
            x, y = X[rows], Y[rows]
            data = x @ W.T + c
            h0 = torch.sigmoid(data + y @ U.T)
            y1 = torch.bernoulli(torch.sigmoid(torch.bernoulli(h0) @ U + d))
            h1 = torch.sigmoid(data + y1 @ U.T)
            U.add_(h0.T @ y - h1.T @ y1, alpha=rate)
            W.add_((h0 - h1).T @ x, alpha=rate)
            c.add_((h0 - h1).sum(0), alpha=rate)
            d.add_((y - y1).sum(0), alpha=rate)

    return timed(epoch, 15)


def torch_pl(size: dict[str, int], threads: int) -> float:
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, softplus

    p = torch_problem(size, threads)
    X, Y = p["X"], p["Y"]
    params = [p[k].requires_grad_() for k in ("U", "W", "c", "d")]
    optimiser = torch.optim.SGD(params, lr=0.01)
    U, W, c, d = params

    def epoch() -> None:
        for rows in torch.randperm(size["N"]).split(size["B"]):
            x, y = X[rows], Y[rows]
            a = x @ W.T + c + y @ U.T
            without = a[:, :, None] - U * y[:, None, :]
            logits = d + (softplus(without + U) - softplus(without)).sum(1)
            loss = binary_cross_entropy_with_logits(logits, y, reduction="sum") / len(y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return timed(epoch, 5)


def torch_lbp(size: dict[str, int], threads: int) -> float:
    import torch

    p = torch_problem(size, threads)
    X, U, W, c, d = (p[k] for k in ("X", "U", "W", "c", "d"))
    gain = torch.expm1(U)

    @torch.no_grad()
    def predict() -> None:
        for x in X.split(size["T"]):
            data = (x @ W.T + c)[:, :, None]
            down = torch.zeros(len(x), *U.shape)
            up = torch.zeros(len(x), *U.shape)
            for _ in range(size["K"]):
                cavity = data + up.sum(2, keepdim=True) - up
                down = 0.5 * down + 0.5 * torch.log1p(gain * torch.sigmoid(cavity))
                cavity = d + down.sum(1, keepdim=True) - down
                up = 0.5 * up + 0.5 * torch.log1p(gain * torch.sigmoid(cavity))
            torch.sigmoid(d + down.sum(1))

    return timed(predict, 3)


# scikit-learn. -------------------------------------------------------------------------------


def sklearn_cd(size: dict[str, int], threads: int) -> float:
    from sklearn.neural_network import BernoulliRBM
    from threadpoolctl import threadpool_limits

    p = problem(size)
    X = p["X"] - p["X"].min(0)
    visible = np.hstack([X / X.max(0), p["Y"]]).astype(np.float32)
    model = BernoulliRBM(size["n"], batch_size=size["B"], n_iter=5, random_state=0)
    with threadpool_limits(threads):
        return timed(lambda: model.fit(visible), 3) / model.n_iter


# What the machine can do. --------------------------------------------------------------------


def peaks() -> dict[str, float]:
    """One core's matrix product (flop/s) and elementwise exp, log and division (1/s)."""
    import jax
    import jax.numpy as jnp
    from threadpoolctl import threadpool_limits

    a = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
    with threadpool_limits(1):
        product = 2 * 1024**3 / timed(lambda: a @ a, 9)
    x = jnp.asarray(np.random.default_rng(0).random((64, 1024), dtype=np.float32) + 0.5)
    one_thread = {"xla_cpu_multi_thread_eigen": False}

    def rate(step: Callable[[object], object]) -> float:
        loop = jax.jit(
            lambda v: jax.lax.fori_loop(0, 200, lambda _, z: step(z), v),
            compiler_options=one_thread,
        )
        return 200 * x.size / timed(lambda: loop(x).block_until_ready(), 9)

    return {
        "product": product,
        "exp": rate(lambda z: jnp.exp(-z)),
        "log": rate(lambda z: 2.0 + jnp.log(z)),
        "division": rate(lambda z: (z + 1.5) / (z * z + 1.0)),
    }


CASES: dict[str, Callable[[dict[str, int], int], float]] = {
    "harmonium cd": lambda s, t: harmonium_epoch(s, "cd"),
    "torch cd": torch_cd,
    "scikit-learn cd": sklearn_cd,
    "harmonium pl": lambda s, t: harmonium_epoch(s, "pl"),
    "torch pl": torch_pl,
    "harmonium mp": lambda s, t: harmonium_epoch(s, "mp"),
    "harmonium lbp": harmonium_lbp,
    "torch lbp": torch_lbp,
}


def in_own_process(name: str, threads: int, size: str) -> object:
    command = [sys.executable, __file__, "--size", size, "--case", name, "--threads", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.strip().splitlines()[-1])


def report(
    size: dict[str, int], best: dict[str, tuple[float, int]], peak: dict[str, float]
) -> None:
    from rich.console import Console
    from rich.table import Table

    N, D, n, C, K = (size[k] for k in "NDnCK")
    updates = 2 * N * n * C * K
    flop = N * (4 * n * D + 10 * n * C)  # Wx and its gradient; Uy twice, Uᵀh, and two products
    # Wx and its gradient; U forwards, backwards, and in its own gradient
    predicted = N * (4 * n * D + 2 * (6 * MEAN_FIELD_STEPS - 2) * n * C)
    rows = [
        ("CD-1 epoch", "cd", ("torch", "scikit-learn"), flop, "product"),
        ("pseudo-likelihood epoch", "pl", ("torch",), N * n * C, "division"),
        ("multi-prediction epoch", "mp", (), predicted, "product"),
        (f"LBP, {K} iterations, {N:,} clips", "lbp", ("torch",), updates, "division"),
    ]
    table = Table(title="Medians over the rounds; threads in brackets")
    for heading in ("", "Harmonium", "PyTorch", "scikit-learn", "ratios", "of one core's peak"):
        table.add_column(heading, justify="left" if not heading else "right")
    for title, key, rivals, work, limit in rows:
        seconds, threads = best[f"harmonium {key}"]
        cells = [_cell(best.get(f"{rival} {key}")) for rival in ("torch", "scikit-learn")]
        ratios = ", ".join(f"{best[f'{rival} {key}'][0] / seconds:.1f}×" for rival in rivals)
        share = f"{work / seconds / threads / peak[limit]:.0%} of {limit}"
        table.add_row(title, _cell((seconds, threads)), *cells, ratios, share)
    console = Console()
    console.print(table)
    seconds = best["harmonium lbp"][0]
    console.print(f"LBP: {1e9 * seconds / updates:.2f} ns per message update.")
    rates = ", ".join(f"{k} {peak[k] / 1e9:.2f}" for k in ("exp", "log", "division"))
    console.print(f"One core: matrix product {peak['product'] / 1e9:.0f} GFLOP/s; {rates} G/s.")


def _cell(entry: tuple[float, int] | None) -> str:
    return "" if entry is None else f"{1e3 * entry[0]:.1f} ms ({entry[1]})"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="majorminer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    size = SIZES[options.size]
    if options.case:
        result = peaks() if options.case == "peaks" else CASES[options.case](size, options.threads)
        print(json.dumps(result))
        return
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for name in CASES:
            if options.only not in name:
                continue
            for threads in (
                (1,) if name in ("harmonium cd", "harmonium pl", "harmonium mp") else (1, 2)
            ):
                taken = in_own_process(name, threads, options.size)
                seconds.setdefault((name, threads), []).append(taken)
                print(f"{name}, {threads} thread(s): {1e3 * taken:.1f} ms", flush=True)
    best = {}
    for (name, threads), values in seconds.items():
        best[name] = min(best.get(name, (np.inf, 0)), (float(np.median(values)), threads))
    if not options.only:
        report(size, best, in_own_process("peaks", 1, options.size))


if __name__ == "__main__":
    main()
