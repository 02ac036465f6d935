"""The model that comes along: its words, what it learnt from, and how it is made."""
