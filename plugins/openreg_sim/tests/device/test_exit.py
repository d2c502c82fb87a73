"""Programs on the device end as they should: with their own exit code, however soon after their last call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

ENDS_AFTER_BACKWARD = (
    "import torch\nx = torch.randn(64, 64, device='openreg', requires_grad=True)\n(x @ x).sum().backward()\n"
)


def test_fifty_scripts_that_end_right_after_backward_exit_with_zero(run_script: Any) -> None:
    """Autograd's device thread still holds the caller's context then; without care some of these runs die with SIGABRT."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        codes = list(pool.map(lambda _: run_script(ENDS_AFTER_BACKWARD).returncode, range(50)))
    assert codes == [0] * 50


def test_exit_codes_are_the_programs_own(run_script: Any) -> None:
    """`sys.exit` and an exception after a backward give their code."""
    assert run_script(ENDS_AFTER_BACKWARD + "import sys; sys.exit(7)").returncode == 7
    failed = run_script(ENDS_AFTER_BACKWARD + "raise ValueError('mine')")
    assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, "ValueError: mine")


def test_end_is_clean_whatever_state_torch_is_left_in(run_script: Any) -> None:
    """Both devices, a user's thread, no-grad and inference mode, an exhausted device, and handlers of the user's at exit."""
    done = run_script(
        "import atexit, threading, torch\n"
        "def work(device):\n"
        "    x = torch.randn(8, 8, device=device, requires_grad=True); (x @ x).sum().backward()\n"
        "    torch.Event(device).record()\n"
        "atexit.register(lambda: print('user', torch.ones(2, device='openreg').sum().item()))\n"
        "threads = [threading.Thread(target=work, args=(f'openreg:{i % 2}',)) for i in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "work('openreg:0'); work('openreg:1')\n"
        "torch.set_grad_enabled(False); torch.inference_mode().__enter__()\n"
        "torch.openreg.set_memory_limit(torch.openreg.memory_allocated(1) + 1000, 1)\n"
        "keep = torch.ones(3, device='openreg'); event = torch.Event('openreg'); event.record()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "user 2.0\n", "")


def test_stuck_backward_of_a_daemon_thread_does_not_hold_up_the_end(run_script: Any) -> None:
    """Where a backward never ends, leaving gives up on it after a while; the exit code is the program's."""
    done = run_script(
        "import os, threading, torch\n"
        "started = threading.Event()\n"
        "def stuck(gradient): started.set(); threading.Event().wait()\n"
        "def work():\n"
        "    x = torch.ones(2, device='openreg', requires_grad=True); x.register_hook(stuck); x.sum().backward()\n"
        "threading.Thread(target=work, daemon=True).start(); started.wait()\n"
        "from openreg_sim.device import native\n"
        "print(native().orSettleAutograd(200))\n"
        "import openreg_sim.device.at_exit as at_exit; at_exit._PATIENCE_MS = 200\n"
        # the stuck thread itself would not survive the interpreter's end, on a CPU neither
        "import atexit; atexit.register(os._exit, 3)\n"
        "at_exit.leave(__import__('openreg_sim.device.installed', fromlist=['link']).link())\n"
    )
    assert (done.returncode, done.stdout) == (3, "0\n"), done.stderr


def test_program_without_backward_starts_no_threads_at_exit(run_script: Any) -> None:
    """Leaving costs nothing where autograd never ran."""
    done = run_script(
        "import atexit, pathlib\n"
        "def names(): return [p.read_text() for p in pathlib.Path('/proc/self/task').glob('*/comm')]\n"
        "atexit.register(lambda: print([name for name in names() if name.startswith('pt_autograd')]))\n"
        "import torch; torch.ones(1, device='openreg')\n"
    )
    assert (done.returncode, done.stdout) == (0, "[]\n")


def test_interrupt_while_the_host_waits_is_an_interrupt_of_the_program(run_script: Any) -> None:
    """Ctrl-C during `item` is raised in the program as KeyboardInterrupt, and the device works on."""
    done = run_script(
        "import os, signal, threading, torch\n"
        "from openreg_sim.device import installed\n"
        "x = torch.ones(2, device='openreg')\n"
        "runtime = installed.link().runtime\n"
        "wait = runtime.host_clock.wait_until_ns\n"
        "def interrupted(until_ns):\n"
        "    runtime.host_clock.wait_until_ns = wait\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    return wait(until_ns)\n"
        "runtime.host_clock.wait_until_ns = interrupted\n"
        "try:\n"
        "    x.sum().item(); print('not interrupted')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print(x.sum().item())\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n2.0\n", "")
