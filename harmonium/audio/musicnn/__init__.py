"""musicnn: its weights without TensorFlow, the network in NumPy, and where it listens."""
