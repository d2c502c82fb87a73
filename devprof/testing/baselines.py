"""`Baselines`: figures of earlier runs that tests compare with, in a JSON file beside them."""

from __future__ import annotations

import json
from pathlib import Path

from devprof.errors import UsageError

__all__ = ["FILE", "Baselines"]

FILE = "devprof_baselines.json"
"""Name of the file; it belongs into version control."""


class Baselines:
    """Figures by test and name. Where they are being renewed, every comparison holds and is written down."""

    def __init__(self, path: Path, *, renew: bool = False) -> None:
        """Use a file.

        Args:
            path: the file; it need not be there.
            renew: write the figures instead of comparing.
        """
        self._path = path
        self._renew = renew

    def compare(self, key: str, value: float) -> float:
        """Return the figure to compare with.

        Args:
            key: what the figure is of.
            value: what it is now.

        Raises:
            AssertionError: there is none yet.
            UsageError: the file is no JSON object of numbers.
        """
        known = self._read()
        if self._renew:
            known[key] = round(value, 6)
            text = json.dumps(dict(sorted(known.items())), indent=2)
            self._path.write_text(f"{text}\n", encoding="utf-8")
            return value
        if key not in known:
            raise AssertionError(
                f"{self._path.name} has no baseline for {key!r} (it is {value:.3f} now): write it with "
                "`pytest --devprof-renew-baselines`, and commit the file"
            )
        return known[key]

    def _read(self) -> dict[str, float]:
        if not self._path.exists():
            return {}
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{self._path} is no JSON: {error}") from error
        if not isinstance(found, dict) or not all(isinstance(one, int | float) for one in found.values()):
            raise UsageError(f"{self._path} holds something else than numbers by name; renew it")
        return {key: float(value) for key, value in found.items()}
