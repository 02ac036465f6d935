"""From people's tags and features to a stored model."""
