"""Speed of the RBM core beside PyTorch eager and scikit-learn, on the CPU, at MajorMiner's size.

    python benchmarks/rbm.py                 all of it, about eight minutes on a quiet machine
    python benchmarks/rbm.py --size small    a check that it runs
    python benchmarks/rbm.py --only cd       only the cases whose name has "cd"

2,000 clips, 389 features, 100 hidden units, 77 tags, batches of 20. Every program runs in a process
of its own, once with one thread and once with two; the rounds alternate between the programs, and
the ratios are taken between medians over the rounds, each at its better thread count. One thread is
timed by the processor's clock, two by that on the wall. The PyTorch programs are written as a user
of PyTorch would: vectorised over the batch, no Python loop over clips or tags. "training" is what
`DiscriminativeRBM` does by default: multi-prediction, Adam and a running mean of the parameters;
PyTorch has its gradient by automatic differentiation.

"products" are the matrix products of a CD-1 epoch and nothing else, in the same shapes and one
after the other: what they take is a limit for every program that does not change the arithmetic.
"as XLA would" compiles our programs for one thread as XLA understands it, in which loops over the
elements of an array are shared between threads all the same (harmonium/rbm/model.py).

Needs the extra "benchmarks"; without PyTorch its cases are left out.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import report

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


def timed(run: Callable[[], object], repeats: int, threads: int = 1) -> float:
    """Median seconds of one call, after two that warm up (and compile).

    With one thread these are seconds of the processor, which other programs disturb less than the
    clock; on a quiet machine the two are the same.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    for _ in range(2):
        run()
    seconds = []
    for _ in range(repeats):
        began = clock()
        run()
        seconds.append(clock() - began)
    return float(np.median(seconds))


# Harmonium. ----------------------------------------------------------------------------------


def harmonium_epoch(size: dict[str, int], method: str, *, ours: bool = True) -> float:
    from harmonium.rbm import model

    if not ours:
        del model._OPTIONS["xla_disable_hlo_passes"]
    import jax.numpy as jnp

    from harmonium.rbm import gradients
    from harmonium.rbm.descent import Optimiser, Penalty
    from harmonium.rbm.gradients import Batch
    from harmonium.rbm.model import Params
    from harmonium.rbm.training import Schedule, train

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
        "training": gradients.MultiPrediction(MEAN_FIELD_STEPS),
    }
    epochs, default = 24, method == "training"
    times = [time.process_time()]
    train(
        params,
        data,
        gradient=ways[method],
        optimiser=Optimiser("adam") if default else Optimiser("sgd", 0.0),
        schedule=Schedule("constant", 0.001 if default else 0.01, epochs),
        penalty=Penalty(none, none),
        batch_size=size["B"],
        max_epochs=epochs,
        patience=epochs,
        averaging=5.0 if default else 0.0,
        seed=0,
        on_epoch=lambda history: times.append(time.process_time()),
    )
    return float(np.median(np.diff(times)[4:]))


def harmonium_lbp(size: dict[str, int], threads: int) -> float:
    import jax.numpy as jnp

    from harmonium.rbm.inference import InferenceOptions, infer
    from harmonium.rbm.model import Params

    p = problem(size)
    params = Params(
        *(jnp.asarray(a) for a in (p["U"], p["W"], np.zeros((0, size["C"]), "f4"), p["c"], p["d"]))
    )
    options = InferenceOptions("lbp", size["K"], 0.5, tolerance=0.0, threads=threads, retry=False)
    index = np.zeros((size["N"], 0), np.int32)
    unknown = np.full((size["N"], size["C"]), np.nan, np.float32)
    return timed(lambda: infer(params, p["X"], index, unknown, options), 7, threads)


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

    return timed(epoch, 15, threads)


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

    return timed(epoch, 5, threads)


def torch_training(size: dict[str, int], threads: int) -> float:
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    p = torch_problem(size, threads)
    X, Y = p["X"], p["Y"]
    params = [p[k].requires_grad_() for k in ("U", "W", "c", "d")]
    means = [param.detach().clone() for param in params]
    optimiser = torch.optim.Adam(params, lr=0.001, fused=True)  # the fastest of its three ways
    U, W, c, d = params
    gain = size["B"] / size["N"] / 5

    def epoch() -> None:
        for rows in torch.randperm(size["N"]).split(size["B"]):
            x, y = X[rows], Y[rows]
            q = torch.where(torch.rand(len(y), 1) < 0.5, 0.0, torch.rand(len(y), 1))
            told = torch.rand_like(y) < q
            data = x @ W.T + c + (y * told) @ U.T
            logits = d + torch.sigmoid(data) @ U
            for _ in range(MEAN_FIELD_STEPS - 1):
                tags = torch.sigmoid(logits) * ~told
                logits = d + torch.sigmoid(data + tags @ U.T) @ U
            losses = binary_cross_entropy_with_logits(logits, y, reduction="none")
            loss = (losses * ~told).sum() / len(y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                torch._foreach_lerp_(means, params, gain)

    return timed(epoch, 7, threads)


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

    return timed(predict, 3, threads)


# scikit-learn. -------------------------------------------------------------------------------


def sklearn_cd(size: dict[str, int], threads: int) -> float:
    from sklearn.neural_network import BernoulliRBM
    from threadpoolctl import threadpool_limits

    p = problem(size)
    X = p["X"] - p["X"].min(0)
    visible = np.hstack([X / X.max(0), p["Y"]]).astype(np.float32)
    model = BernoulliRBM(size["n"], batch_size=size["B"], n_iter=5, random_state=0)
    with threadpool_limits(threads):
        return timed(lambda: model.fit(visible), 3, threads) / model.n_iter


# The matrix products of a CD-1 epoch, and nothing else. ------------------------------------------


def factors(size: dict[str, int]) -> dict[str, np.ndarray]:
    """A minibatch of every kind for each step of an epoch."""
    p, shape = problem(size), (-1, size["B"])
    h = np.random.default_rng(1).random((size["N"], size["n"]), dtype=np.float32)
    return {
        **{name: p[name] for name in ("U", "W")},
        "x": p["X"].reshape(*shape, size["D"]),
        "y": p["Y"].reshape(*shape, size["C"]),
        "z": p["Y"][::-1].copy().reshape(*shape, size["C"]),  # the tags at the chain's end
        "h": h.reshape(*shape, size["n"]),
    }


def xla_products(size: dict[str, int], threads: int) -> float:
    import jax

    f = factors(size)

    def step(weights: tuple, inputs: tuple) -> tuple:
        (U, W), (x, y, z, h) = weights, inputs
        found = (x @ W.T, y @ U.T, h @ U, z @ U.T, h.T @ y, h.T @ z, h.T @ x)
        return weights, [product[0, 0] for product in jax.lax.optimization_barrier(found)]

    options = {"xla_cpu_multi_thread_eigen": threads > 1}
    program = jax.jit(
        lambda weights, inputs: jax.lax.scan(step, weights, inputs)[1], compiler_options=options
    )
    weights, inputs = (f["U"], f["W"]), (f["x"], f["y"], f["z"], f["h"])
    weights, inputs = jax.device_put((weights, inputs))
    return timed(lambda: jax.block_until_ready(program(weights, inputs)), 15, threads)


def numpy_products(size: dict[str, int], threads: int) -> float:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        return timed(_products(factors(size), np.matmul, np.empty), 15, threads)


def torch_products(size: dict[str, int], threads: int) -> float:
    import torch

    torch.set_num_threads(threads)
    f = {name: torch.from_numpy(array) for name, array in factors(size).items()}
    return timed(_products(f, torch.mm, torch.empty), 15, threads)


def _products(
    f: dict[str, np.ndarray], multiply: Callable[..., object], empty: Callable[..., object]
) -> Callable[[], None]:
    """Into arrays that are there already, as a careful program would."""
    (n, n_tags), n_features, size = f["U"].shape, f["W"].shape[1], len(f["x"][0])
    bn, bc, nc, nd = (
        empty(shape, dtype=f["U"].dtype)
        for shape in ((size, n), (size, n_tags), (n, n_tags), (n, n_features))
    )

    def epoch() -> None:
        U, W = f["U"], f["W"]
        for x, y, z, h in zip(f["x"], f["y"], f["z"], f["h"], strict=True):
            multiply(x, W.T, out=bn)
            multiply(y, U.T, out=bn)
            multiply(h, U, out=bc)
            multiply(z, U.T, out=bn)
            multiply(h.T, y, out=nc)
            multiply(h.T, z, out=nc)
            multiply(h.T, x, out=nd)

    return epoch


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


CASES: dict[str, tuple[Callable[[dict[str, int], int], float], tuple[int, ...]]] = {
    "Harmonium cd": (lambda s, t: harmonium_epoch(s, "cd"), (1,)),
    "PyTorch cd": (torch_cd, (1, 2)),
    "scikit-learn cd": (sklearn_cd, (1, 2)),
    "Harmonium products": (xla_products, (1, 2)),
    "PyTorch products": (torch_products, (1, 2)),
    "NumPy products": (numpy_products, (1, 2)),
    "Harmonium pl": (lambda s, t: harmonium_epoch(s, "pl"), (1,)),
    "PyTorch pl": (torch_pl, (1, 2)),
    "Harmonium training": (lambda s, t: harmonium_epoch(s, "training"), (1,)),
    "PyTorch training": (torch_training, (1, 2)),
    "Harmonium lbp": (harmonium_lbp, (1, 2)),
    "PyTorch lbp": (torch_lbp, (1, 2)),
    "as XLA would cd": (lambda s, t: harmonium_epoch(s, "cd", ours=False), (1,)),
    "as XLA would pl": (lambda s, t: harmonium_epoch(s, "pl", ours=False), (1,)),
    "as XLA would training": (lambda s, t: harmonium_epoch(s, "training", ours=False), (1,)),
}
"""What is timed, and with how many threads."""

PROGRAMS = ("Harmonium", "PyTorch", "scikit-learn", "NumPy")

Best = dict[str, tuple[float, int]]
"""Case → median seconds, threads."""


def tasks(size: dict[str, int]) -> dict[str, str]:
    return {
        "cd": "CD-1 epoch",
        "pl": "pseudo-likelihood epoch",
        "training": "epoch of default training",
        "lbp": f"LBP, {size['K']} iterations, {size['N']:,} clips",
    }


def in_own_process(name: str, threads: int, size: str) -> object:
    command = [sys.executable, __file__, "--size", size, "--case", name, "--threads", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.strip().splitlines()[-1])


def rows(
    size: dict[str, int], medians: dict[tuple[str, int], float], best: Best
) -> list[dict[str, object]]:
    """Each program at its better number of threads; the products at either."""
    found = [
        report.row(title, program, *best[f"{program} {key}"])
        for key, title in tasks(size).items()
        for program in PROGRAMS
        if f"{program} {key}" in best
    ]
    products = [
        report.row(f"its matrix products alone, {words}", program, medians[case], threads)
        for threads, words in ((1, "one thread"), (2, "two threads"))
        for program in PROGRAMS
        if (case := (f"{program} products", threads)) in medians
    ]
    first = [row for row in found if row["task"] == tasks(size)["cd"]]
    return first + products + found[len(first) :]


def notes(
    size: dict[str, int],
    medians: dict[tuple[str, int], float],
    best: Best,
    peak: dict[str, float],
) -> list[str]:
    N, D, n, C, K = (size[k] for k in "NDnCK")
    flop = N * (4 * n * D + 10 * n * C)  # Wx and its gradient; Uy twice, Uᵀh, and two products
    updates = 2 * N * n * C * K
    epoch = best["Harmonium cd"][0]
    products = {p: best[f"{p} products"] for p in PROGRAMS if f"{p} products" in best}
    fastest = min(products, key=lambda program: products[program][0])
    (limit, threads), own = products[fastest], medians["Harmonium products", 1]
    found = [
        f"Where a CD-1 epoch goes: its matrix products alone take XLA {report.duration(own)} on "
        f"one thread, {own / epoch:.0%} of our epoch. The fastest library for them here is "
        f"{fastest.replace('Harmonium', 'XLA')}, with {report.duration(limit)} on {threads} "
        f"thread{'s' * (threads > 1)}."
        + (
            f" So no program that leaves the products to one of these libraries could be more than "
            f"{best['PyTorch cd'][0] / limit:.1f} times as fast as PyTorch eager. Ours would be "
            f"{best['PyTorch cd'][0] / own:.1f} times as fast if all between them were free."
            if "PyTorch cd" in best
            else ""
        ),
        f"One core was measured at {peak['product'] / 1e9:.0f} GFLOP/s in the product of large "
        f"matrices, of which the products of an epoch, with batches of {size['B']}, reach "
        f"{flop / own / peak['product']:.0%} in XLA, and the whole "
        f"epoch {flop / epoch / peak['product']:.0%}. It does {peak['exp'] / 1e9:.1f} "
        f"exponentials, {peak['log'] / 1e9:.1f} logarithms and {peak['division'] / 1e9:.1f} "
        f"divisions per nanosecond; LBP takes {1e9 * best['Harmonium lbp'][0] / updates:.2f} ns "
        "per update of a message.",
        "Compiled as XLA would, with loops over elements shared between threads, an epoch takes "
        "this many times the processor time: "
        + ", ".join(
            f"{best[f'as XLA would {key}'][0] / best[f'Harmonium {key}'][0]:.2f} ({title})"
            for key, title in (("cd", "CD-1"), ("pl", "pseudo-likelihood"), ("training", "default"))
        )
        + ".",
    ]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="majorminer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    size = SIZES[options.size]
    if options.case:
        measure = CASES[options.case][0] if options.case in CASES else lambda *_: peaks()
        print(json.dumps(measure(size, options.threads)))
        return
    skipped = ["PyTorch"] if report.missing("torch") else []
    cases = [
        (name, threads)
        for name, (_, numbers) in CASES.items()
        for threads in numbers
        if options.only in name and not any(name.startswith(rival) for rival in skipped)
    ]
    seconds: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    for number in range(1, options.rounds + 1):
        for name, threads in cases:
            taken = in_own_process(name, threads, options.size)
            seconds[name, threads].append(taken)
            print(
                f"round {number} of {options.rounds}: {name}, {threads} thread(s): "
                f"{report.duration(taken)}",
                flush=True,
            )
    medians = {case: float(np.median(values)) for case, values in seconds.items()}
    best: Best = {}
    for (name, threads), median in medians.items():
        best[name] = min(best.get(name, (np.inf, 0)), (median, threads))
    found = rows(size, medians, best)
    for row in found:
        print(f"{row['task']:36}{row['program']:14}{report.duration(row['seconds'])}")
    if not options.only:
        remarks = notes(size, medians, best, in_own_process("peaks", 1, options.size))
        remarks.append(f"All times are medians over {options.rounds} rounds.")
        print("\n".join(remarks))
        report.write(options.json, found, remarks, skipped)


if __name__ == "__main__":
    main()
