"""`import torch` makes the device, or says why not, and never fails for it."""

from __future__ import annotations

from typing import Any

import pytest

REPORT = (
    "import openreg_sim.autoload as a; s = a.status(); print(s.state.value + ': ' + s.reason); "
    "print(hasattr(torch, 'openreg'))"
)


def _report(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    lines: list[str] = done.stdout.splitlines()
    return lines


def test_device_is_there_after_import_torch(run_script: Any) -> None:
    """Only `import torch` is needed; arming again does nothing."""
    done = run_script(
        "import torch; import openreg_sim.autoload as a; a.arm()\n"
        "print(a.status().state.value, torch.openreg.device_count(), torch.ones(2, device='openreg').sum().item())\n"
        "print(torch.profiler.ProfilerActivity.OPENREG in torch.profiler.supported_activities())\n"
    )
    assert _report(done) == ["armed 2 2.0", "True"]
    assert done.stderr == ""


def test_number_of_devices_can_be_chosen(run_script: Any) -> None:
    """`DEVPROF_OPENREG_DEVICES` sets it; nonsense is a warning that says so, not a broken import."""
    count = "import torch; print(torch.openreg.device_count(), torch.ones(1, device='openreg:4').device)"
    assert _report(run_script(count, DEVPROF_OPENREG_DEVICES="5")) == ["5 openreg:4"]
    done = run_script("import torch; " + REPORT, DEVPROF_OPENREG_DEVICES="many")
    assert _report(done) == ["failed: ValueError: DEVPROF_OPENREG_DEVICES is 'many'; expected a number from 1", "False"]
    assert "the simulated device 'openreg' is not available" in done.stderr


def test_missing_build_is_one_sentence(run_script: Any, tmp_path: Any) -> None:
    """Without a build torch works, and one warning says what to run; nothing is built."""
    done = run_script("import torch; print(torch.ones(1).item()); " + REPORT, DEVPROF_CACHE=str(tmp_path))
    reason = "its native library has not been built for this torch, run `devprof build openreg`"
    assert _report(done) == ["1.0", f"not built: {reason}", "False"]
    assert done.stderr.count(reason) == 1
    assert list(tmp_path.iterdir()) == []


def test_warnings_as_errors_do_not_break_the_import(run_script: Any, tmp_path: Any) -> None:
    """`python -W error` with a missing build still imports torch."""
    done = run_script("import torch; " + REPORT, "-W", "error", DEVPROF_CACHE=str(tmp_path))
    assert _report(done)[1:] == ["False"]


HIDE = """
import importlib.metadata, sys

class Hide:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {name!r} or name.startswith({name!r} + "."):
            raise {error}

def entry_points(every=importlib.metadata.entry_points, **wanted):  # what is not installed has none of its own
    return tuple(point for point in every(**wanted) if not point.value.startswith("devprof."))

sys.meta_path.insert(0, Hide)
importlib.metadata.entry_points = entry_points
import torch
print(torch.ones(1).item())
"""


@pytest.mark.parametrize("options", [(), ("-W", "error")])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("devprof", "ModuleNotFoundError(name)"),
        ("devprof.errors", "ModuleNotFoundError(name)"),
        ("devprof.errors", "AttributeError(name)"),
    ],
)
def test_missing_or_broken_devprof_does_not_break_the_import(
    run_script: Any, name: str, error: str, options: tuple[str, ...]
) -> None:
    """Without devprof, or with half of it, torch works, and a plain RuntimeWarning says what is wrong."""
    done = run_script(HIDE.format(name=name, error=error) + REPORT, *options)
    value, state, there = _report(done)
    assert (value, there) == ("1.0", "False")
    assert state.startswith(f"failed: {error.split('(')[0]}: {name}")
    warned = done.stderr.count("RuntimeWarning: the simulated device 'openreg' is not available")
    assert warned == (0 if options else 1)


def test_whatever_shows_a_warning_cannot_break_the_import(run_script: Any, tmp_path: Any) -> None:
    """A program's own `showwarning` that raises is harmless too."""
    showing = "import warnings\ndef show(*args, **kwargs): raise OSError('no screen')\nwarnings.showwarning = show\n"
    done = run_script(showing + "import torch; " + REPORT, DEVPROF_CACHE=str(tmp_path))
    assert _report(done)[1:] == ["False"]


def test_library_of_another_build_is_refused_in_one_sentence(run_script: Any, tmp_path: Any) -> None:
    """A file in the cache that is no library of ours, with a checksum that fits, does not break the import either."""
    spoil = (
        "import hashlib; from devprof.native import library_path; from openreg_sim.build_spec import openreg_build\n"
        "path = library_path(openreg_build()); path.write_bytes(b'nonsense'); path.chmod(0o700)\n"
        "path.with_suffix('.sha256').write_text(hashlib.sha256(b'nonsense').hexdigest())\n"
        "import torch; " + REPORT
    )
    done = run_script(spoil, DEVPROF_CACHE=str(tmp_path))
    state, there = _report(done)
    assert state.startswith("failed: BuildError: the native library")
    assert there == "False"
    assert done.stderr.count("cannot be loaded") == 1


@pytest.mark.parametrize(
    ("variable", "value"), [("DEVPROF_DISABLE", "1"), ("DEVPROF_OPENREG", "0"), ("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")]
)
def test_switches_keep_it_off(run_script: Any, variable: str, value: str) -> None:
    """Each switch leaves torch as it is, silently, with a reason that can be read."""
    done = run_script("import torch; print(torch._C._get_privateuse1_backend_name()); " + REPORT, **{variable: value})
    name, state, there = _report(done)
    assert (name, there, done.stderr) == ("privateuseone", "False", "")
    assert state.startswith("not asked: " if variable.startswith("TORCH") else f"off: {variable}={value}")


def test_another_vendors_backend_keeps_it_off(run_script: Any) -> None:
    """Where PrivateUse1 is taken, it stays with its owner, even if openreg is asked for."""
    other = (
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch; torch.utils.rename_privateuse1_backend('npu')\n"
        "import openreg_sim.autoload as a; a.arm(); print(torch._C._get_privateuse1_backend_name()); " + REPORT
    )
    done = run_script(other, DEVPROF_OPENREG="1")
    assert _report(done) == [
        "npu", "off: another backend has taken torch's PrivateUse1 device and named it 'npu'", "False",
    ]  # fmt: skip


def test_cuda_keeps_it_off_unless_it_is_asked_for(run_script: Any) -> None:
    """Beside a CUDA device torch.accelerator stays CUDA's; `DEVPROF_OPENREG=1` overrules."""
    beside_cuda = (
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch\n"
        "torch.backends.cuda.is_built = lambda: True; torch.version.cuda = '13.0'\n"
        "torch.cuda._device_count_nvml = lambda: 1\n"
        "import openreg_sim.autoload as a; a.arm(); " + REPORT
    )
    state, there = _report(run_script(beside_cuda))
    assert state.startswith("off: this machine has a CUDA device")
    assert there == "False"
    assert _report(run_script(beside_cuda, DEVPROF_OPENREG="1")) == ["armed: ", "True"]


def test_autoload_module_is_light(run_script: Any) -> None:
    """Importing the entry point loads neither torch nor numpy nor devprof."""
    done = run_script(
        "import sys; import openreg_sim.autoload\n"
        "print(sorted({'torch', 'numpy', 'devprof', 'openreg_sim.runtime'} & set(sys.modules)))"
    )
    assert _report(done) == ["[]"]
