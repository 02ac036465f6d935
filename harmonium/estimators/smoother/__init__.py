"""The tag smoother: which tags a new user would give a clip."""
