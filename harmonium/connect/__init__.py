"""Where people keep their music: other programs that take tags, and give some back."""
