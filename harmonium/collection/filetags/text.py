"""Text as it is found in files."""

import unicodedata


def decoded(data: bytes) -> str:
    """Text that should be UTF-8; where it is not, it was written as Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def fold(tag: str) -> str:
    """What two spellings have in common that differ in case, white space or composed letters."""
    return " ".join(unicodedata.normalize("NFC", tag).casefold().split())
