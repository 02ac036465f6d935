"""The built-in model: its words, what it learnt from, and how it is made."""
