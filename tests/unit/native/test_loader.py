"""Only a library that says it was made for this environment is loaded; every refusal is one sentence."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native import build, library_path, load
from devprof.native.cache import checksum_of, checksum_path
from tests.unit.native.conftest import TINY

pytestmark = pytest.mark.usefixtures("needs_compiler")

INFO = "return DEVPROF_BUILD_INFO;"


def test_a_library_that_was_not_built_says_how_to_build_it(tiny: NativeBuild) -> None:
    with pytest.raises(BuildError, match=r"'tiny' has not been built for this environment; run `devprof build tiny`$"):
        load(tiny)


def test_a_library_that_cannot_be_built_says_why(tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-c++")
    with pytest.raises(BuildError, match=r"it cannot be built here: CXX is set to 'no-such-c\+\+', and no such"):
        load(tiny)


def test_a_library_made_for_something_else_is_refused_with_both_names(tiny: NativeBuild) -> None:
    other = dataclasses.replace(tiny, name="other")
    shutil.copy(build(other), library_path(tiny))
    checksum_path(library_path(tiny)).write_text(checksum_of(library_path(tiny)))
    with pytest.raises(
        BuildError, match=r"was built for \[other\], this process runs \[tiny\]; remove it and build it"
    ):
        load(tiny)


@pytest.mark.parametrize(
    ("body", "found"),
    [(INFO.replace("DEVPROF_BUILD_INFO", "0"), "nothing"), (INFO.replace("DEVPROF_BUILD_INFO", r'"\xff"'), "\ufffd")],
)
def test_a_library_with_an_unreadable_info_is_refused(body: str, found: str, tiny: NativeBuild) -> None:
    tiny.sources[0].write_text(TINY.replace(INFO, body))
    build(tiny)
    with pytest.raises(BuildError, match=rf"was built for \[{found}\]"):
        load(tiny)


def test_a_library_without_an_info_is_refused(tiny: NativeBuild) -> None:
    tiny.sources[0].write_text(TINY.replace("devprof_build_info", "another_name"))
    build(tiny)
    with pytest.raises(BuildError, match=r"cannot be loaded: .*devprof_build_info"):
        load(tiny)


def test_a_c_file_is_compiled_as_cpp(tiny: NativeBuild, tmp_path: Path) -> None:
    source = tmp_path / "tiny.c"
    source.write_text(TINY)
    spec = dataclasses.replace(tiny, sources=(source,))
    build(spec)
    assert load(spec).answer() == 42


def test_a_damaged_file_is_refused(tiny: NativeBuild) -> None:
    path = build(tiny)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BuildError, match=r"is not what was built: its content has changed since"):
        load(tiny)


def test_a_library_that_somebody_changed_is_refused_before_it_runs(tiny: NativeBuild) -> None:
    path = build(tiny)
    path.write_bytes(build(dataclasses.replace(tiny, name="other")).read_bytes())
    with pytest.raises(BuildError, match=r"is not what was built: .* Remove it, and build it again"):
        load(tiny)


def test_a_file_that_is_no_library_is_refused(tiny: NativeBuild) -> None:
    path = build(tiny)
    path.write_bytes(b"no library")
    checksum_path(path).write_text(checksum_of(path))
    with pytest.raises(BuildError, match=r"cannot be loaded: .*file"):
        load(tiny)


def test_a_library_that_needs_what_is_not_there_is_refused(tiny: NativeBuild) -> None:
    tiny.sources[0].write_text(TINY + 'extern "C" int missing_symbol(); EXPORT int use() { return missing_symbol(); }')
    build(dataclasses.replace(tiny, flags=("-Wl,-z,now",)))
    with pytest.raises(BuildError, match=r"cannot be loaded: .*missing_symbol"):
        load(dataclasses.replace(tiny, flags=("-Wl,-z,now",)))
