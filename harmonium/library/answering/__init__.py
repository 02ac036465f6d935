"""What a library and its model answer: tags for files, searches, suggestions."""
