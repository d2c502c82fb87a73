"""The page of faults has the tables that the tests of faults run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.faults.matrix import (
    CELLS,
    CONDITIONS,
    EXCEPTIONS,
    FAULTS,
    FILES,
    FINDING,
    HOOKS,
    HOSTS,
    STUBS,
    FileCell,
    found_cell,
    stub_cell,
)

PAGE = Path(__file__).parents[2] / "docs/faults.md"
BEGIN, END = "<!-- made from the tests: make snapshot -->\n", "<!-- end of what is made from the tests -->\n"


def _made() -> str:
    return "\n".join([*_hooks(), "", *_found(), "", *_stubs(), "", *_files(), ""])


def _hooks() -> Iterator[str]:
    yield "## Hooks that misbehave\n"
    yield "Under both hosts, torch and devprof itself; `flush_trace` is called by devprof's own host only. Where not all of the"
    yield "plugin's own records are kept, the cell says so.\n"
    yield from (f"- **{fault}**: {says}" for fault, says in FAULTS.items())
    yield f"\n| hook | {' | '.join(FAULTS)} |"
    yield "|---" * (len(FAULTS) + 1) + "|"
    for hook in HOOKS:
        yield f"| `{hook}` | {' | '.join(_both_hosts(hook, fault) for fault in FAULTS)} |"


def _both_hosts(hook: str, fault: str) -> str:
    words = {host: str(CELLS[hook, fault, host]) for host in HOSTS if (hook, fault, host) in CELLS}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{host}: {word}" for host, word in words.items())


def _found() -> Iterator[str]:
    yield "## Hooks that misbehave while plugins are found\n"
    yield 'Under both hosts. "left out": one warning names the plugin, and it takes part in no session of the process.\n'
    yield f"| what | {' | '.join(FAULTS)} |"
    yield "|---" * (len(FAULTS) + 1) + "|"
    for hook in FINDING:
        what = hook if " " in hook else f"`{hook}`"
        yield f"| {what} | {' | '.join(found_cell(hook, fault).value for fault in FAULTS)} |"


def _stubs() -> Iterator[str]:
    yield "## Stubs that misbehave\n"
    yield "Under torch's legacy profiler, the only one that calls them. One warning names the plugin and the stub, all else"
    yield 'of the profile is whole, and the stub is asked again. "no event": the op has no device time; "not done": its work.\n'
    yield f"| stub | {' | '.join(FAULTS)} |"
    yield "|---" * (len(FAULTS) + 1) + "|"
    for stub in STUBS:
        yield f"| `{stub}` | {' | '.join(stub_cell(stub, fault).value for fault in FAULTS)} |"


def _files() -> Iterator[str]:
    yield "## Files that cannot be written\n"
    yield "A file is written beside its name and then renamed. In every cell an earlier file of that name is untouched, and"
    yield "nothing is left in the folder unless it says so. Where the file system has no files without a name (`O_TMPFILE`),"
    yield "as NFS has not, a process that is killed leaves a hidden `.NAME.*.part`. The table is tried with a limit on the size"
    yield 'of files; the system\'s words for a disk that is really full are "No space left on device".\n'
    yield f"| file | written by | {' | '.join(CONDITIONS)} |"
    yield "|---" * (len(CONDITIONS) + 2) + "|"
    for name, by in FILES.items():
        yield f"| `{name}` | {by} | {' | '.join(str(cell) for cell in _of_file(name))} |"


def _of_file(name: str) -> Iterator[FileCell]:
    yield from (EXCEPTIONS.get((name, condition), cell) for condition, cell in CONDITIONS.items())


def test_the_page_has_what_the_tests_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{_made()}\n{END}{after}"
    if os.environ.get("RENEW_SNAPSHOTS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "meant to change? `make snapshot`"
