"""Bad files: one clear error, or one counted warning with the lines."""

import gzip
import re
import warnings

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import read_aliases, read_counts, read_triples, table_files
from harmonium.errors import DataError, DataWarning

HEADER = b"user,item,tag\n"
GOOD = HEADER + b"ann,t1,rock\nben,t1,pop\nann,t2,rock\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="tags.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


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


# Single rows


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
    assert triples.frame().rows() == [
        ("ann", "t1", "rock"),
        ("ben", "t1", "pop"),
        ("ann", "t\n1", "pop"),
    ]
    assert triples.users.to_list() == ["ann", "ben"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"ann,t1,rock\nann,t1\n", r"1 with a wrong number of fields \(line 3\)"),
        (b"ann,t1,rock\r\nann,t1,x,y\r\n", r"1 with a wrong number of fields \(line 3\)"),
        (b"ann,t1,rock\n   \n", r"1 with a wrong number of fields \(line 3\)"),
        (b"ann,t1,rock\n,t1,rock\n", r"1 with an empty user \(line 3\)"),
        (b'ann,t1,rock\n"",t1,rock\n', r"1 with an empty user \(line 3\)"),
        (b"ann,t1,rock\nann,t1,__\n", r"1 with an empty tag \(line 3\)"),
        (b'"a\n\n\nb",t1,rock\nann,t1,__\n', r"1 with an empty tag \(line 6\)"),
        (b"ann,t1,rock\nann,t1,\xff\n", r"1 with bytes that are not UTF-8 \(line 3\)"),
    ],
)
def test_one_bad_row(write, content, reason):
    triples, message = warning_of(read_triples, write(HEADER + content))
    assert message.startswith("1 of 2 rows of tags.csv was left out: ")
    assert re.search(reason, message)
    assert len(triples) == 1


def test_only_the_first_lines_are_named(write):
    path = write(GOOD + b"ann,t1\n" * 1200)
    _, message = warning_of(read_triples, path)
    assert "1,200 of 1,203 rows" in message
    assert "(lines 5, 6, 7, 8, 9 and 1,195 more)" in message


def test_bad_rows_of_a_file_without_a_header(write):
    path = write(b"ann,t1\nann,t1,rock\nben,t1,pop\n")
    triples, message = warning_of(read_triples, path, header=False)
    assert (
        "1 of 3 rows of tags.csv was left out: 1 with a wrong number of fields (line 1)" in message
    )
    assert len(triples) == 2


def test_bad_rows_in_gzip_and_tsv(write):
    path = write(gzip.compress(b"user\titem\ttag\nann\tt1\trock\nann\tt1\t\n"), "tags.tsv.gz")
    _, message = warning_of(read_triples, path)
    assert message == "1 of 2 rows of tags.tsv.gz was left out: 1 with an empty tag (line 3)."


def test_bad_rows_of_parquet_are_given_by_row(tmp_path):
    path = tmp_path / "tags.parquet"
    pl.DataFrame(
        {"user": ["a", None, "b"], "item": [1, 2, 3], "tag": ["x", "y", ""]}
    ).write_parquet(path)
    triples, message = warning_of(read_triples, path)
    assert message == (
        "2 of 3 rows of tags.parquet were left out: 1 with an empty user (row 2), "
        "1 with an empty tag (row 3)."
    )
    assert triples.frame().rows() == [("a", "1", "x")]


def test_counts_that_are_none(write):
    path = write("item,tag,count\nx,a,2\nx,b,-1\ny,a,1.5\ny,b,many\ny,c,\nz,a,0\n", "counts.csv")
    counts, message = warning_of(read_counts, path)
    assert message == (
        "4 of 6 rows of counts.csv were left out: 1 with an empty count (line 6), "
        "3 with a count that is not a whole number from 0 on (lines 3, 4, 5)."
    )
    assert counts.items.to_list() == ["x", "z"]


def test_bad_rows_of_an_alias_table(write):
    with pytest.warns(DataWarning, match=r"1 with an empty tag \(line 3\)"):
        table = read_aliases(write("alias,tag\nrap,hip hop\nx,\n", "aliases.csv"))
    assert table == {"rap": "hip hop"}


def test_no_usable_row_is_an_error(write):
    message = error_of(read_triples, write(HEADER + b"ann,t1\nann,,x\n"))
    assert message == (
        "None of the 2 rows of tags.csv can be used: 1 with a wrong number of fields (line 2), "
        "1 with an empty item (line 3)."
    )


# Whole files


def test_a_missing_column_lists_those_there_are_and_the_nearest(write):
    path = write("user,artist,Tagz\na,b,c\n")
    assert error_of(read_triples, path, item="artist") == (
        "tags.csv has no column 'tag'. Its columns: 'user', 'artist', 'Tagz'. The "
        "nearest is 'Tagz'. Name the right one (--tag; in Python, tag=), or say that the file has "
        "no header (--no-header; header=False)."
    )
    assert "no column 'item'" in error_of(read_triples, path)
    message = error_of(read_triples, write("user;item;tag\na;b;c\n"))
    assert "If that is not one column, name the delimiter (--delimiter; delimiter=)." in message
    wide = ",".join(f"c{i}" for i in range(30))
    assert "'c19' and 10 more" in error_of(read_triples, write(wide + "\n"))


def test_a_missing_column_of_parquet(tmp_path):
    path = tmp_path / "tags.parquet"
    pl.DataFrame({"user": ["a"], "work": ["b"], "tag": ["c"]}).write_parquet(path)
    assert "Its columns: 'user', 'work', 'tag'" in error_of(read_triples, path)


def test_columns_that_cannot_be_meant(write):
    path = write("user,item,tag,tag\na,b,c,d\n")
    assert "has 2 columns named 'tag'. Give 'tag' by position: 2 or 3" in error_of(
        read_triples, path
    )
    for position in (4, -1, True):
        message = error_of(read_triples, path, tag=position)
        assert f"here from 0 to 3: got {position}" in message
    message = error_of(read_triples, path, tag="item")
    assert "'item' and 'tag' are both column 1 of tags.csv, 'item'" in message
    message = error_of(read_triples, path, tag="genre", header=False)
    assert "read without a header, so 'tag' must be a position from 0 to 3" in message


@pytest.mark.parametrize("content", [b"", b"\n\n", b" \r\n\t\n", gzip.compress(b"", mtime=0)])
@pytest.mark.parametrize("header", [True, False])
def test_an_empty_file(write, content, header):
    assert "tags.csv is empty" in error_of(read_triples, write(content), header=header)


@pytest.mark.parametrize(
    "content", [b"user,item,tag", HEADER, HEADER + b"\r\n\n", b'"user","item","tag"']
)
def test_a_header_only(write, content):
    assert error_of(read_triples, write(content)) == "tags.csv has a header but no row below it."


def test_no_rows_in_parquet(tmp_path):
    path = tmp_path / "tags.parquet"
    pl.DataFrame(schema=dict.fromkeys(["user", "item", "tag"], pl.String)).write_parquet(path)
    assert error_of(read_triples, path) == "tags.parquet has columns but no row."


def test_a_file_that_is_not_there(write):
    path = write(GOOD)
    message = error_of(read_triples, path.with_name("tag.csv"))
    assert message.startswith("There is no file ")
    assert message.endswith("The nearest name in that folder is 'tags.csv'.")
    message = error_of(read_triples, path.parent / "nowhere" / "tags.csv")
    assert "nowhere does not exist" in message


def test_a_folder(tmp_path):
    folder = tmp_path / "tags.csv"
    folder.mkdir()
    assert error_of(read_triples, folder) == f"{folder} is a folder. Name a file in it."


def test_a_file_that_cannot_be_opened(write):
    path = write(GOOD)
    message = error_of(read_triples, path / "below.csv")  # a file is no folder, for root either
    assert "cannot be read" in message


def test_damaged_gzip(write):
    packed = gzip.compress(GOOD * 100)
    assert "is cut short" in error_of(read_triples, write(packed[:-20], "tags.csv.gz"))
    damaged = packed[:20] + bytes(20) + packed[40:]
    assert "is damaged gzip data" in error_of(read_triples, write(damaged, "tags.csv.gz"))
    wrong_sum = packed[:-8] + bytes(4) + packed[-4:]
    assert "is damaged gzip data" in error_of(read_triples, write(wrong_sum, "tags.csv.gz"))


def test_files_that_are_not_what_their_names_say(write, tmp_path):
    pl.read_csv(GOOD).write_parquet(tmp_path / "real.parquet")
    real = (tmp_path / "real.parquet").read_bytes()
    assert "is not a whole Parquet file" in error_of(read_triples, write(GOOD, "tags.parquet"))
    assert "is not a whole Parquet file" in error_of(read_triples, write(real[:-9], "tags.parquet"))
    assert "is Parquet, not text" in error_of(read_triples, write(real))
    assert "is not a text file" in error_of(read_triples, write(b"PK\3\4\0\0\0"))
    assert "encoding='utf-16'" in error_of(read_triples, write(GOOD.decode().encode("utf-16")))
    assert "does not show its format" in error_of(read_triples, write(GOOD, "tags.dat"))


def test_quotes_that_cannot_be_understood(write):
    message = error_of(read_triples, write(GOOD + b'ann,"t1,rock\nann,t1,pop\n'))
    assert message == (
        "tags.csv cannot be understood from the row that begins in line 5 on: unexpected end of "
        "data. Correct that row, or pass quote=None if quotes are ordinary characters."
    )
    message = error_of(read_triples, write(GOOD + b'ann,"t1"x,rock\nann,t1,pop\n'))
    assert "from the row that begins in line 5 on: ',' expected after '\"'" in message
    message = error_of(read_triples, write(GOOD + b"ann,t\r1,rock\n"))
    assert "line 5 on: a carriage return in a field that is not quoted" in message


def test_encodings(write):
    path = write("user,item,tag\nann,t1,café\n".encode("latin-1"))
    assert "'encoding' must be one that Python knows" in error_of(read_triples, path, encoding="x")
    assert "is not in the encoding 'ascii'" in error_of(read_triples, path, encoding="ascii")
    path = write("usér,item,tag\nann,t1,rock\n".encode("latin-1"))
    assert "The header of tags.csv has bytes that are not UTF-8" in error_of(read_triples, path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "'delimiter' must be one ASCII character, got ';;'"),
        ({"delimiter": "\n"}, "'delimiter' must be one ASCII character"),
        ({"delimiter": "§"}, "'delimiter' must be one ASCII character"),
        ({"quote": ""}, "'quote' must be one ASCII character, or None, got ''"),
        ({"quote": ","}, "'quote' and 'delimiter' must differ"),
    ],
)
def test_options_that_cannot_be_meant(write, options, message):
    assert message in error_of(read_triples, write(GOOD), **options)


def test_alias_tables(write):
    path = write("alias,tag\nrap,hip hop\nrap,pop\n", "aliases.csv")
    assert "gives 'rap' two meanings, 'hip hop' and 'pop'" in error_of(read_aliases, path)
    path = write("rap,hip hop\n", "aliases.csv")
    assert "has no column 'alias'" in error_of(read_triples, write(GOOD), aliases=path)


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
        patch.setattr(table_files, "PIECE_BYTES", 7)
        assert outcome() == usual
        patch.setattr(table_files._TextReader, "_read_fast", lambda *_: None)
        assert outcome() == usual
