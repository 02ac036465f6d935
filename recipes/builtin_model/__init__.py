"""The built-in model: its vocabulary, its training data, and how it is made."""
