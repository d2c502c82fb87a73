"""When the bridge is loaded: it registers with Kineto, which must not happen while a session is active."""

from __future__ import annotations

from toyland import Program

REFUSED_BEFORE_THE_FIRST_SESSION = """
import devprof.torch
import toyland
from torch.profiler import ProfilerActivity, profile
from devprof.errors import SessionError
from devprof.torch.bridge import bridge

devprof.torch.install()
toyland.backend()
toyland.block_installed_plugins()
toyland.take_in(toyland.scripted())
with profile(activities=[ProfilerActivity.CPU]):
    try:
        toyland.profile().start()
    except SessionError as error:
        refused = str(error)
    loaded_while_active = bridge.cache_info().currsize
with toyland.profile():
    pass
toyland.say(refused=refused, loaded_while_active=loaded_while_active, loaded_after=bridge.cache_info().currsize)
"""


def test_a_refused_first_session_loads_no_bridge_into_an_active_one(program: Program) -> None:
    """The refusal comes first; the next session, which may start, loads it."""
    said = program(REFUSED_BEFORE_THE_FIRST_SESSION)
    assert "a profile is already recording on this thread" in said["refused"]
    assert (said["loaded_while_active"], said["loaded_after"]) == (0, 1)
