import pytest
from small_library import trained

from harmonium.library import Library
from harmonium.library.teaching.say import keep_said


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A library with a model, two changes and what was learnt from answers; no log beside it."""
    place = tmp_path_factory.mktemp("whole") / "library.db"
    with Library.open(place) as library:
        trained(library, tagged=30)
        keep_said(library, 40, accepted=["mellow"], rejected=["rock"])
    assert not place.with_name("library.db-wal").exists()
    return place
