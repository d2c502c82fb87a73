"""`read_nvprof`: an export of nvprof, which torch's `emit_nvtx` was made for.

Source: tables as nvprof writes them (one per CUPTI activity kind); what torch.autograd.profiler.load_nvprof makes of them.
Other than there, a launch is recognised by its correlation id and known by name, whatever its number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError
from devprof.model import ActivityType
from devprof.store.places import Place, PlaceKind
from devprof.store.readers.cuda_names import COPY_KINDS, MEMORY_KINDS, is_launch_call, runtime_call
from devprof.store.readers.demangling import demangled
from devprof.store.readers.device_work import (
    Words,
    add_integers,
    copy_names,
    kernel_items,
    named,
    set_names,
    work_items,
)
from devprof.store.readers.sql_export import SqlExport, device_place, taken
from devprof.store.readers.sqlite import ABSENT, Database, Records
from devprof.store.trace import Trace

__all__ = ["read_nvprof"]

_PREFIX = "CUPTI_ACTIVITY_KIND_"
_KIND = "nvprof export"
_TABLES = tuple(f"{_PREFIX}{name}" for name in ("RUNTIME", "CONCURRENT_KERNEL", "KERNEL", "MARKER"))
_INSTANT = 1
"""Flag of a marker that has no end (CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS)."""
_THREAD = 2
"""Kind of the object that a marker belongs to (CUPTI_ACTIVITY_OBJECT_THREAD)."""
_CORES = {"id": "id", "globalMemorySize": "totalGlobalMem", "numMultiprocessors": "numSms"}
_CORES |= {"computeCapabilityMajor": "computeMajor", "computeCapabilityMinor": "computeMinor"}
_CORES |= {"numThreadsPerWarp": "warpSize", "maxThreadsPerBlock": "maxThreadsPerBlock"}
_PLACE = ("deviceId", "streamId", "correlationId")
_GRID = tuple(f"{key}{axis}" for key in ("grid", "block") for axis in "XYZ")
_SIZES = ("registersPerThread", "localMemoryPerThread", "staticSharedMemory", "dynamicSharedMemory")
_WORDS = Words(COPY_KINDS, MEMORY_KINDS, "memoryKind")


def read_nvprof(path: Path) -> Trace:
    """Read an nvprof export: markers, calls of the runtime and of the driver, kernels, copies and sets.

    Times are Unix ns as nvprof wrote them. No event has a parent yet. Ranges that `emit_nvtx` wrote become ops, with their name
    alone; what else their text says becomes items.

    Args:
        path: the SQLite file.

    Raises:
        TraceFileError: it is not such a file, is damaged, or a key that must be unique is there twice.
    """
    with Database.opened(path, _KIND) as database:
        other = "; that is an Nsight Systems export: use load_nsys" if "StringIds" in database.tables else ""
        database.require_any(_TABLES, other)
        return _Nvprof(database).trace()


class _Nvprof(SqlExport):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._strings = database.texts("StringTable", "_id_", "value")
        self._readable = demangled(self._strings.values())
        self._devices: dict[int, int] = {}

    def trace(self) -> Trace:
        self._add_markers()
        for name, kind in (("RUNTIME", ActivityType.CUDA_RUNTIME), ("DRIVER", ActivityType.CUDA_DRIVER)):
            self._add_calls(f"{_PREFIX}{name}", kind)
        self._read_devices()
        for name in ("CONCURRENT_KERNEL", "KERNEL"):
            self._add_kernels(f"{_PREFIX}{name}")
        for name in ("MEMCPY", "MEMCPY2", "MEMSET"):
            self._add_moves(f"{_PREFIX}{name}")
        self._note_other_launches()
        return self.build("nvprof", row_names={}, tables_not_read=self.database.not_read(_PREFIX))

    def _text(self, number: int) -> str:
        text = self._strings.get(number)
        return f"<text {number} is not in the file>" if text is None else self._readable.get(text, text)

    def _names(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        return named([numbers], self._text, self.table)

    # markers

    def _add_markers(self) -> None:
        table = f"{_PREFIX}MARKER"
        read = self.database.read(table, ("id", "timestamp", "name"), ("flags", "objectKind"), others=("objectId",))
        records = self.timed(table, read, ("timestamp",))
        if not len(records):
            return
        numbers = records.numbers
        instant = (numbers["flags"] != ABSENT) & (numbers["flags"] & _INSTANT != 0)
        begin, end = (numbers["name"] != 0) & ~instant, (numbers["name"] == 0) & ~instant
        for part in (begin, end):
            _enforce_unique(self.database.path, "marker id", numbers["id"][part])
        begins, ends = taken(records, begin), taken(records, end)
        at = _positions(ends.numbers["id"], begins.numbers["id"])
        if stray := len(ends) - int((at >= 0).sum()):
            self.left_out["marker ends without their start"] += stray
        self._add_ranges(begins, np.append(ends.numbers["timestamp"], ABSENT)[at])
        self._add_instants(taken(records, instant))

    def _add_ranges(self, begins: Records, end: npt.NDArray[np.int64]) -> None:
        open_ended = end == ABSENT
        last = int(max(begins.numbers["timestamp"].max(initial=0), end[~open_ended].max(initial=0)))
        texts = [self._text(number) for number in begins.numbers["name"].tolist()]
        distinct = list(dict.fromkeys(texts))
        index = {text: number for number, text in enumerate(distinct)}
        ranges = self.range_names(np.array([index[text] for text in texts], dtype=np.int32), distinct)
        kinds = [ActivityType.CPU_OP if said.is_op else ActivityType.USER_ANNOTATION for said in ranges]
        first = self.add(
            len(begins),
            start=begins.numbers["timestamp"],
            end=np.where(open_ended, last, end),
            activity_type=np.array(kinds, dtype=np.uint8),
            name=self.table.texts([said.name for said in ranges]),
            row=self._marker_rows(begins),
            id=begins.numbers["id"],
        )
        self.add_range_items(first, ranges)
        self.add_flag("finished", np.flatnonzero(open_ended) + first, False)

    def _add_instants(self, records: Records) -> None:
        if len(records):
            self.add(
                len(records),
                start=records.numbers["timestamp"],
                end=records.numbers["timestamp"],
                activity_type=ActivityType.CPU_INSTANT_EVENT,
                name=self._names(records.numbers["name"]),
                row=self._marker_rows(records),
            )

    def _marker_rows(self, records: Records) -> npt.NDArray[np.int32]:
        objects = records.others["objectId"]
        known = {value: _process_and_thread(value) for value in set(map(_bytes, objects))}
        pairs = np.array([known[_bytes(value)] for value in objects], dtype=np.int64).reshape(-1, 2)
        threads = np.where(records.numbers["objectKind"] == _THREAD, pairs[:, 1], 0)
        return self.rows(self._hosts(pairs[:, 0]), threads)

    def _hosts(self, pids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        distinct, which = np.unique(pids, return_inverse=True)
        places = [self.place(Place(pid, PlaceKind.HOST, f"process {pid}", "CPU")) for pid in distinct.tolist()]
        return np.array(places, dtype=np.int64)[which]

    # calls

    def _add_calls(self, table: str, kind: ActivityType) -> None:
        required = ("cbid", "start", "end", "processId", "threadId", "correlationId")
        records = self.timed(table, self.database.read(table, required, ("_id_", "returnValue")))
        if not len(records):
            return
        numbers = records.numbers
        if "_id_" in self.database.columns(table):
            _enforce_unique(self.database.path, f"{table}._id_", numbers["_id_"])
        runtime = kind is ActivityType.CUDA_RUNTIME

        def name(cbid: int) -> str:
            return (runtime_call(cbid) if runtime else None) or f"{kind.label} call {cbid}"

        first = self.add(
            len(records),
            start=numbers["start"],
            end=numbers["end"],
            activity_type=kind,
            name=named([numbers["cbid"]], name, self.table),
            row=self.rows(self._hosts(numbers["processId"]), numbers["threadId"] & 0xFFFFFFFF),
            id=numbers["correlationId"],
        )
        add_integers(self.table, first, records, {"cbid": "cbid", "returnValue": "return value"})

    def _note_other_launches(self) -> None:
        """Count kernels whose launch is, by its name, another call: torch's loader refuses those."""
        kinds, ids = self.table.column("activity_type"), self.table.column("id")
        kernels = np.unique(ids[kinds == ActivityType.CONCURRENT_KERNEL])
        calls = np.flatnonzero((kinds == ActivityType.CUDA_RUNTIME) & np.isin(ids, kernels))
        numbers, counts = np.unique(self.table.column("name")[calls], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if not is_launch_call(name := self.table.text_of(number)):
                self.notes.append(f"{count} kernels or more were started by {name}, which is no known launch call")

    # devices

    def _read_devices(self) -> None:
        for row in self.database.rows(f"{_PREFIX}DEVICE"):
            number, name = row.get("id"), row.get("name")
            if isinstance(number, int) and 0 <= number < 2**31:
                properties = {key: row[column] for column, key in _CORES.items() if isinstance(row.get(column), int)}
                text = self._strings.get(name, "") if isinstance(name, int) else str(name or "")
                self._devices[number] = self.place(device_place(number, text, {**properties, "name": text}))

    def _work_rows(self, records: Records) -> npt.NDArray[np.int32]:
        devices = records.numbers["deviceId"]
        for number in np.unique(devices).tolist():
            if number not in self._devices:
                self._devices[number] = self.place(device_place(number, "", {}))
        places = np.array([self._devices[number] for number in devices.tolist()], dtype=np.int64)
        return self.rows(places, records.numbers["streamId"])

    def _add_work(self, table: str, records: Records, kind: ActivityType, name: npt.NDArray[np.int32]) -> int:
        first = self.add(
            len(records),
            start=records.numbers["start"],
            end=records.numbers["end"],
            activity_type=kind,
            name=name,
            row=self._work_rows(records),
            id=records.numbers["correlationId"],
        )
        work_items(self.table, first, records, kind)
        return first

    def _work(self, table: str, required: tuple[str, ...], optional: tuple[str, ...]) -> Records:
        read = self.database.read(table, ("start", "end", *_PLACE, *required), ("contextId", "graphNodeId", *optional))
        records = self.timed(table, read)
        known = (records.numbers["start"] != 0) & (records.numbers["end"] != 0)
        if not known.all():
            self.left_out[f"{table}: times were not collected"] += int((~known).sum())
            records = taken(records, known)
        return records

    def _add_kernels(self, table: str) -> None:
        records = self._work(table, ("name",), (*_GRID, *_SIZES))
        if len(records):
            names = self._names(records.numbers["name"])
            kernel_items(self.table, self._add_work(table, records, ActivityType.CONCURRENT_KERNEL, names), records)

    def _add_moves(self, table: str) -> None:
        if table.endswith("MEMSET"):
            records = self._work(table, ("bytes",), ("value", "memoryKind"))
            if len(records):
                self._add_work(table, records, ActivityType.GPU_MEMSET, set_names(records, _WORDS, self.table))
            return
        peers = ("srcDeviceId", "dstDeviceId")
        records = self._work(table, ("bytes", "copyKind", "srcKind", "dstKind"), peers)
        if len(records):
            first = self._add_work(table, records, ActivityType.GPU_MEMCPY, copy_names(records, _WORDS, self.table))
            add_integers(self.table, first, records, {"srcDeviceId": "fromDevice", "dstDeviceId": "toDevice"})


def _enforce_unique(path: Path, key: str, values: npt.NDArray[np.int64]) -> None:
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        raise TraceFileError(f"{path}: duplicate key: {key} {repeated[0]} is there more than once")


def _positions(of: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where each wanted value stands among distinct ones, or -1."""
    if not len(of):
        return np.full(len(wanted), -1)
    order = np.argsort(of)
    at = order[np.minimum(np.searchsorted(of, wanted, sorter=order), len(of) - 1)]
    return np.where(of[at] == wanted, at, -1)


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _process_and_thread(value: bytes) -> tuple[int, int]:
    padded = value[:8].ljust(8, b"\0")
    return int.from_bytes(padded[:4], "little"), int.from_bytes(padded[4:], "little")
