"""From the files in folders to the tracks of a library."""
