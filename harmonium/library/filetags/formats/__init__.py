"""The formats of music files, one module each."""
