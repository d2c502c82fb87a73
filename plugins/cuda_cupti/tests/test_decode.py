from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from cuda_cupti import walk as walking
from cuda_cupti.build_spec import CUPTI
from cuda_cupti.decode import Records, decode, merged
from cuda_cupti.layouts import FIELDS, Layout, expected
from cuda_cupti.walk import native_walk, walk
from hypothesis import given
from hypothesis import strategies as st

from devprof.native import build, missing
from plugins.cuda_cupti.tests.judges import cupti_python, libcupti, run_judge
from plugins.cuda_cupti.tests.structs import KINDS, VERSIONS, pack, struct_of

LAYOUT = expected(VERSIONS["13.0"])
OF_BYTES = {"objectId", "uuid", "memoryPoolConfig"}
"""Fields that are structs themselves."""


@pytest.fixture(params=["native", "python"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Go through buffers in native code, and in Python: every promise here holds for both."""
    way: str = request.param
    if way == "native":
        if reason := missing(CUPTI):
            pytest.skip(reason)
        build(CUPTI)
        native_walk.cache_clear()
        assert native_walk() is not None
        yield way
    else:
        with mock.patch.object(walking, "native_walk", return_value=None):
            yield way


def no_text(address: int) -> bytes | None:
    raise AssertionError(f"address {address:#x} was read, and no record has it")


def plain_walk(raw: bytes, layout: Layout) -> tuple[list[tuple[int, int]], int]:
    """Kind and offset of each record, and where the walk ends: the rule itself, a record at a time."""
    at, found = 0, []
    while at + 4 <= len(raw):
        (kind,) = struct.unpack_from("<I", raw, at)
        stride = layout.strides.get(kind)
        if stride is None or at + stride > len(raw):
            break
        found.append((kind, at))
        at += stride
    return found, at


def assert_same_as_plain(raw: bytes, layout: Layout) -> None:
    found, end = plain_walk(raw, layout)
    records = decode(raw, layout, lambda address: None)
    assert (records.n_bytes, records.lost_bytes) == (len(raw), len(raw) - end)
    assert sum(len(rows) * layout.strides[kind] for kind, rows in records.of.items()) + records.lost_bytes == len(raw)
    for kind, rows in records.of.items():
        dtype = layout.dtype(kind)
        alone = np.frombuffer(b"".join(raw[at : at + dtype.itemsize] for k, at in found if k == kind), dtype)
        assert {name: rows[name].tobytes() for name in rows.fields} == {
            name: alone[name].tobytes() for name in rows.fields
        }
    assert len(records) == len(found)
    assert bool(records.stops) == bool(records.lost_bytes)


def test_names_that_no_output_has_are_not_read() -> None:
    marker = pack(12, "13.0", name=0x1234)
    assert decode(marker, LAYOUT, no_text).of[12]["name"].tolist() == [0x1234]


@pytest.mark.parametrize("release", VERSIONS)
def test_every_kind_of_every_release_comes_out_with_the_values_that_went_in(release: str) -> None:
    layout = expected(VERSIONS[release])
    rng = random.Random(release)
    raw, wanted = b"", {}
    for kind in [k for k in KINDS if struct_of(k, release)] * 2:
        names = [name for name in layout.dtype(kind).names or () if name not in OF_BYTES | {"kind", "name"}]
        values = {name: rng.randrange(1 << 8 * getattr(struct_of(kind, release), name).size - 1) for name in names}
        raw += pack(kind, release, **values)
        wanted.setdefault(kind, []).append(values)
    records = decode(raw, layout, no_text)
    found = {k: [{n: int(records.of[k][n][at]) for n in v[0]} for at in range(2)] for k, v in wanted.items()}
    assert (found, records.lost_bytes, records.stops) == (wanted, 0, ())


@pytest.mark.parametrize("room", [1, 2, 3])
def test_native_code_goes_on_where_it_ran_out_of_room(way: str, room: int) -> None:
    raw = b"".join(pack(kind, "13.0") for kind in (5, 39, 10, 5, 38, 39)) + b"\x05\x00"
    with mock.patch.object(walking, "_ROOM", room):
        found = walk(memoryview(raw), LAYOUT)
    assert {kind: at.tolist() for kind, at in found.offsets.items()} == {
        5: [0, 280],
        10: [64],
        38: [320],
        39: [40, 376],
    }
    assert (found.used_bytes, found.stop) == (400, "a record is cut short at byte 400 of 402")


def test_an_unknown_kind_ends_the_buffer_and_the_rest_is_counted() -> None:
    api, odd = pack(5, "13.0", cbid=211), struct.pack("<IIQ", 4711, 0, 0)
    records = decode(api + odd + api, LAYOUT, no_text)
    assert records.of[5]["cbid"].tolist() == [211]
    assert (records.lost_bytes, records.stops) == (56, ("unknown kind 4711 at byte 40 of 96",))


@pytest.mark.parametrize("kept", [4, 8, 39])
def test_a_cut_record_ends_the_buffer_and_is_counted(kept: int) -> None:
    api = pack(5, "13.0", cbid=211)
    records = decode(api + api[:kept], LAYOUT, no_text)
    assert records.of[5]["cbid"].tolist() == [211]
    assert (records.lost_bytes, records.stops) == (kept, (f"a record is cut short at byte 40 of {40 + kept}",))


def test_kind_0_and_zeros_behind_the_last_record_are_no_records() -> None:
    records = decode(pack(39, "13.0") + bytes(64), LAYOUT, no_text)
    assert (len(records), records.lost_bytes, records.stops) == (1, 64, ("unknown kind 0 at byte 24 of 88",))


@pytest.mark.parametrize("raw", [b"", b"\x05", b"\x05\x00\x00", b"\x05\x00\x00\x00"])
def test_less_than_a_record_is_lost_whole(raw: bytes) -> None:
    records = decode(raw, LAYOUT, no_text)
    assert (dict(records.of), records.n_bytes, records.lost_bytes) == ({}, len(raw), len(raw))


def test_a_buffer_of_one_kind_longer_than_any_block_is_read_whole() -> None:
    raw = b"".join(pack(5, "13.0", correlationId=i) for i in range(5000)) + pack(39, "13.0", correlationId=7)
    records = decode(raw, LAYOUT, no_text)
    assert records.of[5]["correlationId"].tolist() == list(range(5000))
    assert records.of[39]["correlationId"].tolist() == [7]


def test_records_are_copies_that_outlive_the_buffer_and_cannot_be_changed() -> None:
    buffer = bytearray(pack(5, "13.0", cbid=211) + pack(39, "13.0", externalId=9) + pack(5, "13.0", cbid=13))
    records = decode(memoryview(buffer), LAYOUT, no_text)
    buffer[:] = b"\xff" * len(buffer)
    assert (records.of[5]["cbid"].tolist(), records.of[39]["externalId"].tolist()) == ([211, 13], [9])
    with pytest.raises(ValueError, match="read-only"):
        records.of[5]["cbid"][0] = 0


def test_any_alignment_of_the_buffer_will_do() -> None:
    raw = pack(5, "13.0", cbid=211) + pack(39, "13.0", externalId=9) + pack(5, "13.0", cbid=13)
    for shift in range(8):
        records = decode(memoryview(bytes(shift) + raw)[shift:], LAYOUT, no_text)
        assert (records.of[5]["cbid"].tolist(), records.lost_bytes) == ([211, 13], 0)


def test_a_view_of_other_items_than_bytes_is_read_as_bytes() -> None:
    raw = pack(5, "13.0", cbid=211)
    assert decode(memoryview(raw).cast("Q"), LAYOUT, no_text).of[5]["cbid"].tolist() == [211]


def test_each_pointer_is_read_once_and_equal_texts_are_one() -> None:
    texts = {0x10: b"first", 0x20: b"second", 0x30: b"first"}
    asked: list[int] = []

    def text_at(address: int) -> bytes | None:
        asked.append(address)
        return texts[address]

    pointers = [0x10, 0x20, 0, 0x30, 0x10] * 3
    records = decode(b"".join(pack(10, "13.0", name=p) for p in pointers), LAYOUT, text_at)
    named = [records.texts[i] for i in records.text[10]]
    assert named == ["first", "second", "", "first", "first"] * 3
    assert (sorted(asked), records.texts.count("first")) == ([0x10, 0x20, 0x30], 1)


@pytest.mark.parametrize(
    ("text", "shown"), [(None, ""), (b"", ""), (b"k\xff\xfe", "k\ufffd\ufffd"), (b"x" * 10_000, "x" * 10_000)]
)
def test_a_name_that_cannot_be_read_costs_no_record(text: bytes | None, shown: str) -> None:
    records = decode(pack(3, "13.0", name=0x40, correlationId=5), LAYOUT, lambda _: text)
    assert ([records.texts[i] for i in records.text[3]], records.of[3]["correlationId"].tolist()) == ([shown], [5])


def test_buffers_are_joined_in_their_order_with_one_table_of_texts() -> None:
    first = decode(pack(10, "13.0", name=1, correlationId=1) + bytes(8), LAYOUT, lambda _: b"a")
    second = decode(pack(10, "13.0", name=1, correlationId=2) + pack(5, "13.0"), LAYOUT, lambda _: b"b")
    third = decode(pack(10, "13.0", name=9, correlationId=3), LAYOUT, lambda _: b"a")
    whole = merged([first, second, third])
    assert [whole.texts[i] for i in whole.text[10]] == ["a", "b", "a"]
    assert whole.of[10]["correlationId"].tolist() == [1, 2, 3]
    assert (len(whole), whole.n_bytes, whole.lost_bytes) == (4, 3 * 216 + 48, 8)
    assert whole.stops == first.stops


def test_nothing_joined_is_nothing() -> None:
    assert len(merged([])) == 0
    assert merged([Records(), Records()]).n_bytes == 0


def test_buffers_of_two_libraries_are_not_joined() -> None:
    parts = [decode(pack(10, r, name=0), expected(VERSIONS[r]), no_text) for r in ("13.0", "13.4")]
    with pytest.raises(ValueError, match=r"of different releases cannot be joined: not all have priority"):
        merged(parts)


KIND_NUMBERS = sorted(set(KINDS) | {0, 7, 60, 0xFFFFFFFF})


@st.composite
def buffers(draw: st.DrawFn) -> tuple[bytes, Layout]:
    """Records of any kinds in runs of any length, with bytes overwritten and the end cut anywhere."""
    release = draw(st.sampled_from(list(VERSIONS)))
    layout = expected(VERSIONS[release])
    runs = draw(st.lists(st.tuples(st.sampled_from(KIND_NUMBERS), st.integers(1, 300)), max_size=8))
    raw = bytearray()
    for kind, count in runs:
        stride = layout.strides.get(kind, 16)
        raw += (struct.pack("<I", kind) + bytes([draw(st.integers(0, 255))]) * (stride - 4)) * count
    for _ in range(draw(st.integers(0, 4)) if raw else 0):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw[: draw(st.integers(0, len(raw)))]), layout


@given(buffers())
def test_any_buffer_is_read_as_the_plain_rule_reads_it(given_buffer: tuple[bytes, Layout]) -> None:
    assert_same_as_plain(*given_buffer)


@given(st.binary(max_size=4096), st.sampled_from(list(VERSIONS)))
def test_any_bytes_are_read_as_the_plain_rule_reads_them(raw: bytes, release: str) -> None:
    assert_same_as_plain(raw, expected(VERSIONS[release]))


GUARDED = """
import ctypes as c, faulthandler, json, mmap, random, sys
from cuda_cupti import walk as walking
from cuda_cupti.decode import decode
from cuda_cupti.layouts import expected
faulthandler.enable()
seed, version, n, way = json.load(sys.stdin)
if way == "python":
    walking.native_walk = lambda: None
else:
    assert walking.native_walk()
libc = c.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [c.c_void_p, c.c_size_t, c.c_int]
page, room = mmap.PAGESIZE, 64 * mmap.PAGESIZE
region = mmap.mmap(-1, room + 2 * page)
base = c.addressof(c.c_char.from_buffer(region))
for guard in (base, base + page + room):
    assert libc.mprotect(guard, page, 0) == 0
rng, layout = random.Random(seed), expected(version)
kinds, total, lost = list(layout.strides), 0, 0
for _ in range(n):
    size = rng.randrange(room + 1)
    if rng.random() < 0.2:
        raw = bytearray(rng.randbytes(size))
    else:
        raw = bytearray()
        while len(raw) < size:
            kind = rng.choice(kinds)
            raw += (kind.to_bytes(4, "little") + rng.randbytes(layout.strides[kind] - 4)) * rng.choice((1, 1, 1, 100))
        del raw[size:]
        for _ in range(rng.randrange(3)):
            if raw:
                raw[rng.randrange(len(raw))] = rng.randrange(256)
    end = base + page + room
    c.memmove(end - size, bytes(raw), size)
    valid = memoryview((c.c_char * size).from_address(end - size)).cast("B")
    records = decode(valid, layout, lambda pointer: None)
    used = sum(len(rows) * layout.strides[kind] for kind, rows in records.of.items())
    assert used + records.lost_bytes == size == records.n_bytes
    total, lost = total + size, lost + records.lost_bytes
print(json.dumps([total, lost]))
"""


@pytest.mark.parametrize("release", ["12.8", "13.0", "13.5"])
def test_not_one_byte_outside_the_buffer_is_read(release: str, way: str) -> None:
    """The buffer ends where a page begins that may not be read: a byte too far would end the process."""
    total, lost = run_judge(GUARDED, [release, VERSIONS[release], 120, way])
    assert 0 < lost < total


STEPS = """
import ctypes as c, json, sys
path, buffers = json.load(sys.stdin)
lib = c.CDLL(path)
lib.cuptiActivityGetNextRecord.argtypes = [c.c_void_p, c.c_size_t, c.c_void_p]
answers = []
for text in buffers:
    raw = bytes.fromhex(text)
    buffer, at, found = c.create_string_buffer(raw, len(raw) + 4096), c.c_void_p(), []
    while lib.cuptiActivityGetNextRecord(buffer, len(raw), c.byref(at)) == 0:
        found.append(at.value - c.addressof(buffer))
    answers.append(found)
print(json.dumps(answers))
"""


def test_libcupti_finds_the_same_records_in_fuzzed_buffers() -> None:
    path, rng = libcupti(), random.Random(5)
    release = "13.0" if "13.0." in next(p.name for p in path.parents[3].glob("nvidia_cuda_cupti-*")) else "13.1"
    layout = expected(VERSIONS[release])
    buffers = []
    for _ in range(400):
        raw = b"".join(
            kind.to_bytes(4, "little") + rng.randbytes(layout.strides[kind] - 4)
            for kind in rng.choices(list(layout.strides), k=rng.randrange(30))
        )
        raw += rng.choice([b"", bytes(16), rng.randbytes(rng.randrange(12)), struct.pack("<I", 9999) + bytes(60)])
        buffers.append(raw[: rng.choice([len(raw), rng.randrange(len(raw) + 1)])])
    answers = run_judge(STEPS, [str(path), [raw.hex() for raw in buffers]])
    ours = [sorted(np.concatenate([*walk(memoryview(raw), layout).offsets.values(), []]).tolist()) for raw in buffers]
    assert ours == answers


READ = """
import json, sys
from cupti import cupti
answers = []
for name, text in json.load(sys.stdin):
    record = getattr(cupti, name).from_buffer(bytes.fromhex(text))
    answers.append({key.replace("_", "").lower(): int(getattr(record, key)) for key in dir(record)
                    if key[0] != "_" and key not in ("name", "ptr", "source") and isinstance(getattr(record, key), int)})
print(json.dumps(answers))
"""
CLASSES = {
    10: "ActivityKernel13",
    1: "ActivityMemcpy7",
    22: "ActivityMemcpyPtoP4",
    2: "ActivityMemset5",
    5: "ActivityAPI",
    39: "ActivityExternalCorrelation",
    38: "ActivitySynchronization2",
    36: "ActivityCudaEvent2",
    51: "ActivityGraphTrace2",
    49: "ActivityMemory4",
    50: "ActivityMemoryPool3",
    37: "ActivityStream",
}


def test_cupti_python_reads_the_same_values_from_the_same_bytes() -> None:
    layout, rng = expected(VERSIONS["13.4"]), random.Random(7)
    raws, given_records = {}, []
    for kind, name in CLASSES.items():
        names = [n for n in FIELDS[kind] if n not in OF_BYTES | {"name"} and hasattr(struct_of(kind, "13.4"), n)]
        values = {n: rng.randrange(1, 100) for n in names}
        raws[kind] = pack(kind, "13.4", **values)
        given_records.append((name, raws[kind].hex()))
    answers = run_judge(READ, given_records, path=cupti_python())
    for (kind, raw), theirs in zip(raws.items(), answers, strict=True):
        rows = decode(raw, layout, no_text).of[kind]
        ours = {n.replace("_", "").lower(): int(rows[n][0]) for n in rows.fields if n not in OF_BYTES | {"name"}}
        both = ours.keys() & theirs.keys()
        assert {key: theirs[key] for key in both} == {key: ours[key] for key in both}, kind
        assert len(both) > len(ours) * 0.7, (kind, ours.keys() - both)
