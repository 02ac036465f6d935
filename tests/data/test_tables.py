"""Tables in files, good and bad."""

import gzip
import warnings

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples, read_aliases, read_counts, read_triples, tables
from harmonium.data.tables import read_rows
from harmonium.errors import DataError, DataWarning
from harmonium.spreadsheets import guarded_frame

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


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_UNPACKED", 1 << 20)
    packed_file = tmp_path / "tags.csv.gz"
    rows = b"user,item,tag\n" + b"ann,t1,rock\n" * 90_000
    packed_file.write_bytes(gzip.compress(rows))
    with pytest.raises(DataError, match="gunzip"):
        read_rows(packed_file, {"user": "user", "item": "item", "tag": "tag"})


def test_a_gzipped_file_of_several_parts(tmp_path):
    packed_file = tmp_path / "tags.csv.gz"
    rows = b"user,item,tag\n" + b"ann,t1,rock\n" * 90_000
    packed_file.write_bytes(gzip.compress(rows[: 1 << 19]) + gzip.compress(b"ck\n"))
    assert len(read_rows(packed_file, {"user": "user", "item": "item", "tag": "tag"})) > 40_000


def test_a_plain_file_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_UNPACKED", 1 << 20)
    rows = b"user,item,tag\n" + b"ann,t1,rock\n" * 90_000
    plain = tmp_path / "tags.csv"
    plain.write_bytes(rows)
    assert len(read_rows(plain, {"user": "user", "item": "item", "tag": "tag"})) == 90_000


@pytest.mark.parametrize("newline", ["\n", "\n\n"])  # the second is read with care
def test_guards_of_spreadsheets_are_undone(tmp_path, newline):
    cells = ["=1+1", "+1", "-1", "@x", "'=1", "''=1", "'plain", "'", "a=1"]
    table = pl.DataFrame({"item": cells, "tag": cells})
    text = guarded_frame(table).write_csv().replace("\n", newline)
    (tmp_path / "tags.csv").write_text(text)
    rows = read_rows(tmp_path / "tags.csv", {"item": "item", "tag": "tag"})
    assert rows.values("item").to_list() == rows.values("tag").to_list() == cells


WRITE = {
    "tags.csv": FRAME.write_csv,
    "tags.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "tags.parquet": FRAME.write_parquet,
}


@pytest.mark.parametrize("name", WRITE)
def test_every_format(tmp_path, name):
    WRITE[name](tmp_path / name)
    assert rows(read_triples(tmp_path / name)) == sorted(EXPECTED)


@pytest.mark.parametrize("name", WRITE)
def test_every_format_gzipped(tmp_path, name):
    WRITE[name](tmp_path / name)
    gzipped = tmp_path / f"{name}.gz"
    gzipped.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert rows(read_triples(str(gzipped))) == sorted(EXPECTED)


def test_a_gzipped_file_whose_name_does_not_say_so(tmp_path):
    FRAME.write_csv(tmp_path / "tags.csv")
    misnamed = tmp_path / "TAGS.CSV"
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


def test_quotes_around_a_field(write):
    content = 'user,item,tag\nann,"a, ""b"",\nc","x\r\ny"\n"ben",d,"e"\n'
    triples = read_triples(write(content), normalise=False)
    assert rows(triples) == [("ann", 'a, "b",\nc', "x\r\ny"), ("ben", "d", "e")]


def test_quotes_turned_off(write):
    path = write('user\titem\ttag\nann\tt1\t"rock\nben\tt1\t"pop"\n', "tags.tsv")
    assert rows(read_triples(path, quote=None)) == [("ann", "t1", '"rock'), ("ben", "t1", '"pop"')]


def test_quotes_inside_a_field(write):
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
def test_ways_to_name_the_columns(write, content, options):
    assert rows(read_triples(write(content), **options)) == [EXPECTED[0]]


def test_a_delimiter_that_is_named(write):
    path = write("user:item:tag\nann:t2:Café\n".encode("latin-1"), "tags.dat")
    assert rows(read_triples(path, delimiter=":", encoding="latin-1")) == [EXPECTED[2]]


@pytest.mark.parametrize(
    ("name", "sign"), [("t.csv", ";"), ("t.txt", "|"), ("t.tsv", ","), ("t.csv", "\t")]
)
def test_a_delimiter_that_is_recognised(write, name, sign):
    content = "user,item,tag\nann,t2,Café\n".replace(",", sign)
    assert rows(read_triples(write(content, name))) == [EXPECTED[2]]


def test_another_encoding(write):
    path = write("user|item|tag\nann|t2|Café\n".encode("utf-16"), "tags.txt")
    assert rows(read_triples(path, delimiter="|", encoding="utf-16")) == [EXPECTED[2]]


@pytest.fixture
def two_spellings(write):
    return write("user,item,tag\nann,t1,Hip-Hop\nann,t1,rap\n")


def test_normalisation(two_spellings):
    assert read_triples(two_spellings).tags.to_list() == ["hip hop", "rap"]
    assert read_triples(two_spellings, normalise=False).tags.to_list() == ["Hip-Hop", "rap"]


def test_aliases_in_a_chain(two_spellings):
    chain = {"RAP": "Rap_music", "rap music": "hip hop"}
    assert read_triples(two_spellings, aliases=chain).tags.to_list() == ["hip hop"]


def test_aliases_in_a_file(two_spellings, write):
    table = write("alias,tag\nRap,hip hop\n", "aliases.csv")
    assert read_triples(two_spellings, aliases=table).tags.to_list() == ["hip hop"]
    assert read_aliases(table) == {"Rap": "hip hop"}


def test_aliases_in_a_file_without_a_header(write):
    bare = write("Rap\thip hop\nRap\thip hop\n", "aliases.tsv")
    assert read_aliases(bare, header=False) == {"Rap": "hip hop"}


def test_parquet_columns_of_other_types(tmp_path):
    path = tmp_path / "tags.parquet"
    user, tag = pl.Series("user", [1, 2, 1, 1]), pl.col("tag").cast(pl.Categorical)
    FRAME.with_columns(user, tag, extra=pl.lit(0.5)).write_parquet(path)
    expected = [("1", "t1", "rock"), ("1", "t2", "café"), ("2", "t1", "hip hop")]
    assert rows(read_triples(path)) == expected
    assert rows(read_triples(path, user="item", item=0))[0] == ("t1", "1", "rock")


COUNTS = pl.DataFrame({"item": ["x", "x", "y"], "tag": ["a", "A", "b"], "count": [1, 2, 3]})


def test_counts_in_parquet(tmp_path):
    COUNTS.write_parquet(tmp_path / "counts.pq")
    counts = read_counts(tmp_path / "counts.pq")
    assert counts.items.to_list() == ["x", "y"]
    assert counts.matrix.toarray().tolist() == [[3, 0], [0, 3]]
    assert read_counts(tmp_path / "counts.pq", aliases={"b": "a"}).tags.to_list() == ["a"]


def test_counts_written_as_fractions(tmp_path):
    COUNTS.with_columns(pl.col("count").cast(float)).write_csv(tmp_path / "counts.csv")
    assert read_counts(tmp_path / "counts.csv").matrix.toarray().tolist() == [[3, 0], [0, 3]]


def test_counts_without_a_header(write):
    path = write("x\t0.5\ta\t7\n", "counts.tsv")
    counts = read_counts(path, header=False, item=0, tag=2, count=3, all_items=["w", "x"])
    assert counts.matrix.toarray().tolist() == [[0], [7]]


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


def test_the_first_of_many_bad_rows_are_named(write):
    _, message = warning_of(read_triples, write(GOOD + b"ann,t1\n" * 1200))
    assert "1,200 of 1,203 rows" in message
    assert "(lines 5, 6, 7, 8, 9 and 1,195 more)" in message


def test_a_bad_row_without_a_header(write):
    path = write(b"ann,t1\nann,t1,rock\nben,t1,pop\n")
    triples, message = warning_of(read_triples, path, header=False)
    assert "a wrong number of fields (line 1)" in message
    assert len(triples) == 2


def test_a_bad_row_of_a_gzipped_file(write):
    path = write(gzip.compress(b"user\titem\ttag\nann\tt1\trock\nann\tt1\t\n"), "tags.tsv.gz")
    assert "tags.tsv.gz" in warning_of(read_triples, path)[1]


def test_bad_rows_of_a_parquet_file(tmp_path):
    table = {"user": ["a", None, "b"], "item": [1, 2, 3], "tag": ["x", "y", ""]}
    pl.DataFrame(table).write_parquet(tmp_path / "tags.parquet")
    triples, message = warning_of(read_triples, tmp_path / "tags.parquet")
    assert "1 with an empty user (row 2), 1 with an empty tag (row 3)" in message
    assert triples.frame().rows() == [("a", "1", "x")]


def test_bad_counts(write):
    path = write("item,tag,count\nx,a,2\nx,b,-1\ny,a,1.5\ny,b,many\ny,c,\nz,a,0\n", "counts.csv")
    counts, message = warning_of(read_counts, path)
    assert "1 with an empty count (line 6), 3 with a count" in message
    assert "(lines 3, 4, 5)" in message
    assert counts.items.to_list() == ["x", "z"]


def test_a_bad_alias(write):
    with pytest.warns(DataWarning, match=r"1 with an empty tag \(line 3\)"):
        table = read_aliases(write("alias,tag\nrap,hip hop\nx,\n", "aliases.csv"))
    assert table == {"rap": "hip hop"}


def test_an_alias_with_two_meanings(write):
    path = write("alias,tag\nrap,hip hop\nrap,pop\n", "aliases.csv")
    assert "for 'rap': 'hip hop' and 'pop'" in error_of(read_aliases, path)


def test_a_file_of_aliases_without_its_columns(write):
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


@pytest.mark.parametrize(
    ("place", "keyword"),
    [
        ("tag.csv", "is 'tags.csv'"),
        ("nowhere/x.csv", "nowhere does not exist"),
        (".", "Is a directory"),
        ("tags.csv/below.csv", "cannot be read"),  # a file is no folder
    ],
)
def test_a_place_without_a_file(write, place, keyword):
    path = write(GOOD)
    assert keyword in error_of(read_triples, path.parent / place)


def test_a_format_that_nothing_shows(write):
    assert "shows its format" in error_of(read_triples, write(b"user\n", "tags.dat"))


def test_parquet_without_a_column(tmp_path):
    path = tmp_path / "tags.parquet"
    pl.DataFrame({"user": ["a"], "work": ["b"], "tag": ["c"]}).write_parquet(path)
    assert "'user', 'work', 'tag'" in error_of(read_triples, path)


def test_parquet_without_a_row(tmp_path):
    path = tmp_path / "tags.parquet"
    pl.DataFrame(schema=dict.fromkeys(["user", "item", "tag"], pl.String)).write_parquet(path)
    assert "no row" in error_of(read_triples, path)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "tags.parquet"
    FRAME.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-9])
    assert "is not a complete Parquet file" in error_of(read_triples, path)


def test_text_that_is_named_parquet(write):
    path = write(GOOD, "tags.parquet")
    assert "is not a complete Parquet file" in error_of(read_triples, path)


@given(st.text('ab ,"\n\r', max_size=40))
@settings(deadline=None, max_examples=150)
def test_the_fast_way_agrees_with_the_careful_way(tmp_path_factory, content):
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
