"""Peak memory of learning from sparse features, and how long one epoch takes.

python benchmarks/sparse_features.py
python benchmarks/sparse_features.py --clips 20000 --features 5000
"""

import argparse
import resource
import time
import warnings

import numpy as np
from scipy import sparse

from harmonium import DiscriminativeRBM


def main() -> None:
    """Print the peak memory in GiB, and the seconds of fit and predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--tags", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=300)
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    shape = (arguments.clips, arguments.features)
    X = sparse.random_array(shape, density=arguments.density, format="csr", rng=rng)
    X.data[:] = 1
    noise = rng.random((arguments.clips, arguments.tags)) < 0.05
    Y = (X[:, : arguments.tags].toarray() + noise > 0).astype(np.float32)

    model = DiscriminativeRBM(
        arguments.hidden, max_epochs=1, batch_size=arguments.batch_size, random_state=0
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch is too few to converge
        model.fit(X, Y)
    fitted = time.perf_counter()
    model.predict_proba(X)
    ended = time.perf_counter()

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    dense = 4 * X.shape[0] * X.shape[1] / 2**30
    print(f"{X.shape[0]:,} x {X.shape[1]:,} features, {dense:.1f} GiB as an array")
    print(f"peak {peak:.2f} GiB, fit {fitted - began:.0f} s, predict {ended - fitted:.0f} s")


if __name__ == "__main__":
    main()
