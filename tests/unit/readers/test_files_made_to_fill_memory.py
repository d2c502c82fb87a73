"""Files that are small and unpack to more than a machine has: refused, in words, before the memory is taken."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

import devprof
from devprof.errors import TraceFileError
from devprof.store.readers import json_blocks
from devprof.store.readers.sqlite import Database


def test_gzip_that_unpacks_to_what_no_trace_does_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_blocks, "_FREE_BYTES", 1 << 22)
    bomb = tmp_path / "bomb.json.gz"
    event = b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1},'
    with gzip.open(bomb, "wb") as file:
        file.write(b'{"traceEvents":[')
        for _ in range(300):
            file.write(event * 20_000)
        file.write(b"]}")
    with pytest.raises(TraceFileError, match="unpacks to more than 250 times its size, as no trace does"):
        devprof.load(bomb)


def test_gzip_of_an_honest_trace_is_read_whatever_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_blocks, "_FREE_BYTES", 1 << 16)
    honest = tmp_path / "honest.json.gz"
    with gzip.open(honest, "wt") as file:
        file.write('{"traceEvents":[')
        file.write(",".join(f'{{"ph":"X","name":"a","ts":{i},"dur":1,"pid":1,"tid":1}}' for i in range(50_000)))
        file.write("]}")
    assert len(devprof.load(honest)) == 50_000


def _database(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_value_in_sqlite_that_is_made_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    path = _database(
        tmp_path / "a.sqlite",
        "CREATE TABLE T (a INTEGER, b TEXT AS (hex(zeroblob(100000000))))",
        "INSERT INTO T VALUES (1)",
    )
    with (
        pytest.raises(TraceFileError, match="SQLite reports string or blob too big"),
        Database.opened(path, "export") as database,
    ):
        database._connection.execute("SELECT b FROM T").fetchall()


def test_a_table_that_is_code_is_not_read(tmp_path: Path) -> None:
    path = _database(tmp_path / "a.sqlite", "CREATE TABLE plain (a)", "CREATE VIRTUAL TABLE code USING fts5(a)")
    with Database.opened(path, "export") as database:
        assert "plain" in database.tables
        assert "code" not in database.tables
