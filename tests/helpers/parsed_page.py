"""A page of HTML, taken apart."""

from html.parser import HTMLParser

EMPTY = ("meta", "img", "input", "option")


class Page(HTMLParser):
    """Its elements with their attributes, and its texts; each tag is closed in the right place."""

    def __init__(self, text):
        super().__init__()
        self.found, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        """The attributes of every such element."""
        return [attributes for name, attributes in self.found if name == tag]
