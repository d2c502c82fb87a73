"""Random programs on a device whose clock is off; says where the traces differ from the truth.

Its one argument is JSON: the fields of `RuntimeConfig`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from openreg_sim.runtime import Runtime, RuntimeConfig, use_runtime


def main(config: dict[str, Any]) -> None:
    """Run three sessions, each long enough for the clock's drift to show, on a runtime of this configuration."""
    with use_runtime(Runtime(RuntimeConfig(**config))):
        import random_work
        import simland
        import torch  # the device takes the runtime that is there when torch is imported

        def body(seed: int) -> None:
            random_work.run(random_work.generate(seed))
            simland.long_kernel(0)
            torch.openreg.synchronize(0)
            random_work.run(random_work.generate(seed + 100))

        body(0)
        folder = Path(tempfile.mkdtemp(dir="."))
        sessions = [simland.record(lambda seed=seed: body(seed), folder) for seed in range(3)]
        simland.say(
            work=[len(session.trace.work()) for session in sessions],
            disagreements=[simland.disagreements(session) for session in sessions],
            clocks=[session.ledger.clock for session in sessions],
            clean=[session.report.clean for session in sessions],
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
