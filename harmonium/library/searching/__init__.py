"""Searching: paths between tracks, saved searches, and their playlists."""
