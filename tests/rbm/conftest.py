"""The core is tested with JAX as strict as it can be: no silent change of rank or precision."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def strict_jax(request: pytest.FixtureRequest) -> Iterator[None]:
    """Rank promotion is an error; so is dtype promotion, unless the module says otherwise.

    optax's Adam mixes precisions, so that modules that train set ``DTYPE_PROMOTION = "standard"``.
    Set for the process and not by context managers, which other threads would not see.
    """
    strict = {
        "jax_numpy_rank_promotion": "raise",
        "jax_numpy_dtype_promotion": getattr(request.module, "DTYPE_PROMOTION", "strict"),
    }
    before = {name: getattr(jax.config, name) for name in strict}
    for name, value in strict.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
