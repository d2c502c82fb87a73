"""Does the CUDA plugin do on a real GPU what it promises? One command, no network, no build, under three minutes.

    python tests/gpu/cupti_smoke.py [MODE ...]        (or `make gpu-smoke`)

Every mode is a process of its own with a time limit. What is needed: an NVIDIA GPU, its driver, libcupti, numpy and pluggy;
CuPy, cuda-python and torch where they are there. devprof and the plugin are taken from this checkout. The last thing printed is
one JSON object; with OUT=folder it is also written there, beside small golden buffers. The exit code is 1 where a check failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMITS_S = {
    "facts": 20,
    "base": 20,
    "cupy": 30,
    "cuda_python": 20,
    "memory": 20,
    "cost": 40,
    "native": 30,
    "kineto_cost": 40,
    "beside_torch": 50,
    "refusals": 20,
    "golden": 20,
    "conform": 80,
}
"""The modes, in their order, and how long each may take."""
MOST_S = 172


def main(modes: list[str]) -> int:
    """Run the modes and print the summary; return the exit code."""
    begun, results = time.monotonic(), {}
    for mode in modes or LIMITS_S:
        left = MOST_S - (time.monotonic() - begun)
        results[mode] = run_mode(mode, min(LIMITS_S[mode], left)) if left > 5 else {"skipped": "no time left"}
        print(f"--- {mode}: {json.dumps(results[mode])}", flush=True)
    failed = sorted(f"{mode}: {name}" for mode, result in results.items() for name in failures(result))
    summary = {"ok": not failed, "failed": failed, "seconds": round(time.monotonic() - begun, 1), "modes": results}
    text = json.dumps(summary, indent=1)
    if out := os.environ.get("OUT"):
        (Path(out) / "cupti_smoke.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if failed else 0


def failures(result: dict[str, Any]) -> list[str]:
    """Return what is wrong in a mode's result."""
    if "error" in result:
        return [str(result["error"])[-400:]]
    return [f"{name}: {said}" for name, said in result.get("checks", {}).items() if said is not True]


def run_mode(mode: str, limit_s: float) -> dict[str, Any]:
    """Run one mode in a process of its own."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "plugins/cuda_cupti", ROOT / "tests/gpu")))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH", "")])),
        "KINETO_LOG_LEVEL": "6",
        "PYTHONFAULTHANDLER": "1",
    }
    program = f"from smoke_tools import run; run({mode!r})"
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            cwd=ROOT / "tests/gpu",
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        tail = (late.stderr or b"").decode("utf-8", "replace")[-1500:]
        return {"error": f"did not end within {limit_s:.0f} s: {tail}"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines or done.returncode:
        return {"error": f"exit code {done.returncode}: {done.stderr[-2500:]}", "said": lines[-1:]}
    result: dict[str, Any] = json.loads(lines[-1])
    result["seconds"] = round(time.monotonic() - begun, 1)
    if done.stderr.strip():
        result["stderr"] = done.stderr.strip()[-1200:]
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
