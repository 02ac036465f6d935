"""Every section of docs/reliability.md names tests that are there."""

import re

from places import DOCS, PROJECT

TEXT = (DOCS / "reliability.md").read_text(encoding="utf-8")


def test_every_section_names_its_tests():
    for section in TEXT.split("\n## ")[1:]:
        named = re.findall(r"`(tests/[\w/.]+)`", section)
        assert named, section.splitlines()[0]
        assert [path for path in named if not (PROJECT / path).exists()] == []
