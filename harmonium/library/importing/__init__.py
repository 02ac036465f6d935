"""People's tags from elsewhere: from tables, and from the files themselves."""
