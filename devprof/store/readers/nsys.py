"""`read_nsys`: an SQLite export of Nsight Systems.

Source: the published export schema (versions 2 and 3): CUPTI's activities with texts in `StringIds`, `NVTX_EVENTS`, `ENUM_*`
tables with the words for numbers, and `TARGET_INFO_*` tables about the machine. Tables are made only where something was
recorded, so any of them may be missing. A correlation id is unique within its process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType
from devprof.store.items import ItemKind
from devprof.store.places import Place, PlaceKind
from devprof.store.readers.cuda_names import SYNC_KINDS, call_name, is_driver_call
from devprof.store.readers.device_work import (
    add_integers,
    copy_names,
    kernel_items,
    named,
    set_names,
    work_items,
)
from devprof.store.readers.nsys_words import nvtx_types, read_words
from devprof.store.readers.sql_export import SqlExport, device_place, taken
from devprof.store.readers.sqlite import ABSENT, Database, Records
from devprof.store.trace import Trace

__all__ = ["is_nsys", "read_nsys"]

_PREFIX = "CUPTI_ACTIVITY_KIND_"
_KIND = "Nsight Systems export"
_TABLES = (*(f"{_PREFIX}{name}" for name in ("RUNTIME", "KERNEL", "MEMCPY", "MEMSET")), "NVTX_EVENTS", "StringIds")
_GPU = {"id": "id", "totalMemory": "totalGlobalMem", "smCount": "numSms", "computeMajor": "computeMajor"}
_GPU |= {"computeMinor": "computeMinor", "threadsPerWarp": "warpSize", "maxThreadsPerBlock": "maxThreadsPerBlock"}
_GRID = tuple(f"{key}{axis}" for key in ("grid", "block") for axis in "XYZ")
_SIZES = ("registersPerThread", "localMemoryPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId")
_RANGES = (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION, ActivityType.CPU_INSTANT_EVENT)
_PER_PROCESS = 0x1000000
"""A global thread id is process id times this, plus thread id; bits above those of the process name the machine."""


def read_nsys(path: Path) -> Trace:
    """Read an Nsight Systems export: NVTX ranges, CUDA calls, kernels, copies, sets, graphs and synchronisation.

    The file's times begin with its session; they become Unix ns where the file says when that was, else a note says that it
    does not. No event has a parent yet. Launch numbers are the file's correlation ids, or new ones where several processes use
    the same.

    Args:
        path: the SQLite file.

    Raises:
        TraceFileError: it is not such a file, or is damaged.
    """
    with Database.opened(path, _KIND) as database:
        other = "; that is an nvprof export: use load_nvprof" if "StringTable" in database.tables else ""
        database.require_any(_TABLES, other)
        return _Nsys(database).trace()


def is_nsys(path: Path) -> bool:
    """Say whether an SQLite file is an export of Nsight Systems, by its tables.

    Raises:
        TraceFileError: it is no SQLite file, or is damaged.
    """
    with Database.opened(path, _KIND) as database:
        return bool({"StringIds", "NVTX_EVENTS", "META_DATA_EXPORT"} & database.tables)


class _Nsys(SqlExport):
    def __init__(self, database: Database) -> None:
        start = _first_integer(database, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        super().__init__(database, start or 0)
        if start is None:
            self.notes.append("the file does not say when its session began: its times count from there, not from 1970")
        self._strings = database.texts("StringIds", "id", "value")
        self._words = read_words(database)
        self._nvtx = nvtx_types(database)
        self._processes = database.texts("PROCESSES", "globalPid", "name")
        self._hosts: dict[int, int] = {}
        self._devices: dict[tuple[int, int], int] = {}
        self._owners: list[npt.NDArray[np.int64]] = []

    def trace(self) -> Trace:
        self._add_ranges()
        self._add_calls()
        self._add_kernels()
        self._add_moves()
        self._add_graphs()
        self._add_syncs()
        self._number_launches()
        tables = self.database.not_read(_PREFIX)
        return self.build("nsys", row_names=self._row_names(), window_ns=self._window(), tables_not_read=tables)

    def _text(self, number: int) -> str:
        text = self._strings.get(number)
        return f"<text {number} is not in the file>" if text is None else text

    def _row_names(self) -> dict[tuple[int, int], str]:
        records = self.database.read("ThreadNames", ("globalTid", "nameId"))
        if records is None:
            return {}
        pairs = zip(records.numbers["globalTid"].tolist(), records.numbers["nameId"].tolist(), strict=True)
        return {
            (self._hosts[_owner(thread)], thread % _PER_PROCESS): self._strings.get(name, "")
            for thread, name in pairs
            if _owner(thread) in self._hosts
        }

    def _window(self) -> tuple[int, int] | None:
        for row in self.database.rows("ANALYSIS_DETAILS"):
            window = row.get("startTime"), row.get("stopTime")
            if all(isinstance(time, int) and abs(time) < 2**62 for time in window):
                return window  # type: ignore[return-value]  # both are integers, as was just seen
        return None

    # host

    def _host_rows(self, threads: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        threads = np.where(threads == ABSENT, 0, threads)
        owners, which = np.unique(_owner(threads), return_inverse=True)
        for owner in owners.tolist():
            if owner not in self._hosts:
                pid = owner // _PER_PROCESS % _PER_PROCESS
                name = self._processes.get(owner, "") or f"process {pid}"
                # two machines may have the same process id: the global one keeps their places apart
                label = "CPU" if owner >> 48 == 0 else f"CPU of machine {owner >> 48}"
                self._hosts[owner] = self.place(Place(pid, PlaceKind.HOST, name, label))
        places = np.array([self._hosts[owner] for owner in owners.tolist()], dtype=np.int64)
        return self.rows(places[which] if len(places) else which, threads % _PER_PROCESS)

    def _add_ranges(self) -> None:
        read = self.database.read(
            "NVTX_EVENTS",
            ("start",),
            ("end", "eventType", "globalTid", "endGlobalTid", "textId", "domainId", "category"),
            others=("text",),
        )
        records = self.timed("NVTX_EVENTS", read, ("start", "end"), open_ended=True)
        if not len(records):
            return
        kinds = records.numbers["eventType"]
        domains = taken(records, kinds == self._nvtx.domain)
        ranges = (kinds == self._nvtx.push_pop) | (kinds == self._nvtx.start_end)
        self._add_nvtx(taken(records, ranges), self._domain_names(domains), instants=False)
        self._add_nvtx(taken(records, kinds == self._nvtx.mark), {}, instants=True)

    def _domain_names(self, domains: Records) -> dict[int, str]:
        ids = domains.numbers["domainId"].tolist()
        return {number: text for number, text in zip(ids, self._nvtx_texts(domains), strict=True) if text}

    def _nvtx_texts(self, records: Records) -> list[str]:
        """Return each record's text: its own, or the one that it refers to."""
        pairs = zip(records.others["text"], records.numbers["textId"].tolist(), strict=True)
        return [text if isinstance(text, str) else self._strings.get(number, "") for text, number in pairs]

    def _add_nvtx(self, records: Records, domains: dict[int, str], *, instants: bool) -> None:
        if not len(records):
            return
        numbers = records.numbers
        texts = self._nvtx_texts(records)
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        ranges = self.range_names(np.array([distinct[text] for text in texts], dtype=np.int32), list(distinct))
        kinds = [ActivityType.CPU_OP if said.is_op else ActivityType.USER_ANNOTATION for said in ranges]
        open_ended = numbers["end"] == ABSENT
        last = max(numbers["start"].max(), numbers["end"].max())
        n = len(records)
        first = self._added(
            np.zeros(n, dtype=np.int64),
            start=numbers["start"],
            end=numbers["start"] if instants else np.where(open_ended, last, numbers["end"]),
            activity_type=ActivityType.CPU_INSTANT_EVENT if instants else np.array(kinds, dtype=np.uint8),
            name=self.table.texts([said.name for said in ranges]),
            row=self._host_rows(numbers["globalTid"]),
            id=0 if instants else np.arange(1, n + 1),
        )
        self.add_range_items(first, ranges)
        add_integers(self.table, first, records, {"category": "category"})
        if not instants:
            self.add_flag("finished", np.flatnonzero(open_ended) + first, False)
            elsewhere = (numbers["endGlobalTid"] != ABSENT) & (numbers["endGlobalTid"] != numbers["globalTid"])
            there = np.flatnonzero(elsewhere)
            self.table.add_items(
                "End thread", ItemKind.INT, there + first, numbers["endGlobalTid"][there] % _PER_PROCESS
            )
        self._add_domains(first, numbers["domainId"], domains)

    def _add_domains(self, first: int, ids: npt.NDArray[np.int64], domains: dict[int, str]) -> None:
        there = np.flatnonzero(np.isin(ids, list(domains)))
        names = self.table.texts([domains[number] for number in ids[there].tolist()])
        self.table.add_items("domain", ItemKind.STRING, there + first, names)

    def _add_calls(self) -> None:
        table = f"{_PREFIX}RUNTIME"
        read = self.database.read(table, ("start", "end", "nameId"), ("globalTid", "correlationId", "returnValue"))
        records = self.timed(table, read)
        if not len(records):
            return
        numbers = records.numbers
        ids, which = np.unique(numbers["nameId"], return_inverse=True)
        names = [call_name(self._text(number)) for number in ids.tolist()]
        kinds = [ActivityType.CUDA_DRIVER if is_driver_call(name) else ActivityType.CUDA_RUNTIME for name in names]
        first = self._added(
            _owner(numbers["globalTid"]),
            start=numbers["start"],
            end=numbers["end"],
            activity_type=np.array(kinds, dtype=np.uint8)[which],
            name=self.table.texts(names)[which],
            row=self._host_rows(numbers["globalTid"]),
            id=_or_zero(numbers["correlationId"]),
        )
        add_integers(self.table, first, records, {"returnValue": "return value"})

    # devices

    def _device_rows(self, records: Records) -> npt.NDArray[np.int32]:
        owners = _or_zero(records.numbers["globalPid"])
        pairs, which = np.unique(np.stack([owners, records.numbers["deviceId"]]), axis=1, return_inverse=True)
        for owner, device in pairs.T.tolist():
            if (owner, device) not in self._devices:
                self._devices[owner, device] = self._device(owner, device)
        places = [self._devices[owner, device] for owner, device in pairs.T.tolist()]
        return self.rows(np.array(places, dtype=np.int64)[which.ravel()], records.numbers["streamId"])

    def _device(self, owner: int, device: int) -> int:
        """Return the place of a process' device; the devices of further processes get numbers of their own."""
        pid = owner // _PER_PROCESS % _PER_PROCESS
        cuda = self.database.rows("TARGET_INFO_CUDA_DEVICE")
        gpu = next((row.get("gpuId") for row in cuda if (row.get("pid"), row.get("cudaId")) == (pid, device)), device)
        facts = next((row for row in self.database.rows("TARGET_INFO_GPU") if row.get("id") == gpu), {})
        properties: dict[str, Any] = {key: facts[column] for column, key in _GPU.items() if _is_int(facts.get(column))}
        name = facts.get("name") if isinstance(facts.get("name"), str) else ""
        taken_by_another = any(number == device for other, number in self._devices if other != owner)
        number = max(number for _, number in self._devices) + 1 + len(self._devices) if taken_by_another else device
        label = f"GPU {device} of process {pid}" if taken_by_another else f"GPU {device}"
        return self.place(device_place(number, name or "", {**properties, "name": name or ""}, label))

    def _add_work(self, records: Records, kind: ActivityType, name: npt.NDArray[np.int32]) -> int:
        first = self._added(
            _or_zero(records.numbers["globalPid"]),
            start=records.numbers["start"],
            end=records.numbers["end"],
            activity_type=kind,
            name=name,
            row=self._device_rows(records),
            id=_or_zero(records.numbers["correlationId"]),
        )
        if kind is not ActivityType.CUDA_SYNC:
            work_items(self.table, first, records, kind)
        return first

    def _work(self, name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> Records:
        table = f"{_PREFIX}{name}"
        fixed = ("start", "end", "deviceId", "streamId")
        usual = ("contextId", "correlationId", "globalPid")
        return self.timed(table, self.database.read(table, (*fixed, *required), (*usual, *optional)))

    def _add_kernels(self) -> None:
        records = self._work("KERNEL", (), ("demangledName", "shortName", "graphNodeId", *_GRID, *_SIZES))
        if len(records):
            full, short = records.numbers["demangledName"], records.numbers["shortName"]
            names = named([np.where(full == ABSENT, short, full)], self._text, self.table)
            kernel_items(self.table, self._add_work(records, ActivityType.CONCURRENT_KERNEL, names), records)

    def _add_moves(self) -> None:
        records = self._work("MEMCPY", ("bytes", "copyKind"), ("srcKind", "dstKind", "graphNodeId"))
        if len(records):
            self._add_work(records, ActivityType.GPU_MEMCPY, copy_names(records, self._words, self.table))
        records = self._work("MEMSET", ("bytes",), ("memKind", "graphNodeId"))
        if len(records):
            self._add_work(records, ActivityType.GPU_MEMSET, set_names(records, self._words, self.table))

    def _add_graphs(self) -> None:
        """Add graphs that were recorded as a whole: each is one piece of device work."""
        records = self._work("GRAPH_TRACE", ("graphId",))
        if len(records):
            name = np.full(len(records), self.table.text("CUDA graph"), dtype=np.int32)
            first = self._add_work(records, ActivityType.CONCURRENT_KERNEL, name)
            add_integers(self.table, first, records, {"graphId": "graph id"})

    def _add_syncs(self) -> None:
        records = self._work("SYNCHRONIZATION", ("syncType",), ("eventId",))
        if not len(records):
            return
        names = named([records.numbers["syncType"]], lambda kind: SYNC_KINDS.get(kind, f"Sync {kind}"), self.table)
        first = self._add_work(records, ActivityType.CUDA_SYNC, names)
        there = np.arange(len(records)) + first
        self.table.add_items("cuda_sync_kind", ItemKind.STRING, there, names)
        items = {"deviceId": "device", "contextId": "context", "streamId": "stream", "eventId": "wait_on_cuda_event_id"}
        add_integers(self.table, first, records, items)

    # launch numbers

    def _added(self, owner: npt.NDArray[np.int64], *, start: Any, end: Any, **columns: npt.ArrayLike) -> int:
        self._owners.append(owner)
        return self.add(len(owner), start=start, end=end, **columns)

    def _number_launches(self) -> None:
        """Make launch numbers unique in the trace: every process of a capture counts its own from the start."""
        if not self._owners:
            return
        owner, ids = np.concatenate(self._owners), self.table.column("id")
        host_ranges = np.isin(self.table.column("activity_type"), _RANGES)
        launched = np.flatnonzero(~host_ranges & (ids != 0))
        pairs, which = np.unique(np.stack([owner[launched], ids[launched]]), axis=1, return_inverse=True)
        if len(np.unique(pairs[1])) == pairs.shape[1]:
            return
        self.table.add_items("file correlation", ItemKind.INT, launched, ids[launched])
        ids[launched] = which.ravel() + 1


def _owner(threads: Any) -> Any:
    """Return the global process id of global thread ids."""
    return threads - threads % _PER_PROCESS


def _or_zero(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.where(values == ABSENT, 0, values)


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _first_integer(database: Database, table: str, column: str) -> int | None:
    values = (row.get(column) for row in database.rows(table))
    return next((value for value in values if isinstance(value, int) and 0 < value < 2**62), None)
