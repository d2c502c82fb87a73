"""`Database`: an SQLite export, read only, as columns.

SQLite does not hold a column to its type: a column declared INTEGER may hold NULL, text or bytes. The queries here let integers
through and nothing else, so that what arrives is an array of int64 whatever the file holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError

__all__ = ["ABSENT", "Database", "Records"]

ABSENT = -(2**63)
"""Stands in an array where the file holds no integer."""

_HEADER = b"SQLite format 3\0"
_ROWS_AT_ONCE = 50_000
_LONGEST_VALUE_BYTES = 1 << 26  # of a text or blob, and of a row; SQLite's own limit is 1 GB


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Records of one table, m of them.

    Attributes:
        numbers: (m,) int64 by column; `ABSENT` where there is no integer, or no such column.
        others: m objects by column: text, bytes, or None.
        skipped: records left out because a required column holds no integer.
    """

    numbers: Mapping[str, npt.NDArray[np.int64]]
    others: Mapping[str, list[Any]]
    skipped: int

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values())))


class Database:
    """One open file. Used by one thread.

    Attributes:
        path: the file.
        kind: what the file should be, for messages.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, kind: str) -> None:
        self.path = path
        self.kind = kind
        self._connection = connection
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        self._tables = {str(name) for (name,) in listed}
        self._seen: set[str] = set()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, kind: str) -> Iterator[Database]:
        """Open a file for reading.

        Args:
            path: the file; it is never written to.
            kind: what it should be, for messages, such as ``"nvprof export"``.

        Raises:
            TraceFileError: it is missing, is not SQLite, or turns out damaged, now or while it is read.
        """
        _check_header(path, kind)
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
            yield cls(path, connection, kind)
        except (sqlite3.Error, ValueError, OverflowError) as error:  # ValueError: names in a damaged schema
            raise TraceFileError(f"{path} cannot be read as an {kind}: SQLite reports {error}") from error
        finally:
            connection.close()

    @property
    def tables(self) -> set[str]:
        """Names of the tables."""
        return self._tables

    def require_any(self, tables: Sequence[str], advice: str = "") -> None:
        """Refuse a file that has none of some tables.

        Raises:
            TraceFileError: says what was expected and found.
        """
        if not self._tables & set(tables):
            found = ", ".join(sorted(self._tables)[:12]) or "none"
            raise TraceFileError(
                f"{self.path} is not an {self.kind}: expected a table among {', '.join(tables)}; found {found}{advice}"
            )

    def columns(self, table: str) -> set[str]:
        """Return the names of a table's columns, none where there is no such table."""
        if table not in self._tables:
            return set()
        return {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_name(table)})")}

    def read(
        self, table: str, required: Sequence[str], optional: Sequence[str] = (), others: Sequence[str] = ()
    ) -> Records | None:
        """Read a table, or return None where the file does not have it.

        Args:
            table: its name.
            required: columns that must be there, and hold integers; a record without is left out and counted.
            optional: integer columns that may be missing or hold nothing.
            others: columns whose values come as objects; they may be missing.

        Raises:
            TraceFileError: a required column is not there.
        """
        if table not in self._tables:
            return None
        self._seen.add(table)
        there = self.columns(table)
        if missing := [column for column in required if column not in there]:
            raise TraceFileError(
                f"{self.path}: table {table} of this {self.kind} lacks {', '.join(missing)}; "
                f"it has {', '.join(sorted(there))}"
            )
        sound = " AND ".join(f"typeof({_name(column)}) = 'integer'" for column in required) or "1"
        numbers = [*required, *optional]
        wanted = [_integer(column) if column in there else str(ABSENT) for column in numbers]
        wanted += [_name(column) if column in there else "NULL" for column in others]
        query = f"SELECT {', '.join(wanted)} FROM {_name(table)} WHERE {sound}"
        columns = self._fetch(query, len(numbers), len(others))
        (total,) = self._connection.execute(f"SELECT count(*) FROM {_name(table)}").fetchone()
        read = dict(zip(numbers, columns[0], strict=True)), dict(zip(others, columns[1], strict=True))
        return Records(*read, int(total) - len(columns[0][0]))

    def texts(self, table: str, key: str, value: str) -> dict[int, str]:
        """Return a table of numbered texts, empty where the file does not have it."""
        records = self.read(table, (key,), others=(value,))
        if records is None:
            return {}
        texts = zip(records.numbers[key].tolist(), records.others[value], strict=True)
        return {number: text for number, text in texts if isinstance(text, str)}

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return a small table as it is, for facts; at most 1000 rows."""
        if table not in self._tables:
            return []
        self._seen.add(table)
        cursor = self._connection.execute(f"SELECT * FROM {_name(table)} LIMIT 1000")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def not_read(self, prefix: str) -> list[str]:
        """Return the tables of that prefix that hold records which nobody asked for."""
        unseen = sorted(table for table in self._tables - self._seen if table.startswith(prefix))
        return [
            table for table in unseen if self._connection.execute(f"SELECT 1 FROM {_name(table)} LIMIT 1").fetchone()
        ]

    def _fetch(self, query: str, n_numbers: int, n_others: int) -> tuple[list[npt.NDArray[np.int64]], list[list[Any]]]:
        parts: list[npt.NDArray[np.int64]] = [np.empty((n_numbers, 0), dtype=np.int64)]
        others: list[list[Any]] = [[] for _ in range(n_others)]
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            columns = list(zip(*rows, strict=True))
            parts.append(np.array(columns[:n_numbers], dtype=np.int64).reshape(n_numbers, len(rows)))
            for values, more in zip(others, columns[n_numbers:], strict=True):
                values.extend(more)
        return list(np.concatenate(parts, axis=1)), others


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _integer(column: str) -> str:
    return f"CASE typeof({_name(column)}) WHEN 'integer' THEN {_name(column)} ELSE {ABSENT} END"


def _check_header(path: Path, kind: str) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise TraceFileError(f"{path} cannot be opened: {error.strerror or error}") from error
    if header != _HEADER:
        raise TraceFileError(
            f"{path} is not an {kind}: expected an SQLite file, which starts with {_HEADER!r}; found {header!r}"
        )
