"""Damaged databases: one clear error, or an answer; never a change to what is left."""

import asyncio
import json
import random
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from unittest.mock import Mock

import numpy as np
import pytest
import sqlalchemy as sa
from command_line import run_main
from httpx import ASGITransport, AsyncClient
from postgres_server import schema
from small_library import trained

from harmonium.audio.cache import FeatureCache, FileStatus
from harmonium.errors import DataError, LibraryError, ModelFileError
from harmonium.estimators.model_files import to_bytes
from harmonium.library import Library
from harmonium.library.model import builtin
from harmonium.library.store import database
from harmonium.library.store.schema import metadata
from harmonium.library.teaching.say import keep_said
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings
from harmonium.web.jobs import Jobs

TABLES = sorted(metadata.tables)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "library.db"


def answers(place):
    """Exit codes and errors of commands that read most of the tables."""
    done = [
        run_main(*command, "-L", place)
        for command in (["search", "rock"], ["tag", "/music/001.ogg"], ["doctor"], ["models"])
    ]
    for one in done:
        assert one.exit_code in (0, 1, 2), one
        assert "Traceback" not in one.stderr
    return [one for one in done if one.exit_code == 2]


@pytest.mark.parametrize("size", [50, 100, 4096, 3 * 4096, 0.5, 0.9])
def test_a_truncated_library_is_refused_without_changing_it(whole, place, size):
    data = whole.read_bytes()
    left = data[: size if isinstance(size, int) else int(size * len(data))]
    place.write_bytes(left)
    with pytest.raises(LibraryError, match=r"malformed.*damaged|not a database.*damaged"):
        Library.open(place)
    assert place.read_bytes() == left


def test_an_empty_file_is_a_place_for_a_new_library(place):
    place.touch()
    with pytest.raises(LibraryError, match=r"There is no library at"):
        Library.open(place, create=False)
    assert place.read_bytes() == b""
    with Library.open(place) as library:
        assert library.tracks.count() == 0


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes_give_answers_or_one_clear_error(whole, place, seed):
    chance = random.Random(seed)
    data = bytearray(whole.read_bytes())
    for _ in range(chance.choice((1, 20, 400))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    page = chance.randrange(len(data) // 4096) * 4096
    if seed % 2:
        data[page : page + 4096] = bytes(4096)
    place.write_bytes(data)
    answers(place)


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_table_is_one_clear_error(whole, place, table):
    shutil.copy(whole, place)
    with sqlite3.connect(place) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    for one in answers(place):
        assert f"no such table: {table}. It is damaged." in " ".join(one.stderr.split())


def test_postgresql_without_a_table_or_a_database(postgres):
    with schema(postgres) as url, Library.open(url) as library:
        with library.begin() as connection:
            connection.execute(sa.text("DROP TABLE setting"))
        with pytest.raises(LibraryError, match="damaged"):
            library.settings.get("x")
    wrong = sa.make_url(postgres).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(LibraryError, match=r"does not exist\. Correct the address") as caught:
        Library.open(wrong)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("track SET file_tags = '' WHERE id = 1", lambda library: library.tracks.get(1)),
        ('model SET report = \'{"tags": [{"t": 3}]}\'', lambda library: library.models.current()),
        (
            "setting SET key = 'search:x' WHERE key = 'extractor'",
            lambda library: library.searches.list(),
        ),
        ("setting SET value = '[]' WHERE key LIKE 'version%'", None),
        ("setting SET value = '[3]' WHERE key = 'extractor'", lambda library: library.tag_new()),
        ("opinion SET person_id = 999 WHERE id = 1", lambda library: library.opinions.triples()),
        ("opinion SET tag_id = 999 WHERE id = 1", lambda library: library.opinions.triples()),
        ("model SET bytes = substr(bytes, 1, 100)", None),
    ],
)
def test_a_damaged_value_is_one_clear_error(whole, place, change, read):
    shutil.copy(whole, place)
    with sqlite3.connect(place) as connection:
        connection.execute(f"UPDATE {change}")
    connection.close()
    with Library.open(place) as library:
        assert library.tracks.count() == 60
        if read is None:
            assert library.opinions.triples().height > 0
        else:
            with pytest.raises(LibraryError, match="damaged"):
                read(library)
    answers(place)


ODD_VALUES = [
    *(None, "", "x", 0, -5, 2**62, 1e308, b"\xff\xfe\x00", "[]", "5", '{"a": [1]}', '["rock", 3]'),
    lambda old: old[: len(old) // 2 - 1],
    lambda old: old[::-1],
    lambda old: old + old[:3],
]
OF_MODELS = ("model", "prediction", "refined_prediction", "refined_tag", "completed_track")
COMMANDS = """
search rock -jazz; search energy:>0.5 --json; search --like #3; search --from #3 --to #9; tag #2
tag; suggest rock; related rock; doctor; models; models use 2; write --dry-run; say #5 jazz; kind
undo; rename mellow calm; hide live; forget #7; playlists; train --min-examples 50
"""
ROUTES = """
GET library; GET search?q=rock; GET search?like=3; GET search?order=energy; GET facets?q=rock
GET playlist?q=rock; GET tracks/3; GET tracks/3/over-time; GET tags; GET tags/rock; GET tags/new
GET tags/map; GET teach; GET teach/progress; GET write/plan; GET models; GET models/compare?a=1&b=2
GET doctor; POST tracks/3/complete {"yes": ["rock"]}; POST tracks/3/why {"tag": "rock"}
POST tracks/4/say {"no": ["rock"]}; POST teach {"track": 9, "tag": "rock", "answer": true}
POST tags/mellow/rename {"to": "calm"}; POST tags/live/hide; POST changes/3/undo; POST models/2/use
"""


def lines_of(text):
    return re.split(r"; |\n", text.strip())


async def ask_all(app):
    """No route raises anything but errors of the library, or answers with 500."""
    async with AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client:
        for line in lines_of(ROUTES):
            method, path, *body = line.split(" ", 2)
            said = json.loads(*body or ["null"])
            answer = await client.request(method, f"/api/v1/{path}", json=said)
            assert answer.status_code < 500, (line, answer.text)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A library whose model has learnt from answers, and a word that it did not know."""
    place = tmp_path_factory.mktemp("answered") / "library.db"
    with Library.open(place) as library:
        model, *_ = trained(library, tagged=30, features=True)
        for number in range(40, 45):
            keep_said(library, number, accepted=["mellow", "new"], rejected=["rock"])
        library.learn()
        library.models.add(model, use=False)
    return place


@pytest.mark.parametrize("every", [30, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("table", OF_MODELS)
def test_odd_values_about_models_give_answers_or_one_clear_error(
    answered, place, monkeypatch, table, every
):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    monkeypatch.setattr(Jobs, "start", Mock(side_effect=LibraryError("not here")))
    damages = [(column.name, value) for column in metadata.tables[table].c for value in ODD_VALUES]
    for number, (column, value) in enumerate(damages[1::every]):
        place = place.with_name(f"{number}.db")
        row = f"rowid = (SELECT {('max', 'min')[number % 2]}(rowid) FROM {table})"
        shutil.copy(answered, place)
        with sqlite3.connect(place) as connection, suppress(sqlite3.IntegrityError, TypeError):
            (old,) = connection.execute(f"SELECT {column} FROM {table} WHERE {row}").fetchone()
            new = value(old) if callable(value) else value
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {row}", [new])
        connection.close()
        app = create_app(ServerSettings(place=str(place)))
        with ThreadPoolExecutor(1) as thread:  # a browser's loop may be running in this one
            thread.submit(lambda app=app: asyncio.run(ask_all(app))).result()
        for line in lines_of(COMMANDS):
            done = run_main(*line.split(), "-L", place)
            assert done.exit_code in (0, 1, 2), (column, value, line, done)


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_cache_is_told_or_not_trusted(tmp_path, seed):
    chance = random.Random(seed)
    status = FileStatus(1, 1, 1, 1)
    with FeatureCache(tmp_path, "recipe") as cache:
        for i in range(20):
            cache.put(f"/{i}", status, bytes([i]) * 32, [float(i)] * 300)
    file = tmp_path / "features.sqlite"
    data = bytearray(file.read_bytes())
    if seed % 2:
        del data[chance.randrange(len(data)) :]
    for _ in range(200 if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data)
    try:
        with FeatureCache(tmp_path, "recipe") as cache:
            for i in range(20):
                cache.find_by_content(bytes([i]) * 32)
    except DataError as error:
        assert "or delete it" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:20] + bytes([data[20] ^ 0xFF]) + data[21:],
        lambda data: to_bytes({"x": np.ones(2)}, {"class": "DiscriminativeRBM"}),
        lambda data: b"",
    ],
    ids=["cut", "changed", "another", "empty"],
)
def test_a_damaged_built_in_model_is_one_clear_error(tmp_path, monkeypatch, damage):
    file = tmp_path / "model.safetensors"
    file.write_bytes(damage(builtin.BUILTIN_FILE.read_bytes()))
    monkeypatch.setattr(builtin, "BUILTIN_FILE", file)
    builtin.builtin_model.cache_clear()
    try:
        with pytest.raises(ModelFileError, match="Install Harmonium again"):
            builtin.builtin_model()
    finally:
        builtin.builtin_model.cache_clear()
