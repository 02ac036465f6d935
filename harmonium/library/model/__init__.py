"""What is known about tags: the model that predicts them, how precise it is, and a table of all."""

USUAL_PRECISION = 0.8  # the precision of what is written, unless another one is asked for
