"""Does the CUDA plugin do on a real GPU what it promises? One command, no network, no build, under three minutes.

    python tests/gpu/cupti_smoke.py [MODE ...]        (or `make gpu-smoke`)

Every mode is a process of its own with a time limit. What is needed: an NVIDIA GPU, its driver, libcupti, numpy and pluggy;
CuPy, cuda-python and torch where they are there. devprof and the plugin are taken from this checkout. The last thing printed is
one JSON object; with OUT=folder it is also written there after each mode, beside small golden buffers.

The exit code is 1 where a check failed or a mode did not come to its end, and 2 where nothing failed and something was not
proved: a module is missing (without torch: `beside_torch`), there was no time left, or nothing was checked. 0 is both: all was
tried, and all held. `base` and `kineto_cost` are numbers to compare with and prove nothing, so they may be left out; so may
`native` where there is no compiler.
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
PROOFS_S = {
    "facts": 12,
    "cupy": 22,
    "late": 12,
    "golden": 10,
    "refusals": 10,
    "cuda_python": 12,
    "memory": 10,
    "beside_torch": 45,
    "conform": 38,
}
"""The modes that prove something, in their order, and how long each may take: all of them together no longer than `MOST_S`."""
COSTS_S = {"cost": 30, "native": 25, "base": 12, "kineto_cost": 25}
"""The modes that measure, in what time is left."""
LIMITS_S = PROOFS_S | COSTS_S
MOST_S = 172
LEAST_S = 5
"""With less time left a mode is not begun."""
NUMBERS_ONLY = ("base", "kineto_cost")


def main(modes: list[str]) -> int:
    """Run the modes and print the summary; return the exit code."""
    begun = time.monotonic()
    results: dict[str, dict[str, Any]] = {}
    chosen = modes or list(LIMITS_S)
    for mode in chosen:
        left = MOST_S - (time.monotonic() - begun)
        results[mode] = run_mode(mode, min(LIMITS_S[mode], left)) if left > LEAST_S else {"skipped": "no time left"}
        print(f"--- {mode}: {json.dumps(results[mode])}", flush=True)
        not_begun = {one: {"skipped": "not begun"} for one in chosen if one not in results}
        text, code = summary(results | not_begun, time.monotonic() - begun)
        if out := os.environ.get("OUT"):
            (Path(out) / "cupti_smoke.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    return code


def summary(results: dict[str, dict[str, Any]], seconds: float) -> tuple[str, int]:
    """Return what all modes together say, as JSON, and the exit code."""
    failed = [f"{mode}: {said}" for mode, result in results.items() for said in failures(result)]
    unproved = [f"{mode}: {said}" for mode, result in results.items() for said in not_proved(mode, result)]
    if not any(result.get("checks") for result in results.values()):
        unproved.append("nothing was checked")
    about = {
        "ok": not failed and not unproved,
        "failed": failed,
        "not_proved": unproved,
        "seconds": round(seconds, 1),
        "modes": results,
    }
    return json.dumps(about, indent=1), 1 if failed else 2 if unproved else 0


def failures(result: dict[str, Any]) -> list[str]:
    """Return what is wrong in a mode's result."""
    error = [str(result["error"])[-400:]] if "error" in result else []
    return error + [f"{name}: {said}" for name, said in result.get("checks", {}).items() if said is not True]


def not_proved(mode: str, result: dict[str, Any]) -> list[str]:
    """Return why a mode's result proves less than the mode is there for, though nothing failed."""
    facts = result.get("facts", {})
    if mode in NUMBERS_ONLY or (mode == "native" and "not built" in facts):
        return []
    said = [f"{module} is missing ({why})" for module, why in facts.get("missing", {}).items()]
    if "skipped" in result:
        said.append(result["skipped"])
    elif not result.get("checks") and not said:
        said.append("nothing was checked")
    return said


def run_mode(mode: str, limit_s: float) -> dict[str, Any]:
    """Run one mode in a process of its own."""
    return run_program(f"from smoke_tools import run; run({mode!r}, {limit_s})", limit_s)


def run_program(program: str, limit_s: float) -> dict[str, Any]:
    """Run a program that says what it found as `smoke_tools` does; what it said before it hung or died counts."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "plugins/cuda_cupti", ROOT / "tests/gpu")))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH", "")])),
        "KINETO_LOG_LEVEL": "6",
        "PYTHONFAULTHANDLER": "1",
    }
    begun, command = time.monotonic(), [sys.executable, "-c", program]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=limit_s, cwd=ROOT / "tests/gpu", check=False
        )
        said, errors = done.stdout, done.stderr
        ended = f"exit code {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as late:
        said, errors, ended = late.stdout or b"", late.stderr or b"", f"did not end within {limit_s:.0f} s"
    result = last_state(said.decode("utf-8", "replace"))
    told = errors.decode("utf-8", "replace").strip()
    if ended or not result:
        result["error"] = "\n".join(filter(None, (result.get("error"), told[-4000:], ended or "it said nothing")))
    elif told:
        result["stderr"] = told[-1200:]
    result["seconds"] = round(time.monotonic() - begun, 1)
    return result


def last_state(said: str) -> dict[str, Any]:
    """Return the last whole line of JSON, which holds everything before it, too."""
    for line in reversed(said.splitlines()):
        if line.startswith("{"):
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:  # cut off
                continue
            return found
    return {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
