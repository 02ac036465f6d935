"""The database of a library: its tables, and one module for each kind of thing in them."""
