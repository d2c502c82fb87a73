"""`trace_of` on the records of a CUDA session: what Kineto wrote on an H200 is logged into a profile here, and read back."""

from __future__ import annotations

import pytest
from toyland import Program

PROGRAM = """
    from collections import Counter
    from pathlib import Path
    import golden_kineto, toyland, torch, devprof.torch
    from kineto_file import shown_by_file, shown_by_trace

    events = golden_kineto.events_of({name!r})
    toyland.backend()
    toyland.other_backend().other_register()
    golden_kineto.give(events)
    devprof.torch.install()
    with toyland.profile() as prof:
        torch.ones(2) + 1
    trace = devprof.torch.trace_of(prof)
    found = golden_kineto.found_in(trace, events)
    prof.export_chrome_trace("t.json")
    ours, files = shown_by_trace(trace), shown_by_file(Path("t.json"))
    toyland.say(
        kinds=Counter(one.category for one in events),
        lost=list(Counter(events) - found),
        invented=list(found - Counter(events)),
        unlike_the_file=sorted({{one.cat for one in (ours.lines - files.lines) + (files.lines - ours.lines)}}),
        ops=[event.name for event in prof.events() if event.name == "aten::add"],
    )
"""


@pytest.mark.parametrize("name", ["h200_cupy", "h200_torch"])
def test_calls_work_waits_arrows_and_items_of_a_cuda_session_come_back_whole(name: str, program: Program) -> None:
    said = program(PROGRAM.format(name=name))
    assert {"cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"} <= said["kinds"].keys()
    assert (said["lost"], said["invented"]) == ([], [])
    # Kineto's writer puts waits on a row beside their stream; the records have the stream
    assert said["unlike_the_file"] == ["cuda_sync"]
    assert said["ops"] == ["aten::add"]
