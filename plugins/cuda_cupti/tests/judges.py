"""Programs of NVIDIA's that can say whether we are right, where somebody installed them; none is needed.

``CUPTI_JUDGES`` lists folders (with ``:`` between) that packages were unpacked into, one version of each per folder:

    pip install --no-deps --target JUDGES/13.0 nvidia-cuda-cupti==13.0.85
    pip install --no-deps --target JUDGES/headers nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
    pip install --target JUDGES/python cupti-python==13.4.0

The running environment's own site-packages are looked into as well. They run in processes of their own: a libcupti must not be
loaded beside a driver that somebody uses, and some of its releases crash without one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["cupti_headers", "cupti_python", "include_dirs", "libcupti", "run_judge"]

ROOT = Path(__file__).parents[3]
_ANSWERS_WITHOUT_DRIVER = ("13.0.", "13.1.")
_DIST = re.compile(r"nvidia_cuda_cupti(?:_cu12)?-([\d.]+)\.dist-info")


def _folders() -> list[Path]:
    named = [Path(folder) for folder in os.environ.get("CUPTI_JUDGES", "").split(os.pathsep) if folder]
    return [folder for folder in (*named, Path(sysconfig.get_path("purelib"))) if folder.is_dir()]


def _cupti_packages() -> Iterator[tuple[str, Path]]:
    """Yield version and folder of every nvidia-cuda-cupti."""
    for folder in _folders():
        for entry in folder.glob("nvidia_cuda_cupti*.dist-info"):
            if found := _DIST.fullmatch(entry.name):
                yield found[1], folder


def libcupti() -> Path:
    """Return a libcupti that answers without a driver, or skip."""
    for version, folder in _cupti_packages():
        if version.startswith(_ANSWERS_WITHOUT_DRIVER):
            for path in folder.glob("nvidia/*/lib/libcupti.so.13"):
                return path
    pytest.skip("needs nvidia-cuda-cupti 13.0 or 13.1, which answers without a driver (CUPTI_JUDGES, see judges.py)")


def cupti_headers() -> list[tuple[str, Path]]:
    """Return release and include folder of every header of CUPTI's, or skip."""
    found = [
        (".".join(version.split(".")[:2]), path.parent)
        for version, folder in _cupti_packages()
        for path in folder.glob("nvidia/*/include/cupti_activity.h")
    ]
    if not found:
        pytest.skip("needs nvidia-cuda-cupti for its headers (CUPTI_JUDGES, see judges.py)")
    return found


def include_dirs(header: str) -> list[Path]:
    """Return the folders of CUDA's own headers, or skip."""
    found = [path.parent for folder in _folders() for path in folder.glob(f"nvidia/*/include/{header}")]
    if not found:
        pytest.skip(f"needs nvidia-cuda-runtime and nvidia-cuda-crt for {header} (CUPTI_JUDGES, see judges.py)")
    return found


def cupti_python() -> Path:
    """Return the folder that cupti-python is in, or skip."""
    for folder in _folders():
        if list(folder.glob("cupti/cupti.*.so")):
            return folder
    pytest.skip("needs cupti-python (CUPTI_JUDGES, see judges.py)")


def run_judge(program: str, given: object, *, path: Path | None = None) -> Any:
    """Run a program in a process of its own; it reads ``given`` as JSON and answers in JSON."""
    search = [str(ROOT), str(ROOT / "plugins/cuda_cupti"), *([str(path)] if path else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(search)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
