"""Tags of the library into the files, and back."""
