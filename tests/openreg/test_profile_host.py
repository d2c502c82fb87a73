"""Both hosts of `devprof.profile` with the simulated device under torch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import simland
import torch

import devprof
from devprof.capture import RECORDING
from devprof.errors import SessionError
from devprof.model import ActivityType
from devprof.testing import Traced
from devprof.testing.baselines import Baselines

STEP = """
    import sys, simland, torch, devprof
    from collections import Counter

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).to("openreg")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.randn(4, 8, 32).to("openreg")

    def step():
        optimizer.zero_grad()
        with devprof.record_function("forward"):
            loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()

    step()
    torch.openreg.synchronize()
    how = sys.argv[1]
    if how == "torch.profiler":
        prof = simland.profile(simland.BOTH)
    else:
        prof = devprof.profile(activities=["cpu", "openreg"], host="torch")
    with prof:
        step()
    def on_host(row):
        return getattr(row.device_type, "name", row.device_type).lower() == "cpu" and not row.is_user_annotation

    rows = [(e.key, e.count, round(e.self_device_time_total * 1000), round(e.device_time_total * 1000))
            for e in prof.key_averages() if on_host(e)]
    rows = sorted(row for row in rows if row[2] or row[3])
    simland.say(rows=rows, lost=devprof.report_of(prof).ledgers["openreg"].lost)
"""


def test_a_transformer_step_has_the_device_times_that_torch_profiler_gives_it(said: Any) -> None:
    theirs, ours = (said(STEP, how, DEVPROF_OPENREG_CLOCK="virtual") for how in ("torch.profiler", "devprof.profile"))
    assert theirs["lost"] == 0
    assert ours["lost"] == 0
    assert len(theirs["rows"]) > 20
    assert ours["rows"] == theirs["rows"]


def test_a_block_without_a_wait_has_none_and_one_with_a_wait_has_that(tmp_path: Path) -> None:
    """torch.profiler waits for the device before it stops; the block did not."""
    x = torch.ones(8, 8, device="openreg")
    with Traced(Baselines(tmp_path / "b.json"), "t", "cpu", "openreg", host="torch") as quiet:
        x @ x
    with Traced(Baselines(tmp_path / "b.json"), "t", "cpu", "openreg", host="torch") as waiting:
        x @ x
        torch.openreg.synchronize()
    assert [len(block.trace.named("orDeviceSynchronize")) for block in (quiet, waiting)] == [1, 2]
    quiet.assert_no_synchronisation()
    with pytest.raises(AssertionError, match=r"waited for a device 1 times\n.*\n  orDeviceSynchronize "):
        waiting.assert_no_synchronisation()


def test_the_device_time_of_a_range_is_that_of_its_work(tmp_path: Path) -> None:
    renewed = Baselines(tmp_path / "b.json", renew=True)
    with Traced(renewed, "t", "cpu", "openreg", host="torch") as block, devprof.record_function("step"):
        x = torch.ones(8, 8, device="openreg")
        with devprof.record_function("forward"):
            x @ x
            time.sleep(0.01)
            x @ x
    block.assert_device_time("forward", of="step")
    work = {row.key: row.device_time_total for row in block.prof.key_averages() if row.device_type == "cpu"}
    assert block.trace.of_type(ActivityType.GPU_USER_ANNOTATION).size == 2
    assert Baselines(tmp_path / "b.json").compare("t forward of step", 0) == pytest.approx(
        work["aten::mm"] / work["step"], abs=1e-6
    )


def test_a_plugin_is_named_by_its_own_name_or_by_torchs_group() -> None:
    for activities in (["cpu", "openreg"], ["cpu", devprof.ProfilerActivity.PrivateUse1], None):
        with devprof.profile(activities=activities, host="torch") as prof:
            simland.first_program()
        report = prof.report
        assert report is devprof.report_of(prof) is devprof.last_report()
        assert report.clean
        assert report.ledgers["openreg"].linked > 0


def test_work_under_a_range_of_devprofs_belongs_to_it() -> None:
    with devprof.profile(activities=["cpu", "openreg"], host="torch") as prof, devprof.record_function("mine"):
        simland.first_program()
    trace = prof.trace
    spans = [trace.name_of(int(event)) for event in trace.named("mine")]
    assert spans == ["mine", "mine"]  # on the host, and its span on the device


@pytest.mark.parametrize("options", [{}, {"activities": ["cpu"]}])
def test_devprofs_own_host_refuses_to_start_beside_a_torch_profile_with_plugins(options: dict[str, Any]) -> None:
    with simland.profile(simland.BOTH) as theirs:
        with pytest.raises(SessionError, match=r"a torch\.profiler session with devprof plugins is running"):
            devprof.profile(host="python", **options).start()
        simland.first_program()
    assert devprof.report_of(theirs).clean


def test_a_torch_profile_with_plugins_refuses_to_start_beside_devprofs_own_host() -> None:
    with devprof.profile(host="python") as ours:
        with pytest.raises(SessionError, match=r"a devprof.profile with host='python' is running already, started at"):
            simland.profile(simland.BOTH).start()
        assert not torch.autograd.profiler._is_profiler_enabled
        with devprof.record_function("mine"):
            simland.first_program()
    assert "mine" in [event.name for event in ours.events()]
    assert RECORDING.holder is None
    with simland.profile(simland.BOTH) as theirs:
        simland.first_program()
    assert devprof.report_of(theirs).clean


def test_devprofs_own_host_sees_the_device_work_of_torchs_ops_under_its_ranges() -> None:
    simland.first_program()
    with devprof.profile(host="python") as prof, devprof.record_function("mine"):
        simland.first_program()
    report = prof.report
    assert report.clean
    assert report.ledgers["openreg"].device_work == report.ledgers["openreg"].linked > 0
    (mine,) = (row for row in prof.key_averages() if row.key == "mine" and row.device_type == "cpu")
    assert mine.device_time_total > 0


def test_under_torch_limits_hold_for_a_plugins_records_and_torchs_own_are_all_there(said: Any) -> None:
    facts = said(
        """
        import warnings, simland, torch, devprof
        from devprof.errors import LossWarning, UsageError

        x = torch.ones(8, device="openreg")
        told, refused = {}, []
        for options in ({"when_full": "ring"}, {"when_full": "stop"}, {"when_full": "spill"}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LossWarning)
                with devprof.profile(activities=["cpu", "openreg"], host="torch", max_records=300, **options) as prof:
                    for _ in range(1000):
                        x.add_(x)
                    for ask in (prof.snapshot, prof.totals):
                        try:
                            ask()
                        except UsageError as error:
                            refused.append(str(error).partition(":")[0])
            ledger = prof.report.ledgers["openreg"]
            trace = prof.trace
            ops = [trace.name_of(at) for at in trace.of_type(devprof.ActivityType.CPU_OP)].count("aten::add_")
            told[options["when_full"]] = (ledger.produced, ledger.emitted, dict(ledger.dropped), ledger.clean, ops)
        try:
            devprof.profile(activities=["cpu", "openreg"], host="torch", when_full="totals")
        except UsageError as error:
            refused.append(str(error))
        simland.say(told=told, refused=refused)
        """
    )
    (ring, stop, spill) = (facts["told"][how] for how in ("ring", "stop", "spill"))
    assert (spill[0], spill[1], spill[2], spill[3]) == (spill[0], spill[0], {}, True)
    assert (stop[1], stop[2], stop[3]) == (300, {"record limit reached": stop[0] - 300}, False)
    assert (list(ring[2]), ring[3]) == (["let go for newer ones"], True)
    assert 200 < ring[1] <= 300
    assert ring[0] == ring[1] + sum(ring[2].values())
    assert (ring[4], stop[4], spill[4]) == (1000, 1000, 1000)
    assert facts["refused"][:2] == ["snapshot", "totals"]
    assert "host='python'" in facts["refused"][-1]
