"""Files to read: Kineto's, by each of the decoders, and databases of nvprof and Nsight Systems, by their published schemas."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from devprof.store import Trace
from devprof.store.readers import read_kineto
from tests.unit.readers.decoders import DECODERS, new_decoder
from tests.unit.readers.kineto_json import Read

Tables = Mapping[str, tuple[str, Sequence[tuple[object, ...]]]]
Write = Callable[[Tables], Path]

_KERNEL = (
    "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cacheConfig BLOB NOT NULL, sharedMemoryConfig INT NOT NULL,"
    " registersPerThread INT NOT NULL, partitionedGlobalCacheRequested INT NOT NULL,"
    " partitionedGlobalCacheExecuted INT NOT NULL, start INT NOT NULL, end INT NOT NULL, completed INT NOT NULL,"
    " deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL,"
    " gridZ INT NOT NULL, blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL,"
    " staticSharedMemory INT NOT NULL, dynamicSharedMemory INT NOT NULL, localMemoryPerThread INT NOT NULL,"
    " localMemoryTotal INT NOT NULL, correlationId INT NOT NULL, gridId INT NOT NULL, name INT NOT NULL"
)
_API = (
    "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL,"
    " processId INT NOT NULL, threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL"
)
NVPROF = {
    "StringTable": "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE",
    "CUPTI_ACTIVITY_KIND_MARKER": (
        "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, timestamp INT NOT NULL, id INT NOT NULL,"
        " objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL, domain INT NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": _API,
    "CUPTI_ACTIVITY_KIND_DRIVER": _API,
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": _KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, srcKind INT NOT NULL, dstKind INT NOT NULL,"
        " flags INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,"
        " contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, runtimeCorrelationId INT NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL,"
        " end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,"
        " correlationId INT NOT NULL, flags INT NOT NULL, memoryKind INT NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_DEVICE": (
        "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, globalMemorySize INT NOT NULL, numMultiprocessors INT NOT NULL,"
        " computeCapabilityMajor INT NOT NULL, computeCapabilityMinor INT NOT NULL, id INT NOT NULL, name INT NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": (
        "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, overheadKind INT NOT NULL, objectKind INT NOT NULL,"
        " objectId BLOB NOT NULL, start INT NOT NULL, end INT NOT NULL"
    ),
}
"""Columns of nvprof's tables."""

_NSYS_WORK = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,"
    " greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER"
)
NSYS = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER, smCount INTEGER,"
        " computeMajor INTEGER, computeMinor INTEGER"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT",
    "ANALYSIS_DETAILS": (
        "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL"
    ),
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "ENUM_CUDA_MEMCPY_OPER": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT",
    "ENUM_CUDA_MEM_KIND": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT",
    "ENUM_NSYS_EVENT_TYPE": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT",
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,"
        " color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,"
        " correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_NSYS_WORK}, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
        " registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,"
        " blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,"
        " staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_NSYS_WORK}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_NSYS_WORK}, value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_NSYS_WORK}, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_NSYS_WORK}, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start INTEGER NOT NULL, end INTEGER NOT NULL, overheadType INTEGER NOT NULL",
}
"""Columns of Nsight Systems' tables, as of export schema 3 (those that matter here)."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a database: by table, its columns and its records. Returns the path."""

    def _write(tables: Tables) -> Path:
        path = tmp_path / f"export-{len(list(tmp_path.iterdir()))}.sqlite"
        with closing(sqlite3.connect(path)) as connection, connection:
            for table, (columns, records) in tables.items():
                connection.execute(f"CREATE TABLE {table} ({columns})")
                for record in records:
                    connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(record))})", record)
        return path

    return _write


@pytest.fixture
def nvprof(write: Write) -> Callable[..., Path]:
    """Write an nvprof export: records by table; tables not named are there and empty."""

    def _nvprof(**records: Sequence[tuple[object, ...]]) -> Path:
        return write({table: (columns, records.get(_short(table), ())) for table, columns in NVPROF.items()})

    return _nvprof


@pytest.fixture
def nsys(write: Write) -> Callable[..., Path]:
    """Write an Nsight Systems export: records by table; tables not named are not there."""

    def _nsys(**records: Sequence[tuple[object, ...]]) -> Path:
        named = {_short(table): table for table in NSYS}
        return write({named[short]: (NSYS[named[short]], rows) for short, rows in records.items()})

    return _nsys


def _short(table: str) -> str:
    return table.removeprefix("CUPTI_ACTIVITY_KIND_")


@pytest.fixture(params=DECODERS)
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Write a file and read it, by each of the decoders."""

    def _read(content: object, **options: Any) -> Trace:
        path = tmp_path / "trace.json"
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return read_kineto(path, decoder=new_decoder(request.param), **options)

    return _read
