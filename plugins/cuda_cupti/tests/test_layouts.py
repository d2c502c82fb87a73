from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cuda_cupti.layouts import FIELDS, NEWEST, RELEASES, ActivityKind, Layout, expected, release_of

from plugins.cuda_cupti.tests.judges import cupti_headers, cupti_python, include_dirs, libcupti, run_judge
from plugins.cuda_cupti.tests.structs import KINDS, VERSIONS, struct_of

STRUCTS = {
    "Kernel": ActivityKind.CONCURRENT_KERNEL,
    "Memcpy": ActivityKind.MEMCPY,
    "MemcpyPtoP": ActivityKind.MEMCPY2,
    "Memset": ActivityKind.MEMSET,
    "API": ActivityKind.RUNTIME,
    "ExternalCorrelation": ActivityKind.EXTERNAL_CORRELATION,
    "Overhead": ActivityKind.OVERHEAD,
    "Synchronization": ActivityKind.SYNCHRONIZATION,
    "CudaEvent": ActivityKind.CUDA_EVENT,
    "Memory": ActivityKind.MEMORY2,
    "MemoryPool": ActivityKind.MEMORY_POOL,
    "GraphTrace": ActivityKind.GRAPH_TRACE,
    "Context": ActivityKind.CONTEXT,
    "Device": ActivityKind.DEVICE,
    "Stream": ActivityKind.STREAM,
    "Name": ActivityKind.NAME,
    "Marker": ActivityKind.MARKER,
    "MarkerData": ActivityKind.MARKER_DATA,
    "GraphHostNode": ActivityKind.GRAPH_HOST_NODE,
    "HostLaunch": ActivityKind.HOST_LAUNCH,
}


@pytest.mark.parametrize("release", VERSIONS)
def test_every_kind_is_as_long_as_its_struct_in_every_release(release: str) -> None:
    structs = {kind: struct_of(kind, release) for kind in KINDS}
    sizes = {kind: ctypes.sizeof(struct) for kind, struct in structs.items() if struct}
    assert dict(expected(VERSIONS[release]).strides) == sizes


@pytest.mark.parametrize("release", VERSIONS)
def test_every_field_lies_where_the_struct_has_it_in_every_release(release: str) -> None:
    layout = expected(VERSIONS[release])
    for kind in layout.strides:
        struct = struct_of(kind, release)
        dtype = layout.dtype(kind)
        assert dtype.names is not None
        assert dtype.fields is not None
        ours = {name: (dtype.fields[name][1], dtype.fields[name][0].itemsize) for name in dtype.names}
        theirs = {name: getattr(struct, name) for name in dtype.names}
        assert ours == {name: (member.offset, member.size) for name, member in theirs.items()}


def test_a_field_that_a_release_added_is_there_from_that_release_on() -> None:
    has_priority = {
        release for release in RELEASES if "priority" in (expected(VERSIONS[release]).dtype(10).names or ())
    }
    assert has_priority == {"13.1", "13.2", "13.3", "13.4", "13.5"}


@pytest.mark.parametrize(("release", "version"), VERSIONS.items())
def test_a_version_names_its_release(release: str, version: int) -> None:
    assert release_of(version) == release


def test_a_library_newer_than_every_known_one_is_expected_to_be_as_the_newest() -> None:
    assert dict(expected(140200).strides) == dict(RELEASES[NEWEST])


def test_a_library_older_than_every_known_one_is_refused_with_what_to_install() -> None:
    with pytest.raises(
        ValueError, match=r"version 24 is older than CUDA 12\.8 .*install the libcupti of CUDA 12\.8 or newer"
    ):
        expected(24)


@pytest.mark.parametrize(
    ("kind", "stride"), [(10, 200), (10, 212), (5, 4), (5, -40), (5, 1 << 20), (0, 40), (1 << 20, 40)]
)
def test_a_length_that_no_record_can_have_is_refused(kind: int, stride: int) -> None:
    with pytest.raises(ValueError, match=f"kind {kind} are said to be {stride} bytes long"):
        Layout(130001, {kind: stride})


def test_a_kind_of_length_0_is_a_kind_that_the_library_does_not_have() -> None:
    assert dict(Layout(26, {5: 40, 58: 0}).strides) == {5: 40}


def test_a_longer_record_than_known_keeps_its_fields() -> None:
    dtype = Layout(150000, {10: 512}).dtype(10)
    assert dtype.itemsize == 512
    assert set(dtype.names or ()) == {"kind", *FIELDS[10]}


def test_layouts_that_disagree_say_where() -> None:
    table = expected(130001)
    longer = Layout(130001, {**table.strides, 10: 224, 25: 104})
    shorter = Layout(130001, {kind: stride for kind, stride in table.strides.items() if kind != 10})
    assert longer.differences(table) == ("CONCURRENT_KERNEL: 224 bytes, expected 216",)
    assert shorter.differences(table) == (
        "CONCURRENT_KERNEL: unknown to the library, expected 216 bytes; buffers end at the first of these",
    )
    assert table.differences(table) == ()


CALIBRATE = """
import ctypes as c, json, sys
lib = c.CDLL(json.load(sys.stdin))
lib.cuptiActivityGetNextRecord.argtypes = [c.c_void_p, c.c_size_t, c.c_void_p]
version, strides = c.c_uint32(), {}
lib.cuptiGetVersion(c.byref(version))
for kind in range(1, 64):
    buffer, at = (c.c_uint32 * 1024)(*([kind] * 1024)), c.c_void_p()
    if lib.cuptiActivityGetNextRecord(buffer, 4096, c.byref(at)) == 0:
        first = at.value
        if lib.cuptiActivityGetNextRecord(buffer, 4096, c.byref(at)) == 0:
            strides[kind] = at.value - first
print(json.dumps([version.value, strides]))
"""


def test_libcupti_itself_steps_as_far_as_the_table_says() -> None:
    version, strides = run_judge(CALIBRATE, str(libcupti()))
    table = expected(version)
    assert {kind: strides.get(str(kind)) for kind in table.strides} == dict(table.strides)


def test_the_published_headers_compile_to_the_same_offsets(tmp_path: Path) -> None:
    cuda = [*include_dirs("cuda.h"), *(folder.parent for folder in include_dirs("crt/host_defines.h"))]
    for release, folder in cupti_headers():
        layout = expected(VERSIONS[release])
        text = (folder / "cupti_activity.h").read_text(encoding="utf-8", errors="replace")
        lines, ours = [], []
        for stem, kind in STRUCTS.items():
            named = [f"{stem}{n or ''}" for n in range(30) if f"}} CUpti_Activity{stem}{n or ''};" in text]
            if kind not in layout.strides:
                continue
            struct = f"CUpti_Activity{named[-1]}"
            lines.append(f'printf("%zu\\n", sizeof({struct}));')
            ours.append(layout.strides[kind])
            dtype = layout.dtype(kind)
            assert dtype.fields is not None
            for name, member in dtype.fields.items():
                lines.append(f'printf("%zu\\n", offsetof({struct}, {name}));')
                ours.append(member[1])
        source, program = tmp_path / f"{release}.cpp", tmp_path / release
        head = "#include <cstdio>\n#include <cstddef>\n#include <cupti_activity.h>\nint main() {\n"
        source.write_text(head + "\n".join(lines) + "\n}\n", encoding="utf-8")
        includes = [f"-I{path}" for path in (folder, *cuda)]
        subprocess.run(["g++", "-w", *includes, str(source), "-o", str(program)], check=True, timeout=120)
        theirs = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=60).stdout
        assert list(map(int, theirs.split())) == ours, release


DTYPES = """
import json, sys
from cupti import cupti
sys.stdin.read()
names = ("kernel9 kernel10 kernel11 kernel12 kernel13 memcpy6 memcpy7 memcpy_pto_p4 memset4 memset5 api external_correlation"
         " overhead3 synchronization2 cuda_event2 memory4 memory_pool2 memory_pool3 graph_trace2 context3 context4 device5"
         " device6 stream")
found = {}
for name in names.split():
    dtype = getattr(cupti, f"activity_{name}_dtype")
    dtype = dtype() if callable(dtype) else dtype
    found[name] = [dtype.itemsize, {key.replace("_", "").lower(): dtype.fields[key][1] for key in dtype.names}]
print(json.dumps(found))
"""
PYTHON_NAMES = {
    "12.8": "kernel9 context3 device5 memcpy6 memset4 memory_pool2",
    "13.0": "kernel10 memory_pool3",
    "13.1": "kernel11 context4",
    "13.2": "device6",
    "13.3": "kernel12",
    "13.4": "kernel13 memcpy7 memset5",
    "13.5": "",
}
SAME = "memcpy_pto_p4 api external_correlation overhead3 synchronization2 cuda_event2 memory4 graph_trace2 stream"
KIND_OF = {
    "kernel": 10,
    "context": 9,
    "device": 8,
    "memcpy": 1,
    "memset": 2,
    "memory_pool": 50,
    "memcpy_pto_p": 22,
    "api": 5,
    "external_correlation": 39,
    "overhead": 17,
    "synchronization": 38,
    "cuda_event": 36,
    "memory": 49,
    "graph_trace": 51,
    "stream": 37,
}


def test_cupti_python_has_the_same_sizes_and_offsets() -> None:
    found = run_judge(DTYPES, None, path=cupti_python())
    for release, names in PYTHON_NAMES.items():
        layout = expected(VERSIONS[release])
        for name in f"{names} {SAME if release == '12.8' else ''}".split():
            kind = KIND_OF[name.rstrip("0123456789")]
            size, offsets = found[name]
            dtype = layout.dtype(kind)
            assert dtype.fields is not None
            ours = {key.replace("_", "").lower(): at for key, (_, at, *_) in dtype.fields.items()}
            both = ours.keys() & offsets.keys()
            assert (size, {key: offsets[key] for key in both}) == (dtype.itemsize, {key: ours[key] for key in both}), (
                name
            )
            assert len(both) >= len(ours) - 1, (name, ours.keys() - both)


def test_every_dtype_is_little_endian_and_knows_no_python_object() -> None:
    for kind in RELEASES[NEWEST]:
        dtype = expected(VERSIONS[NEWEST]).dtype(kind)
        assert dtype.fields is not None
        assert not dtype.hasobject
        assert all(field[0].newbyteorder("<") == field[0] for field in dtype.fields.values())
        assert np.zeros(2, dtype).nbytes == 2 * dtype.itemsize
