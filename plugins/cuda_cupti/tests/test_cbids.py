from __future__ import annotations

import re

import numpy as np
import pytest
from cuda_cupti.cbids import DRIVER_CALLS, RUNTIME_NOISE, api_name, api_names
from cuda_cupti.layouts import ActivityKind

from plugins.cuda_cupti.tests.judges import cupti_headers, libcupti, run_judge

RUNTIME, DRIVER = ActivityKind.RUNTIME, ActivityKind.DRIVER


@pytest.mark.parametrize(
    ("kind", "cbid", "name"),
    [
        (RUNTIME, 211, "cudaLaunchKernel"),
        (RUNTIME, 430, "cudaLaunchKernelExC"),
        (RUNTIME, 214, "cudaLaunchKernel_ptsz"),
        (DRIVER, 307, "cuLaunchKernel"),
        (DRIVER, 277, "cuMemcpyHtoDAsync_v2"),
        (RUNTIME, 0, "cbid_0"),
        (DRIVER, 4_000_000_000, "cbid_4000000000"),
        (99, 211, "cbid_211"),
    ],
)
def test_a_call_has_its_name_without_the_release_and_with_its_variant(kind: int, cbid: int, name: str) -> None:
    assert api_name(kind, cbid) == name


def test_noise_is_what_kineto_leaves_out() -> None:
    assert {api_name(RUNTIME, cbid) for cbid in RUNTIME_NOISE} == {
        *("cudaGetLastError", "cudaSetDevice", "cudaGetDevice", "cudaEventCreate", "cudaEventCreateWithFlags"),
        "cudaEventDestroy",
    }
    assert {api_name(DRIVER, cbid) for cbid in DRIVER_CALLS} == {
        *("cuLaunchKernel", "cuLaunchKernelEx", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease"),
        *("cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"),
    }


def test_each_call_points_at_its_name() -> None:
    names, which = api_names(RUNTIME, np.array([211, 17, 211], np.uint32))
    assert [names[i] for i in which] == ["cudaLaunchKernel", "cudaGetDevice", "cudaLaunchKernel"]


def test_no_name_carries_a_release() -> None:
    names = [api_name(kind, cbid) for kind in (RUNTIME, DRIVER) for cbid in range(1, 900)]
    assert [name for name in names if re.search(r"_v\d{4}", name)] == []
    assert sum(not name.startswith("cbid_") for name in names) == 1421


NAMES = """
import ctypes as c, json, sys
lib = c.CDLL(json.load(sys.stdin))
found = {}
for kind, domain in ((4, 1), (5, 2)):
    for cbid in range(1, 900):
        text = c.c_char_p()
        if lib.cuptiGetCallbackName(domain, c.c_uint32(cbid), c.byref(text)) == 0 and text.value:
            found[f"{kind} {cbid}"] = text.value.decode()
print(json.dumps(found))
"""


def test_libcupti_gives_the_same_names() -> None:
    theirs = {key: re.sub(r"_v\d{4,}$", "", name) for key, name in run_judge(NAMES, str(libcupti())).items()}
    ours = {key: api_name(*map(int, key.split())) for key in theirs}
    differing = {key: (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]}
    named = {
        key: pair for key, pair in differing.items() if not re.fullmatch(r"(cuda|reserved)\d+|INVALID|SIZE", pair[1])
    }
    assert len(theirs) > 1200
    # a function that got another name later
    assert named.keys() <= {"4 783"}, named


def test_the_headers_give_the_same_names() -> None:
    for _, folder in cupti_headers():
        for kind, domain in ((RUNTIME, "runtime"), (DRIVER, "driver")):
            text = (folder / f"cupti_{domain}_cbid.h").read_text(encoding="utf-8")
            found = re.findall(rf"{domain.upper()}_TRACE_CBID_(\w+?)(?:_v\d{{4,}})?\s*=\s*(\d+)", text)
            theirs = {
                int(n): name
                for name, n in found
                if not re.fullmatch(r"SIZE|INVALID|FORCE_INT|(cuda|reserved)\d+", name)
            }
            differing = {n for n, name in theirs.items() if api_name(kind, n) != name}
            # names of CUDA 12 that lost their _v2 or _v3 in 13, and one that changed
            assert {re.sub(r"_v[23]", "", theirs[n]) for n in differing} <= {
                *(api_name(kind, n) for n in differing),
                "cuStreamCreateForCaptureToCig",
            }
