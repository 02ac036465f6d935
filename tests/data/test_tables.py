"""Names as codes, against plain Python; and tables in files, good and bad."""

import gzip
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples, read_aliases, read_counts, read_triples, tables
from harmonium.data.tables import distinct_rows, encode, most_frequent
from harmonium.errors import DataError, DataWarning

HEADER = b"user,item,tag\n"
GOOD = HEADER + b"ann,t1,rock\nben,t1,pop\nann,t2,rock\n"


def packed(data):
    """The data in gzip, the same bytes at any time: they are part of a test's name."""
    return gzip.compress(data, mtime=0)


EXPECTED = [("ann", "t1", "rock"), ("ben", "t1", "hip hop"), ("ann", "t2", "café")]
FRAME = pl.DataFrame(
    [("ann", "t1", "Rock"), ("ben", "t1", "Hip-Hop"), ("ann", "t2", "Café"), ("ann", "t1", "rock")],
    schema=["user", "item", "tag"],
    orient="row",
)


# Names as codes

SETTINGS = settings(deadline=None, max_examples=60)


@given(st.lists(st.text(max_size=3), max_size=60))
@SETTINGS
def test_names_are_numbered_by_first_appearance(values):
    codes, names = encode(pl.Series(values, dtype=pl.String))
    assert names.to_list() == list(dict.fromkeys(values))
    assert [names[int(code)] for code in codes] == values


@pytest.mark.parametrize("most", [3, 2**31 - 1])  # packed into 63 bits, and too wide for that
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=40))
@SETTINGS
def test_distinct_rows_are_the_sorted_set(most, rows):
    rows = [(most, most, most), *rows]
    columns = [np.array([row[i] for row in rows], np.int32) for i in range(3)]
    distinct = distinct_rows(*columns)
    assert list(zip(*(column.tolist() for column in distinct), strict=True)) == sorted(set(rows))


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 25))
@SETTINGS
def test_most_frequent_breaks_ties_by_the_alphabet(totals, n):
    names = [f"tag{(7 * i) % 20:02d}" for i in range(len(totals))]
    expected = sorted(range(len(totals)), key=lambda i: (-totals[i], names[i]))[:n]
    found = most_frequent(np.array(totals, np.int64), pl.Series(names, dtype=pl.String), n)
    assert found.tolist() == expected


# Files


@pytest.fixture
def write(tmp_path):
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
    misnamed = tmp_path / "TAGS.CSV"  # which is gzipped, and does not say so
    misnamed.write_bytes(gzip.compress((tmp_path / "tags.csv").read_bytes()))
    assert rows(read_triples(misnamed)) == sorted(EXPECTED)


@pytest.mark.parametrize(
    "content",
    [
        "user,item,tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café",
        "user,item,tag\r\nann,t1,rock\r\nben,t1,hip hop\r\nann,t2,café\r\n",
        "user,item,tag\rann,t1,rock\rben,t1,hip hop\rann,t2,café\r",
        "\ufeffuser,item,tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café\n",
        "\n\nuser,item,tag\n\nann,t1,rock\nben,t1,hip hop\n\n\nann,t2,café",
        '"user","item","tag"\n"ann","t1","rock"\n"ben","t1","hip hop"\n"ann","t2","café"\n',
        "tag,x,item,user\nrock,,t1,ann\nhip hop,1,t1,ben\ncafé,2,t2,ann\n",
        "user,item,tag,x\nann,t1,rock,\nben,t1,hip hop,1\nann,t2,café,\n",
        "user, item , tag\nann,t1,rock\nben,t1,hip hop\nann,t2,café\n",
    ],
)
def test_ways_to_write_the_same_file(write, content):
    assert rows(read_triples(write(content))) == sorted(EXPECTED)


def test_quotes_around_a_field_inside_it_and_turned_off(write):
    content = 'user,item,tag\nann,"a, ""b"",\nc","x\r\ny"\n"ben",d,"e"\n'
    triples = read_triples(write(content), normalise=False)
    assert rows(triples) == [("ann", 'a, "b",\nc', "x\r\ny"), ("ben", "d", "e")]
    path = write('user\titem\ttag\nann\tt1\t"rock\nben\tt1\t"pop"\n', "tags.tsv")
    assert rows(read_triples(path, quote=None)) == [("ann", "t1", '"rock'), ("ben", "t1", '"pop"')]
    content = 'user,item,tag\nann,t1,7" vinyl\nben,t1,12" vinyl\nben,"t,2",x\n'
    expected = [("ann", "t1", '7" vinyl'), ("ben", "t,2", "x"), ("ben", "t1", '12" vinyl')]
    assert rows(read_triples(write(content))) == expected


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("who,what,rating,how\nann,t1,5,rock\n", {"user": "who", "item": "what", "tag": "how"}),
        ("who,what,rating,how\nann,t1,5,rock\n", {"user": 0, "item": "what", "tag": 3}),
        ("user,item,tag,tag\nann,t1,x,rock\n", {"tag": 3}),
        ("ann,t1,rock,5\n", {"header": False}),
        ("rock,5,ann,t1\n", {"header": False, "user": 2, "item": 3, "tag": 0}),
        ("listener,clip,x,Label\nann,t1,y,rock\n", {}),
    ],
)
def test_columns_by_name_by_position_and_by_their_usual_names(write, content, options):
    assert rows(read_triples(write(content), **options)) == [EXPECTED[0]]


def test_other_delimiters_and_encodings(write):
    path = write("user:item:tag\nann:t2:Café\n".encode("latin-1"), "tags.dat")
    assert rows(read_triples(path, delimiter=":", encoding="latin-1")) == [EXPECTED[2]]
    for name, sign in (("t.csv", ";"), ("t.txt", "|"), ("t.tsv", ","), ("t.csv", "\t")):
        content = "user,item,tag\nann,t2,Café\n".replace(",", sign)
        assert rows(read_triples(write(content, name))) == [EXPECTED[2]]
    path = write("user|item|tag\nann|t2|Café\n".encode("utf-16"), "tags.txt")
    assert rows(read_triples(path, delimiter="|", encoding="utf-16")) == [EXPECTED[2]]


def test_normalisation_and_aliases(write):
    path = write("user,item,tag\nann,t1,Hip-Hop\nann,t1,rap\n")
    assert read_triples(path).tags.to_list() == ["hip hop", "rap"]
    assert read_triples(path, normalise=False).tags.to_list() == ["Hip-Hop", "rap"]
    chain = {"RAP": "Rap_music", "rap music": "hip hop"}
    assert read_triples(path, aliases=chain).tags.to_list() == ["hip hop"]
    table = write("alias,tag\nRap,hip hop\n", "aliases.csv")
    assert read_triples(path, aliases=table).tags.to_list() == ["hip hop"]
    assert read_aliases(table) == {"Rap": "hip hop"}
    bare = write("Rap\thip hop\nRap\thip hop\n", "aliases.tsv")
    assert read_aliases(bare, header=False) == {"Rap": "hip hop"}


def test_parquet_columns_may_be_numbers_and_categories(tmp_path):
    path = tmp_path / "tags.parquet"
    user, tag = pl.Series("user", [1, 2, 1, 1]), pl.col("tag").cast(pl.Categorical)
    FRAME.with_columns(user, tag, extra=pl.lit(0.5)).write_parquet(path)
    expected = [("1", "t1", "rock"), ("1", "t2", "café"), ("2", "t1", "hip hop")]
    assert rows(read_triples(path)) == expected
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


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)
NAMES = TEXT.filter(lambda text: text.strip())


@given(
    st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=12), st.sampled_from([",", "\t"])
)
@settings(deadline=None, max_examples=80)
def test_what_polars_writes_is_read_back(tmp_path_factory, table, delimiter):
    path = tmp_path_factory.mktemp("round") / "trip.csv"
    schema = dict.fromkeys(["user", "item", "tag"], pl.String)
    frame = pl.DataFrame(table, schema=schema, orient="row")
    frame.write_csv(path, separator=delimiter)
    triples = read_triples(path, delimiter=delimiter, normalise=False)
    assert rows(triples) == sorted(set(table))
    direct = Triples.from_columns(frame["user"], frame["item"], frame["tag"], normalise=False)
    assert triples.frame().equals(direct.frame())


# What cannot be used


def warning_of(function, *arguments, **options):
    """The result, and the text of the one DataWarning."""
    with pytest.warns(DataWarning) as caught:
        result = function(*arguments, **options)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return result, str(caught[0].message)


def error_of(function, *arguments, **options):
    with pytest.raises(DataError) as caught:
        function(*arguments, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_all_kinds_of_bad_rows_are_counted_in_one_warning(write):
    path = write(
        HEADER + b"ann,t1,rock\n"  # line 2
        b"ann,t1\n"  # 3: too few
        b"ann,t1,rock,x\n"  # 4: too many
        b"\n"  # 5: blank, no row
        b'ann,"t\n1",pop\n'  # 6 and 7
        b",t1,pop\n"  # 8
        b"ann,,pop\n"  # 9
        b"ann,t1,\n"  # 10
        b'ann,t1," - "\n'  # 11
        b"ann,caf\xe9,pop\n"  # 12
        b"ben,t1,pop\n"
    )
    triples, message = warning_of(read_triples, path)
    assert message == (
        "7 of 10 rows of tags.csv were left out: 2 with a wrong number of fields (lines 3, 4), "
        "1 with bytes that are not UTF-8 (line 12), 1 with an empty user (line 8), "
        "1 with an empty item (line 9), 2 with an empty tag (lines 10, 11)."
    )
    expected = [("ann", "t1", "rock"), ("ben", "t1", "pop"), ("ann", "t\n1", "pop")]
    assert triples.frame().rows() == expected
    assert triples.users.to_list() == ["ann", "ben"]


def test_many_bad_rows_and_those_of_other_kinds_of_files(write, tmp_path):
    _, message = warning_of(read_triples, write(GOOD + b"ann,t1\n" * 1200))
    assert "1,200 of 1,203 rows" in message
    assert "(lines 5, 6, 7, 8, 9 and 1,195 more)" in message
    path = write(b"ann,t1\nann,t1,rock\nben,t1,pop\n")
    triples, message = warning_of(read_triples, path, header=False)
    assert "a wrong number of fields (line 1)" in message
    assert len(triples) == 2
    path = write(gzip.compress(b"user\titem\ttag\nann\tt1\trock\nann\tt1\t\n"), "tags.tsv.gz")
    assert "tags.tsv.gz" in warning_of(read_triples, path)[1]
    table = {"user": ["a", None, "b"], "item": [1, 2, 3], "tag": ["x", "y", ""]}
    pl.DataFrame(table).write_parquet(tmp_path / "tags.parquet")
    triples, message = warning_of(read_triples, tmp_path / "tags.parquet")
    assert "1 with an empty user (row 2), 1 with an empty tag (row 3)" in message
    assert triples.frame().rows() == [("a", "1", "x")]


def test_bad_counts_and_aliases(write):
    path = write("item,tag,count\nx,a,2\nx,b,-1\ny,a,1.5\ny,b,many\ny,c,\nz,a,0\n", "counts.csv")
    counts, message = warning_of(read_counts, path)
    assert "1 with an empty count (line 6), 3 with a count" in message
    assert "(lines 3, 4, 5)" in message
    assert counts.items.to_list() == ["x", "z"]
    with pytest.warns(DataWarning, match=r"1 with an empty tag \(line 3\)"):
        table = read_aliases(write("alias,tag\nrap,hip hop\nx,\n", "aliases.csv"))
    assert table == {"rap": "hip hop"}
    path = write("alias,tag\nrap,hip hop\nrap,pop\n", "aliases.csv")
    assert "for 'rap': 'hip hop' and 'pop'" in error_of(read_aliases, path)
    path = write("rap,hip hop\n", "aliases.csv")
    assert "no column 'alias'" in error_of(read_triples, write(GOOD), aliases=path)


@pytest.mark.parametrize(
    ("content", "options", "keyword"),
    [
        (HEADER + b"ann,t1\nann,,x\n", {}, "None of the 2 rows"),
        (b"user,artist,Tagz\na,b,c\n", {"item": "artist"}, "The nearest is 'Tagz'"),
        (b"user,artist,Tagz\na,b,c\n", {}, "no column 'item'"),
        (b"user:item:tag\na:b:c\n", {}, "name the delimiter"),
        (",".join(f"c{i}" for i in range(30)) + "\n", {}, "'c19' and 10 more"),
        (b"user,item,tag,tag\na,b,c,d\n", {}, "by position: 2 or 3"),
        (b"user,item,tag,tag\na,b,c,d\n", {"tag": 4}, "from 0 to 3: got 4"),
        (b"user,item,tag,tag\na,b,c,d\n", {"tag": True}, "from 0 to 3: got True"),
        (GOOD, {"tag": "item"}, "'item' and 'tag' are both column 1"),
        (GOOD, {"tag": "genre", "header": False}, "a position from 0 to 2"),
        (b"", {}, "tags.csv is empty"),
        (b" \r\n\t\n", {}, "tags.csv is empty"),
        (packed(b""), {}, "tags.csv is empty"),
        (HEADER, {}, "no row below it"),
        (b'"user","item","tag"', {}, "no row below it"),
        (packed(GOOD * 100)[:-20], {}, "cut short"),
        (packed(GOOD)[:20] + bytes(20) + packed(GOOD)[40:], {}, "damaged gzip"),
        (b"PAR1", {}, "is Parquet, not text"),
        (b"PK\3\4\0\0\0", {}, "is not a text file"),
        (GOOD.decode().encode("utf-16"), {}, "encoding='utf-16'"),
        (GOOD + b'ann,"t1,rock\nann,t1,pop\n', {}, "line 5 on: unexpected end"),
        (GOOD + b'ann,"t1"x,rock\nann,t1,pop\n', {}, "line 5 on: ',' expected"),
        (GOOD + b"ann,t\r1,rock\n", {}, "line 5 on: a carriage return"),
        (b"user,item,tag\nann,t1,caf\xe9\n", {"encoding": "x"}, "'encoding'"),
        (b"user,item,tag\nann,t1,caf\xe9\n", {"encoding": "ascii"}, "'ascii'"),
        (b"us\xe9r,item,tag\nann,t1,rock\n", {}, "The header of tags.csv"),
        (GOOD, {"delimiter": ";;"}, "'delimiter'"),
        (GOOD, {"delimiter": "\n"}, "'delimiter'"),
        (GOOD, {"quote": ""}, "'quote'"),
        (GOOD, {"quote": ","}, "'quote' and 'delimiter'"),
    ],
)
def test_a_file_or_an_option_that_cannot_be_used(write, content, options, keyword):
    assert keyword in error_of(read_triples, write(content), **options)


def test_places_and_parquet_that_cannot_be_read(write, tmp_path):
    path = write(GOOD)
    assert "is 'tags.csv'" in error_of(read_triples, path.with_name("tag.csv"))
    assert "nowhere does not exist" in error_of(read_triples, path.parent / "nowhere" / "x.csv")
    assert "Is a directory" in error_of(read_triples, path.parent)
    assert "cannot be read" in error_of(read_triples, path / "below.csv")  # a file is no folder
    assert "shows its format" in error_of(read_triples, write(b"user\n", "tags.dat"))
    path = tmp_path / "tags.parquet"
    pl.DataFrame({"user": ["a"], "work": ["b"], "tag": ["c"]}).write_parquet(path)
    assert "'user', 'work', 'tag'" in error_of(read_triples, path)
    pl.DataFrame(schema=dict.fromkeys(["user", "item", "tag"], pl.String)).write_parquet(path)
    assert "no row" in error_of(read_triples, path)
    for content in (path.read_bytes()[:-9], GOOD):
        damaged = write(content, "tags.parquet")
        assert "is not a complete Parquet file" in error_of(read_triples, damaged)


@given(st.text('ab ,"\n\r', max_size=40))
@settings(deadline=None, max_examples=150)
def test_the_fast_way_and_the_careful_way_agree(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("both") / "tags.csv"
    path.write_bytes(b"user,item,tag\n" + content.encode())

    def outcome():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                read = read_triples(path).frame().rows()
            except DataError as error:
                read = str(error)
        return read, [str(warning.message) for warning in caught]

    usual = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables._TextTable, "_read_fast", lambda *_: None)
        assert outcome() == usual
