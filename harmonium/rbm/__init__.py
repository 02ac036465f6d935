"""The conditional RBM in pure JAX: energy, inference, gradients, training. No I/O, no state."""
