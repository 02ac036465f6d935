"""The table of a model's tags, outside a library."""

from harmonium.library.model.tag_table import NoFacts, TagTable


def table_of(model):
    """Its tags, as in a library where nobody has said anything."""
    return TagTable(model, NoFacts())


def written_from(model, precision):
    """Tag → the probability from which it is written at a precision; None: never."""
    return {tag.name: tag.written(precision).threshold for tag in table_of(model).predicted}
