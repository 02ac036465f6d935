"""A generated collection: music, listeners who tag it, and the truth about it.

It has the shape of the data that Harmonium is for, it can be heard and written to WAV files, and
its truth is known. See docs/synthetic.md for the model behind it.
"""

from harmonium.synthetic.collection import SyntheticCollection, make_collection

__all__ = ["SyntheticCollection", "make_collection"]
