"""The page that explains every check, made from the table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from devprof.testing.conformance.catalogue import CHECKS
from devprof.testing.conformance.needs import NEEDS
from devprof.testing.conformance.table import DIRECT, HOSTED, Area, Check

__all__ = ["explanation", "sections"]


def sections(checks: Iterable[Check] = CHECKS) -> str:
    """Return the sections of all checks as Markdown, by area."""
    return "\n".join(_lines(tuple(checks)))


def explanation(check: Check) -> str:
    """Return what the page says of one check, as plain text: a user of an installed devprof has no page."""
    parts = (
        f"{check.number} {check.promise}",
        f"What it does: {check.how}",
        f"Where it fails: {check.cause}",
        f"Tried: {_tried(check)}. Needs: {_needs(check)}.",
    )
    return "\n".join(textwrap.fill(part, 100, subsequent_indent="  ") for part in parts)


def _lines(checks: tuple[Check, ...]) -> Iterator[str]:
    for area in Area:
        of_area = [check for check in checks if check.area is area]
        if of_area:
            yield f"## {area.value}\n"
            for check in of_area:
                yield from _section(check)


def _section(check: Check) -> Iterator[str]:
    # the anchor is the number alone, so that a link stays when words change
    yield f'### <a id="{check.number.lower()}"></a>{check.number} {check.name.replace("_", " ")}\n'
    yield f"**{check.promise}**\n"
    yield f"What it does: {check.how}\n"
    yield f"Where it fails: {check.cause}\n"
    yield f"Tried: {_tried(check)}. Needs: {_needs(check)}.\n"


def _tried(check: Check) -> str:
    if check.hosts == HOSTED:
        return "in a profile of devprof's own host, and in one of torch's"
    return "without torch" if check.hosts == DIRECT else "under torch"


def _needs(check: Check) -> str:
    words = [NEEDS[need][0] for need in check.needs]
    return "; ".join(words) or "nothing but the plugin"
