"""What people say about tracks, and what the model asks them."""
