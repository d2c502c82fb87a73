"""The cache is private, and its key changes with everything that changes the library."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native import cache_dir, find, library_path
from devprof.native.cache import build_info, checksum_of, checksum_path
from tests.unit.native.conftest import TINY, FakeTorch


def _placed(spec: NativeBuild) -> Path:
    """Put a file where the library of `spec` would be."""
    path = library_path(spec)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o700)
    checksum_path(path).write_text(checksum_of(path))
    return path


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `path` another user's."""
    if os.geteuid() == 0:
        os.chown(path, 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)


# -- where ------------------------------------------------------------------------------------------------------------


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DEVPROF_CACHE", "~/here")
    assert cache_dir() == tmp_path / "here"


def test_a_relative_choice_is_relative_to_the_present_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEVPROF_CACHE", "here")
    assert cache_dir() == tmp_path / "here"


@pytest.mark.parametrize(("xdg", "wanted"), [("/x/cache", "/x/cache/devprof"), ("rel", None), ("", None)])
def test_without_a_choice_it_is_in_the_xdg_cache(
    xdg: str, wanted: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEVPROF_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == (Path(wanted) if wanted else tmp_path / ".cache/devprof")


def test_a_user_without_a_home_is_told_to_choose_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_CACHE", "~no-such-user/devprof")
    with pytest.raises(BuildError, match="set DEVPROF_CACHE to a directory of your own"):
        cache_dir()


# -- the key ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def spec(tmp_path: Path) -> NativeBuild:
    for name in ("a.cpp", "b.cpp", "c.h"):
        (tmp_path / name).write_text(name)
    return NativeBuild("lib", (tmp_path / "a.cpp", tmp_path / "b.cpp"), headers=(tmp_path / "c.h",), needs_torch=False)


def test_the_file_is_named_after_the_library_and_its_key(spec: NativeBuild, cache: Path) -> None:
    path = library_path(spec)
    assert (path.parent, path.name.startswith("lib-"), path.suffix) == (cache, True, ".so")
    assert path == library_path(dataclasses.replace(spec, description="other words", include_dirs=(cache,)))


def test_everything_that_changes_the_library_changes_the_key(
    spec: NativeBuild, tmp_path: Path, fake_torch: FakeTorch
) -> None:
    fake_torch("2.13.0")
    a, b, c = (*spec.sources, *spec.headers)
    changes: list[dict[str, Any]] = [
        {},
        {"flags": ("-g",)},
        {"flags": ("-g", "-O0")},
        {"flags": ("-g-O0",)},
        {"sources": (b, a)},
        {"sources": (a,)},
        {"sources": (a,), "headers": (b, c)},
        {"sources": (a, b, c), "headers": ()},
        {"headers": ()},
        {"needs_python": True},
        {"needs_torch": True},
        {"name": "lib2"},
    ]
    paths = [library_path(dataclasses.replace(spec, **change)) for change in changes]
    a.write_text("a.cpp changed")
    paths.append(library_path(spec))
    c.write_text("c.h changed")
    paths.append(library_path(spec))
    assert len(set(paths)) == len(paths)


def test_another_torch_has_another_library(spec: NativeBuild, fake_torch: FakeTorch) -> None:
    from devprof.native import torch_facts

    needy = dataclasses.replace(spec, needs_torch=True)
    root, found = fake_torch("2.13.0"), []
    for version, commit in (("2.13.0", "abc"), ("2.13.0", "def"), ("2.13.1", "def")):
        (root / "version.py").write_text(f"__version__ = '{version}'\ngit_version = '{commit}'\n")
        torch_facts.cache_clear()
        found.append((build_info(needy), library_path(needy).name))
    assert [info for info, _ in found] == [
        "lib | torch 2.13.0 abc",
        "lib | torch 2.13.0 def",
        "lib | torch 2.13.1 def",
    ]
    assert len({name for _, name in found}) == 3


@pytest.mark.parametrize("name", ["", "../lib", "a/b", 'x"y', "x y", "lib\n", "ключ"])
def test_a_name_that_cannot_be_a_files_is_refused(name: str, spec: NativeBuild) -> None:
    with pytest.raises(BuildError, match=r"expected letters, digits, '_', '.' and '-' only"):
        library_path(dataclasses.replace(spec, name=name))


def test_a_source_that_is_not_there_means_an_incomplete_package(spec: NativeBuild) -> None:
    spec.headers[0].unlink()
    with pytest.raises(BuildError, match=r"a source of 'lib' cannot be read: .*c\.h.*its package is incomplete"):
        find(spec)


# -- privacy ----------------------------------------------------------------------------------------------------------


def test_a_library_that_was_not_built_is_not_found(tiny: NativeBuild, cache: Path) -> None:
    assert find(tiny) is None
    cache.mkdir(mode=0o700)
    assert find(tiny) is None


def test_a_library_without_a_checksum_counts_as_not_built(tiny: NativeBuild) -> None:
    checksum_path(_placed(tiny)).unlink()
    assert find(tiny) is None


def test_a_private_library_is_found(tiny: NativeBuild) -> None:
    path = _placed(tiny)
    assert find(tiny) == path


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("part", ["directory", "file", "checksum"])
def test_what_others_may_write_to_is_not_loaded(part: str, mode: int, tiny: NativeBuild) -> None:
    path = _placed(tiny)
    open_part = {"file": path, "directory": path.parent, "checksum": checksum_path(path)}[part]
    open_part.chmod(mode)
    with pytest.raises(
        BuildError, match=r"expected user .* and no write access for others. Remove it, or set DEVPROF_CACHE"
    ) as caught:
        find(tiny)
    assert str(open_part) in str(caught.value)


@pytest.mark.parametrize("part", ["directory", "file", "checksum"])
def test_what_another_user_owns_is_not_loaded(part: str, tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _placed(tiny)
    _give_away({"file": path, "directory": path.parent, "checksum": checksum_path(path)}[part], monkeypatch)
    with pytest.raises(BuildError, match="is owned by user"):
        find(tiny)


def test_a_cache_of_root_may_be_used_by_everybody(tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make files of root")
    path = _placed(tiny)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert find(tiny) == path


def test_a_cache_that_is_a_file_is_said_to_be_unusable(tiny: NativeBuild, cache: Path) -> None:
    cache.write_text(TINY)
    with pytest.raises(BuildError, match=r"the cache cannot be read: .*set DEVPROF_CACHE"):
        find(tiny)
