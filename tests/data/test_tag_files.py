"""Good files: CSV, TSV and Parquet, plain or gzipped, however they are written."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples, read_aliases, read_counts, read_triples, table_files
from harmonium.errors import DataError

EXPECTED = [("ann", "t1", "rock"), ("ben", "t1", "hip hop"), ("ann", "t2", "café")]
FRAME = pl.DataFrame(
    [("ann", "t1", "Rock"), ("ben", "t1", "Hip-Hop"), ("ann", "t2", "Café"), ("ann", "t1", "rock")],
    schema=["user", "item", "tag"],
    orient="row",
)


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file and gives its path."""

    def write(content, name="tags.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(triples):
    return sorted(triples.frame().rows())


def test_csv_tsv_and_parquet_plain_and_gzipped(tmp_path):
    FRAME.write_csv(tmp_path / "tags.csv")
    FRAME.write_csv(tmp_path / "tags.tsv", separator="\t")
    FRAME.write_parquet(tmp_path / "tags.parquet")
    for name in ("tags.csv", "tags.tsv", "tags.parquet"):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        for path in (tmp_path / name, str(packed)):
            assert rows(read_triples(path)) == sorted(EXPECTED), path


def test_the_extension_may_be_in_capitals_and_a_gzipped_file_may_not_say_so(write):
    content = b"user,item,tag\nann,t1,rock\n"
    assert rows(read_triples(write(content, "TAGS.CSV"))) == [EXPECTED[0]]
    assert rows(read_triples(write(gzip.compress(content), "tags.csv"))) == [EXPECTED[0]]


@pytest.mark.parametrize(
    "content",
    [
        "user,item,tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café",
        "user,item,tag\r\nann,t1,rock\r\nben,t1,hip hop\r\nann,t2,café\r\n",
        "user,item,tag\rann,t1,rock\rben,t1,hip hop\rann,t2,café\r",
        "\ufeffuser,item,tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café\n",
        "user,item,tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café\n\n",
        "user,item,tag\r\nann,t1,rock\r\nben,t1,hip hop\r\nann,t2,café\r\n\r\n\r\n",
        "\n\nuser,item,tag\n\nann,t1,rock\nben,t1,hip hop\n\n\nann,t2,café",
        '"user","item","tag"\n"ann","t1","rock"\n"ben","t1","hip hop"\n"ann","t2","café"\n',
        "tag,x,item,user\nrock,,t1,ann\nhip hop,1,t1,ben\ncafé,2,t2,ann\n",
        "user,item,tag,x\nann,t1,rock,\nben,t1,hip hop,1\nann,t2,café,\n",
        "user, item , tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café\n",
    ],
    ids=[
        "no final newline",
        "CRLF",
        "CR",
        "byte-order mark",
        "blank last line",
        "blank last lines with CRLF",
        "blank lines",
        "all quoted",
        "other order and columns",
        "empty fields in a column that is not asked for",
        "spaces in the header",
    ],
)
def test_ways_to_write_the_same_file(write, content):
    assert rows(read_triples(write(content))) == sorted(EXPECTED)


def test_quoted_delimiters_quotes_and_line_breaks(write):
    content = 'user,item,tag\nann,"a, ""b"",\nc","x\r\ny"\n"ben",d,"e"\n'
    triples = read_triples(write(content), normalise=False)
    assert rows(triples) == [("ann", 'a, "b",\nc', "x\r\ny"), ("ben", "d", "e")]


def test_a_quote_inside_an_unquoted_field_is_an_ordinary_character(write):
    content = 'user,item,tag\nann,t1,7" vinyl\nben,t1,12" vinyl\nben,"t,2",x\n'
    assert rows(read_triples(write(content))) == [
        ("ann", "t1", '7" vinyl'),
        ("ben", "t,2", "x"),
        ("ben", "t1", '12" vinyl'),
    ]


def test_quotes_can_be_turned_off(write):
    path = write('user\titem\ttag\nann\tt1\t"rock\nben\tt1\t"pop"\n', "tags.tsv")
    assert rows(read_triples(path, quote=None)) == [("ann", "t1", '"rock'), ("ben", "t1", '"pop"')]


def test_columns_by_name_and_by_position(write):
    path = write("who,what,rating,how\nann,t1,5,rock\n")
    assert rows(read_triples(path, user="who", item="what", tag="how")) == [EXPECTED[0]]
    assert rows(read_triples(path, user=0, item="what", tag=3)) == [EXPECTED[0]]


def test_files_without_a_header(write):
    path = write("ann,t1,rock,5\nben,t1,hip hop,4\nann,t2,café,3\n")
    assert rows(read_triples(path, header=False)) == sorted(EXPECTED)
    swapped = write("rock,5,ann,t1\nhip hop,4,ben,t1\ncafé,3,ann,t2\n")
    assert rows(read_triples(swapped, header=False, user=2, item=3, tag=0)) == sorted(EXPECTED)


def test_two_columns_of_one_name_are_told_apart_by_position(write):
    path = write("user,item,tag,tag\nann,t1,x,rock\n")
    assert rows(read_triples(path, tag=3)) == [EXPECTED[0]]


def test_other_delimiters_and_encodings(write):
    path = write("user;item;tag\nann;t2;Café\n".encode("latin-1"), "tags.dat")
    assert rows(read_triples(path, delimiter=";", encoding="latin-1")) == [EXPECTED[2]]
    path = write("user|item|tag\nann|t2|Café\n".encode("utf-16"), "tags.txt")
    assert rows(read_triples(path, delimiter="|", encoding="utf-16")) == [EXPECTED[2]]


def test_normalisation_and_aliases(write):
    path = write("user,item,tag\nann,t1,Hip-Hop\nann,t1,rap\n")
    assert read_triples(path).tags.to_list() == ["hip hop", "rap"]
    assert read_triples(path, normalise=False).tags.to_list() == ["Hip-Hop", "rap"]
    assert read_triples(path, aliases={"RAP": "hip hop"}).tags.to_list() == ["hip hop"]
    table = write("alias,tag\nRap,hip hop\n", "aliases.csv")
    assert read_triples(path, aliases=table).tags.to_list() == ["hip hop"]
    assert read_aliases(table) == {"Rap": "hip hop"}
    bare = write("Rap\thip hop\nRap\thip hop\n", "aliases.tsv")
    assert read_aliases(bare, header=False) == {"Rap": "hip hop"}


def test_parquet_columns_may_be_numbers_and_categories(tmp_path):
    path = tmp_path / "tags.parquet"
    frame = FRAME.with_columns(
        pl.Series("user", [1, 2, 1, 1]), pl.col("tag").cast(pl.Categorical), extra=pl.lit(0.5)
    )
    frame.write_parquet(path)
    assert rows(read_triples(path)) == [
        ("1", "t1", "rock"),
        ("1", "t2", "café"),
        ("2", "t1", "hip hop"),
    ]
    assert rows(read_triples(path, user="item", item=0))[0] == ("t1", "1", "rock")


def test_counts_from_every_format(tmp_path, write):
    frame = pl.DataFrame({"item": ["x", "x", "y"], "tag": ["a", "A", "b"], "count": [1, 2, 3]})
    frame.write_parquet(tmp_path / "counts.pq")
    frame.with_columns(pl.col("count").cast(float)).write_csv(tmp_path / "counts.csv")
    for path in (tmp_path / "counts.pq", tmp_path / "counts.csv"):
        counts = read_counts(path)
        assert counts.items.to_list() == ["x", "y"]
        assert counts.matrix.toarray().tolist() == [[3, 0], [0, 3]]
    path = write("x\t0.5\ta\t7\n", "counts.tsv")
    counts = read_counts(path, header=False, item=0, tag=2, count=3, all_items=["w", "x"])
    assert counts.matrix.toarray().tolist() == [[0], [7]]
    assert read_counts(tmp_path / "counts.pq", aliases={"b": "a"}).tags.to_list() == ["a"]


@pytest.mark.parametrize("item", ["item", '"item,\n\n""x"""'])
def test_a_file_read_in_pieces_is_the_same_as_one_read_whole(write, monkeypatch, item):
    rng = np.random.default_rng(0)
    content = "user,item,tag\n" + "".join(
        f"u{u},{item[:-1]}{i}{item[-1]},tag-{t}\n" for u, i, t in rng.integers(0, 40, (2000, 3))
    )
    path = write(content)
    whole = read_triples(path)
    monkeypatch.setattr(table_files, "PIECE_BYTES", 1000)
    pieces = read_triples(path)
    assert pieces.frame().equals(whole.frame())
    assert pieces.users.equals(whole.users)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)
NAMES = TEXT.filter(lambda text: text.strip())


@given(
    st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=12), st.sampled_from([",", "\t"])
)
@settings(deadline=None, max_examples=80)
def test_what_polars_writes_is_read_back(tmp_path_factory, table, delimiter):
    path = tmp_path_factory.mktemp("round") / "trip.csv"
    frame = pl.DataFrame(
        table, schema=dict.fromkeys(["user", "item", "tag"], pl.String), orient="row"
    )
    frame.write_csv(path, separator=delimiter)
    triples = read_triples(path, delimiter=delimiter, normalise=False)
    assert rows(triples) == sorted(set(table))
    direct = Triples.from_columns(frame["user"], frame["item"], frame["tag"], normalise=False)
    assert triples.frame().equals(direct.frame())


@given(st.binary(max_size=60) | st.text('ab,"\n\r\t', max_size=40).map(str.encode), st.booleans())
@settings(deadline=None, max_examples=200)
@pytest.mark.filterwarnings("ignore::harmonium.errors.DataWarning")
def test_any_bytes_give_triples_or_one_clear_error(tmp_path_factory, content, header):
    path = tmp_path_factory.mktemp("fuzz") / "tags.csv"
    path.write_bytes((b"user,item,tag\n" if header else b"") + content)
    try:
        outcome = read_triples(path, header=header).frame().height
    except DataError as error:
        outcome = str(error)
    assert "tags.csv" in outcome if isinstance(outcome, str) else outcome > 0


def test_columns_are_known_by_the_names_that_they_often_have(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("listener,clip,track,Label\nann,c1,t1,rock\n", encoding="utf-8")
    found = read_triples(file)
    assert (list(found.users), list(found.items), list(found.tags)) == (["ann"], ["c1"], ["rock"])
