"""Writing the tracks' tags to their files, and undoing it.

`wanted` says which tags a track should get, `plan` what that changes in one file, `outline` the
same for all files as far as the library knows them, `writer` writes, and `restore` undoes it.
`Writer` is the part of a library that does all this: `library.writer`.
"""
