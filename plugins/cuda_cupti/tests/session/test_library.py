"""A real libcupti takes our calls as we make them, as far as it answers without a driver. Optional, in a process of its own."""

from __future__ import annotations

import pytest

from plugins.cuda_cupti.tests.judges import libcupti, run_judge

_PROGRAM = """
import ctypes as c, json, sys, time
from cuda_cupti.access import calibrated
from cuda_cupti.binding import Cupti, functions_of
from cuda_cupti.native_exchange import new_exchange
from cuda_cupti.external_ids import OP_KIND, USER_KIND

functions = functions_of(c.CDLL(json.load(sys.stdin)))
library, exchange, last = Cupti(functions), new_exchange(), c.c_uint64()
PUSH, REGISTER = "cuptiActivityPushExternalCorrelationId", "cuptiActivityRegisterCallbacks"
before = time.time_ns()
print(json.dumps({
    "missing": sorted(set(__import__("cuda_cupti.binding").binding.PROTOTYPES) - set(functions)),
    "release": library.version // 100,
    "name": library.describe(39),
    "doubts": calibrated(library)[1],
    "clock is the host's": before <= library.timestamp_ns() <= time.time_ns(),
    "register, twice": [library.attempt(REGISTER, exchange.requested, exchange.completed) for _ in "ab"],
    "kinds of ids": [library.attempt(PUSH, kind, 1) == 1 for kind in (OP_KIND, USER_KIND, 9)],
    "enable": library.attempt("cuptiActivityEnable", 10),
    "attribute": library.byte_attribute(5),
}))
"""


def test_a_library_without_a_driver_has_every_function_and_refuses_no_argument() -> None:
    path = libcupti()
    said = run_judge(_PROGRAM, str(path))
    assert said.pop("release") in (1300, 1301)
    assert said == {
        "missing": [],
        "name": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        "doubts": [],
        "clock is the host's": True,
        "register, twice": [0, 0],
        "kinds of ids": [False, False, True],  # an unknown kind is refused before the driver is asked for
        "enable": 999,
        "attribute": None,
    }


@pytest.mark.parametrize("call", ["cuptiActivityFlushAll", "cuptiActivityDisable"])
def test_calls_that_need_a_driver_answer_and_do_not_crash(call: str) -> None:
    program = (
        "import ctypes as c, json, sys\n"
        "from cuda_cupti.binding import Cupti, functions_of\n"
        f"print(Cupti(functions_of(c.CDLL(json.load(sys.stdin)))).attempt({call!r}, 1))"
    )
    assert run_judge(program, str(libcupti())) in (15, 999)
