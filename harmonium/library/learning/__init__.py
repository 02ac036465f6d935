"""From what people say and how it sounds to a stored model."""
