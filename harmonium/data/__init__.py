"""Triples of (user, item, tag), the labels made from them, and the datasets that hold them."""
