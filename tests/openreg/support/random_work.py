"""Random programs for two devices: kernels, copies and sets on four streams, events between them, ranges, waits.

A program is data, so that it can be shrunk, repeated and run in another process. `run` also says what it must come to, from
the program alone: no simulator and no profiler is asked.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

import torch
from torch.profiler import record_function

N = 64
N_PLACES = 4
N_SLOTS = 3
WORK = {
    "mm": ("mm_kernel", "aten::mm"),
    "add": ("add_kernel", "aten::add"),
    "fill": ("fill_kernel", "aten::fill_"),
    "zero": ("Memset (Device)", "aten::zero_"),
    "clone": ("Memcpy DtoD (Device -> Device)", "aten::copy_"),
    "upload": ("Memcpy HtoD (Pageable -> Device)", "aten::copy_"),
    "download": ("Memcpy DtoH (Device -> Pageable)", "aten::copy_"),
    "peer": ("Memcpy PtoP (Device -> Device)", "aten::copy_"),
}
"""What each action leaves on a device, and the op that it belongs to."""
ACTIONS = (*WORK, "record", "wait", "sync device", "sync stream", "sync event", "enter", "leave")


class Step(NamedTuple):
    """One step: what to do, on which of the four streams, with which event."""

    action: str
    place: int
    slot: int


class Expected(NamedTuple):
    """Work that a program must leave: its name, op, device and stream, and the innermost range, if there is one."""

    name: str
    op: str
    device: int
    stream: int
    range: str | None


class _Place:
    """A stream, and tensors of its device."""

    def __init__(self, device: int, stream: torch.Stream) -> None:
        self.device, self.stream = device, stream
        self.x = torch.ones(N, N, device=f"openreg:{device}")
        self.y = torch.ones(N, N, device=f"openreg:{device}")
        self.host = torch.ones(N, N)


@cache
def places() -> list[_Place]:
    """Return the four streams: the default one and another one of each device."""
    default = [torch.openreg.default_stream(device) for device in range(2)]
    side = [torch.Stream(f"openreg:{device}") for device in range(2)]
    return [_Place(device, streams[device]) for device in range(2) for streams in (default, side)]


def generate(seed: int, n_steps: int = 30) -> list[Step]:
    """Return a program that the seed decides."""
    choose = random.Random(seed)
    return [Step(choose.choice(ACTIONS), choose.randrange(N_PLACES), choose.randrange(N_SLOTS)) for _ in range(n_steps)]


def run(steps: list[Step]) -> list[Expected]:
    """Run a program and return what it must leave, in order. Ranges that it leaves open are closed at its end."""
    events: dict[int, torch.Event] = {}
    ranges: list[str] = []
    expected = []
    with ExitStack() as outermost:
        open_ = [outermost]
        for number, (action, index, slot) in enumerate(steps):
            place = places()[index]
            if action in WORK:
                device, stream = _work(action, place)
                expected.append(Expected(*WORK[action], device, stream, ranges[-1] if ranges else None))
            elif action == "enter":
                ranges.append(f"range {number}")
                open_.append(outermost.enter_context(ExitStack()))
                open_[-1].enter_context(record_function(ranges[-1]))
            elif action == "leave" and ranges:
                ranges.pop()
                open_.pop().close()
            else:
                _order(action, place, events, slot)
    return expected


def _work(action: str, place: _Place) -> tuple[int, int]:
    """Do one piece of work, and return the device and stream that it must be on."""
    with place.stream:
        match action:
            case "mm":
                place.x @ place.y
            case "add":
                place.x + place.y
            case "fill":
                place.x.fill_(1.0)
            case "zero":
                place.y.zero_()
            case "clone":
                place.x.clone()
            case "upload":
                place.host.to(f"openreg:{place.device}")
            case "download":
                place.x.cpu()
            case "peer":  # a copy is the target's work, on the stream that is current there
                place.x.to(f"openreg:{1 - place.device}")
                return 1 - place.device, 0
    return place.device, place.stream.stream_id


def _order(action: str, place: _Place, events: dict[int, torch.Event], slot: int) -> None:
    match action:
        case "record":
            events[slot] = place.stream.record_event()
        case "wait" if slot in events:
            place.stream.wait_event(events[slot])
        case "sync device":
            torch.openreg.synchronize(place.device)
        case "sync stream":
            place.stream.synchronize()
        case "sync event" if slot in events:
            events[slot].synchronize()
