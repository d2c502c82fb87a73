"""Judge the right toy and its zoo under torch; prints what failed, by plugin and by check, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

import zoo
from toy import ToyDevice, ToyProfiler, ToyStubs, ToyWorkload

import devprof.torch
from devprof.testing import plugin_of
from devprof.testing.conformance import CHECKS, Bench, Device, Settings, State, Subject, judge, settle

QUICK = Settings(sessions=20, kernels=600, drift_s=0.3, ops=300)
UNDER_TORCH = [check for check in CHECKS if "torch" in check.hosts]


def right() -> Any:
    device = ToyDevice()
    return plugin_of(ToyProfiler(device, "toy"), stubs=ToyStubs(device)), ToyWorkload(device)


def broken(number: str) -> Any:
    (animal,) = (one for one in zoo.ANIMALS if one.number == number)
    return animal.plugin("toy")


def judged(make: Any) -> dict[str, str]:
    found = []
    for check in UNDER_TORCH:
        plugin, workload = make()
        with Subject(plugin) as subject:
            found.append(judge(check, Bench(subject, Device(workload), "torch", QUICK)))
    found = [settle(one, found) for one in found]
    return {one.check.number: one.text for one in found if one.state is State.FAILED}


if __name__ == "__main__":
    torch.utils.rename_privateuse1_backend("toy")
    devprof.torch.install()
    answers = {"right": judged(right)}
    for number in [check.number for check in UNDER_TORCH]:
        answers[number] = judged(lambda number=number: broken(number))
    print(json.dumps(answers))
