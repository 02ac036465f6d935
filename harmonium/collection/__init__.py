"""A person's own music: its files, their tags, and what the model says of them."""
