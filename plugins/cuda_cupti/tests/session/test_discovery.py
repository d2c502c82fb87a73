"""Which libcupti is taken: the first that the driver can work with, told by what the file says it is, and only one."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_cupti import discovery
from cuda_cupti.discovery import Found, find_libcupti
from cuda_cupti.errors import CudaUnavailableError, NoLibraryError

OF_PATHFINDER = discovery._of_pathfinder


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(discovery, "loaded_copies", list)
    monkeypatch.setattr(discovery, "_of_pathfinder", lambda: iter(()))
    monkeypatch.delenv(discovery.PATH_VARIABLE, raising=False)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def _wheel(folder: Path, inside: str = "nvidia/cu13/lib", name: str = "libcupti.so.13") -> Path:
    path = folder / inside / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_file_that_the_variable_names_goes_first(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> None:
    named, other = _wheel(tmp_path / "a"), _wheel(tmp_path / "b")
    nothing_loaded.syspath_prepend(str(tmp_path / "b"))
    nothing_loaded.setenv("DEVPROF_LIBCUPTI", str(named))
    assert find_libcupti() == Found(str(named), "DEVPROF_LIBCUPTI")
    nothing_loaded.delenv("DEVPROF_LIBCUPTI")
    assert find_libcupti() == Found(str(other), f"NVIDIA's wheel in {tmp_path / 'b'}")


def test_a_variable_that_names_nothing_or_a_second_copy_is_refused(
    tmp_path: Path, nothing_loaded: pytest.MonkeyPatch
) -> None:
    nothing_loaded.setenv("DEVPROF_LIBCUPTI", str(tmp_path / "none.so"))
    with pytest.raises(CudaUnavailableError, match="there is no such file"):
        find_libcupti()
    nothing_loaded.setenv("DEVPROF_LIBCUPTI", str(_wheel(tmp_path)))
    nothing_loaded.setattr(discovery, "loaded_copies", lambda: ["/other/libcupti.so.13"])
    with pytest.raises(CudaUnavailableError, match=r"/other/libcupti\.so\.13 is loaded already"):
        find_libcupti()


def test_what_is_loaded_already_is_taken_before_anything_else(
    tmp_path: Path, nothing_loaded: pytest.MonkeyPatch
) -> None:
    _wheel(tmp_path)
    nothing_loaded.syspath_prepend(str(tmp_path))
    nothing_loaded.setattr(discovery, "loaded_copies", lambda: ["/torchs/libcupti.so.13"])
    assert find_libcupti() == Found("/torchs/libcupti.so.13", "loaded already")
    nothing_loaded.setattr(discovery, "loaded_copies", lambda: ["/a/libcupti.so.13", "/b/libcupti.so.13"])
    with pytest.raises(CudaUnavailableError, match="2 copies of libcupti are loaded"):
        find_libcupti()


def test_a_toolkit_and_the_wheel_of_cuda_12_are_found(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> None:
    toolkit = _wheel(tmp_path / "cuda", "extras/CUPTI/lib64")
    nothing_loaded.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    nothing_loaded.setattr(sys, "path", [])
    assert find_libcupti().path == str(toolkit)
    wheel = _wheel(tmp_path / "site", "nvidia/cuda_cupti/lib", "libcupti.so.12")
    nothing_loaded.setattr(sys, "path", [str(tmp_path / "site")])
    assert (find_libcupti().path, find_libcupti().major) == (str(wheel), 12)


def test_copies_are_told_by_their_files_and_not_by_their_mappings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = tmp_path / "maps"
    files = (
        "/a b/libcupti.so.2025.3.1",
        "/a b/libcupti.so.2025.3.1",
        "/x/libcupti.so.13 (deleted)",
        "/x/libcupti_h.so",
        "[heap]",
    )
    lines = [f"7f0{i}000-7f0{i}fff r-xp 0000 08:01 {i}   {file}" for i, file in enumerate(files)]
    maps.write_text("\n".join([*lines, "7f-8f rw-p 0000 00:00 0"]))
    monkeypatch.setattr(discovery, "_MAPS", maps)
    assert discovery.loaded_copies() == ["/a b/libcupti.so.2025.3.1", "/x/libcupti.so.13"]


# -- what fits the driver ---------------------------------------------------------------------------------------------


@pytest.fixture
def both(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> dict[int, str]:
    """Install NVIDIA's wheels of two releases."""
    nothing_loaded.setattr(sys, "path", [str(tmp_path)])
    return {13: str(_wheel(tmp_path)), 12: str(_wheel(tmp_path, "nvidia/cuda_cupti/lib", "libcupti.so.12"))}


@pytest.mark.parametrize(("driver", "taken"), [(0, 13), (12, 12), (13, 13), (14, 13)])
def test_of_two_wheels_the_first_that_the_driver_can_work_with_is_taken(
    both: dict[int, str], driver: int, taken: int
) -> None:
    assert find_libcupti(driver).path == both[taken]


def test_a_file_that_does_not_fit_is_told_only_where_there_is_no_other(
    tmp_path: Path, nothing_loaded: pytest.MonkeyPatch
) -> None:
    nothing_loaded.setattr(sys, "path", [str(tmp_path)])
    nothing_loaded.setattr(discovery, "_loader_has", lambda name: False)
    with pytest.raises(NoLibraryError, match="`pip install nvidia-cuda-cupti-cu12`"):
        find_libcupti(12)
    wheel, found = _wheel(tmp_path), find_libcupti(12)
    fits = [found.fits(driver) for driver in (0, 12, 13)]
    assert (found.path, found.major, fits) == (str(wheel), 13, [True, False, True])


def test_the_loader_is_not_asked_for_what_does_not_fit_because_to_ask_is_to_load(
    nothing_loaded: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    nothing_loaded.setattr(sys, "path", [])
    nothing_loaded.setattr(discovery, "_in_folder", lambda folder, how: iter(()))
    nothing_loaded.setattr(discovery, "_loader_has", lambda name: bool(asked.append(name)) or True)
    assert (find_libcupti(12).path, asked) == ("libcupti.so.12", ["libcupti.so.12"])


def test_the_name_in_the_file_goes_before_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "libcupti.so.12"
    monkeypatch.setattr(discovery, "soname", lambda path: "libcupti.so.13")
    assert Found(str(path), "a test").major == 13
    assert Found("libcupti.so.12", "the loader's path").major == 12  # no file of the current folder
    monkeypatch.setattr(discovery, "soname", lambda path: "")
    assert (Found(str(path), "a test").major, Found("/x/libcupti.so.2025.3.1", "a test").major) == (12, 0)


# -- cuda-pathfinder --------------------------------------------------------------------------------------------------


def _pathfinder(nothing_loaded: pytest.MonkeyPatch, load: Any) -> None:
    module = SimpleNamespace(load_nvidia_dynamic_lib=load)
    nothing_loaded.setitem(sys.modules, "cuda.pathfinder", module)  # type: ignore[arg-type]
    nothing_loaded.setattr(discovery, "_of_pathfinder", OF_PATHFINDER)
    nothing_loaded.setattr(sys, "path", [])


@pytest.mark.parametrize(
    ("error", "level"), [(SystemExit(3), "WARNING"), (GeneratorExit(), "WARNING"), (RuntimeError("none"), "INFO")]
)
def test_a_pathfinder_that_fails_in_whatever_way_is_left_out_with_a_word(
    tmp_path: Path,
    nothing_loaded: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    level: str,
) -> None:
    def load(name: str) -> Any:
        raise error

    _pathfinder(nothing_loaded, load)
    toolkit = _wheel(tmp_path, "extras/CUPTI/lib64")
    nothing_loaded.setenv("CUDA_HOME", str(tmp_path))
    caplog.set_level(logging.INFO)
    assert find_libcupti().path == str(toolkit)
    said = f"cuda-pathfinder gave no libcupti: {type(error).__name__}: {error}"
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [(level, said)]


def test_a_ctrl_c_in_pathfinder_is_a_ctrl_c(nothing_loaded: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise KeyboardInterrupt

    _pathfinder(nothing_loaded, load)
    with pytest.raises(KeyboardInterrupt):
        find_libcupti()


def test_what_pathfinder_has_loaded_is_taken_though_it_does_not_fit_because_there_cannot_be_two(
    tmp_path: Path, nothing_loaded: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def load(name: str) -> Any:
        loaded.append("/conda/libcupti.so.13")
        return SimpleNamespace(abs_path=loaded[0])

    _pathfinder(nothing_loaded, load)
    _wheel(tmp_path, "extras/CUPTI/lib64", "libcupti.so.12")
    nothing_loaded.setenv("CUDA_HOME", str(tmp_path))
    nothing_loaded.setattr(discovery, "loaded_copies", lambda: loaded)
    assert find_libcupti(12) == Found("/conda/libcupti.so.13", "cuda-pathfinder")


# -- what the variable names, and what `sys.path` holds ----------------------------------------------------------------


def test_a_bare_name_is_a_file_of_the_current_folder(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> None:
    path = _wheel(tmp_path, ".", "libcupti.so.13")
    nothing_loaded.chdir(tmp_path)
    nothing_loaded.setenv("DEVPROF_LIBCUPTI", "libcupti.so.13")
    assert find_libcupti() == Found(str(path), "DEVPROF_LIBCUPTI")


def test_a_directory_is_called_a_directory(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> None:
    nothing_loaded.setenv("DEVPROF_LIBCUPTI", str(tmp_path))
    with pytest.raises(CudaUnavailableError, match="and that is a directory; expected the path"):
        find_libcupti()


def test_folders_that_cannot_be_looked_into_are_passed_by(tmp_path: Path, nothing_loaded: pytest.MonkeyPatch) -> None:
    wheel = _wheel(tmp_path)
    nothing_loaded.setattr(sys, "path", ["x" * 5000, "a\0b", 7, None, b"x", str(tmp_path)])
    assert find_libcupti().path == str(wheel)
