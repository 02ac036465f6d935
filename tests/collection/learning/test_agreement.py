"""What people agree on, asked of the database for one tag and computed from all opinions."""

import numpy as np
import pytest
from some_tracks import add_tracks, triples

from harmonium.collection.learning.agreement import said_of
from harmonium.collection.learning.verdicts import agreed


@pytest.mark.parametrize("n_people", [3, 12], ids=["few people", "a crowd"])
def test_one_tag_of_all_tracks_is_settled_as_all_tags_of_one_are(library, n_people):
    ids = add_tracks(library, 20)
    rng = np.random.default_rng(n_people)
    rows = {
        (f"person {rng.integers(n_people)}", int(rng.choice(ids)), f"tag {rng.integers(4)}"): (
            int(rng.choice([1, 1, 1, -1]))
        )
        for _ in range(400)
    }
    frame = triples(*((*key, value) for key, value in rows.items()))
    with library.begin() as connection:
        change = library.changes.begin("import", "at random", connection=connection)
        library.opinions.add_triples(frame, change=change)
    expected = agreed(library.opinions.triples())
    held = [tags[name] for tags in expected.values() for name in tags]
    assert True in held
    assert False in held
    names = ["tag 0", "tag 1", "tag 2", "tag 3", "never said"]
    found = said_of(library, names)
    for name in names:
        said = found[name]
        assert said.yes.tolist() == [i for i in ids if expected.get(i, {}).get(name) is True]
        assert said.no.tolist() == [i for i in ids if expected.get(i, {}).get(name) is False]
