"""What a person says in one line: tags of a track, tracks to forget, tags to rename, models to use.

Each function does one thing, as one change that can be undone.
"""
