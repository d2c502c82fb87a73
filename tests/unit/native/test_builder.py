"""A build is whole or not there, happens once, and says what the compiler said."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native import build, find, include_dir, library_path, load, missing, torch_facts
from devprof.native.cache import checksum_path
from devprof.native.facts import compiler, python_include
from tests.unit.native.conftest import TINY, Compiler, FakeTorch

COUNTING = """\
    #!/bin/sh
    echo called >> "$COUNT_FILE"
    exec {compiler} "$@"
    """


@pytest.fixture
def calls(tmp_path: Path, fake_compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line per call of the compiler, which works."""
    found = compiler()
    if found is None:
        pytest.skip("needs a C++ compiler")
    count = tmp_path / "calls"
    count.touch()
    monkeypatch.setenv("COUNT_FILE", str(count))
    fake_compiler(COUNTING.format(compiler=" ".join(found)))
    return count


def _n_calls(calls: Path) -> int:
    return len(calls.read_text().splitlines())


@pytest.mark.usefixtures("needs_compiler")
def test_a_source_becomes_a_library_that_works(tiny: NativeBuild, cache: Path) -> None:
    path = build(tiny)
    assert path == library_path(tiny) == find(tiny)
    assert path.stat().st_mode & 0o777 == 0o700
    assert cache.stat().st_mode & 0o777 == 0o700
    assert load(tiny).answer() == 42


def test_what_is_built_is_not_built_again_unless_asked(tiny: NativeBuild, calls: Path) -> None:
    build(tiny)
    build(tiny)
    assert _n_calls(calls) == 1
    build(tiny, force=True)
    assert _n_calls(calls) == 2


def test_a_changed_source_is_built_again_beside_the_old_library(tiny: NativeBuild, calls: Path) -> None:
    old = build(tiny)
    tiny.sources[0].write_text(TINY.replace("42", "43"))
    assert build(tiny) != old
    assert (old.exists(), load(tiny).answer(), _n_calls(calls)) == (True, 43, 2)


def test_what_is_built_needs_no_compiler_and_no_write_access(
    tiny: NativeBuild, calls: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(tiny)
    library_path(tiny).with_suffix(".lock").unlink()
    monkeypatch.setenv("CXX", "no-such-c++")
    assert build(tiny) == path
    assert set(cache.iterdir()) == {path, checksum_path(path)}


def test_without_a_compiler_the_error_says_so_and_nothing_is_made(
    tiny: NativeBuild, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=r"^cannot build 'tiny': no C\+\+ compiler was found"):
        build(tiny)
    assert not cache.exists()


@pytest.mark.usefixtures("needs_compiler")
def test_a_failed_build_shows_the_compilers_last_lines_and_leaves_no_library(tiny: NativeBuild, cache: Path) -> None:
    errors = "\n".join(f"#error number {i} of many" for i in range(60))
    tiny.sources[0].write_text(errors)
    with pytest.raises(BuildError, match=r"building 'tiny' failed with exit code 1: .* said\n") as caught:
        build(tiny)
    assert "number 59 of many" in str(caught.value)
    assert "number 0 of many" not in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 26
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_a_compiler_that_says_nothing_readable_is_quoted_all_the_same(
    tiny: NativeBuild, fake_compiler: Compiler
) -> None:
    fake_compiler("#!/bin/sh\nprintf 'no \\377 text'\nexit 3\n")
    with pytest.raises(BuildError, match=r"exit code 3.*\nno \ufffd text$"):
        build(tiny)


def test_a_compiler_that_writes_half_a_library_and_dies_leaves_none(
    tiny: NativeBuild, fake_compiler: Compiler, cache: Path
) -> None:
    fake_compiler('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho half > "$2"\nkill -9 $$\n')
    with pytest.raises(BuildError, match="exit code -9"):
        build(tiny)
    assert find(tiny) is None
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


@pytest.mark.parametrize("script", ["not a program", "#!/no/such/interpreter\n"])
def test_a_compiler_that_cannot_be_run_is_an_error_of_the_build(
    script: str, tiny: NativeBuild, fake_compiler: Compiler
) -> None:
    fake_compiler(script)
    with pytest.raises(BuildError, match="cannot build 'tiny' into"):
        build(tiny)


def test_a_compiler_that_makes_nothing_is_an_error_of_the_build(tiny: NativeBuild, fake_compiler: Compiler) -> None:
    fake_compiler("#!/bin/sh\nexit 0\n")
    with pytest.raises(BuildError, match="cannot build 'tiny' into"):
        build(tiny)
    assert find(tiny) is None


def test_the_command_has_everything_that_the_build_asks_for(
    tiny: NativeBuild, fake_compiler: Compiler, tmp_path: Path, fake_torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fake_torch("2.13.0")
    path = fake_compiler('#!/bin/sh\nprintf "%s\\n" "$@" >&2\nexit 1\n')
    monkeypatch.setenv("CXX", f"{path} first")
    monkeypatch.setattr("devprof.native.builder._LINES_SHOWN", 1000)
    spec = dataclasses.replace(tiny, needs_torch=True, include_dirs=(tmp_path / "mine",), flags=("-DX='a b'",))
    with pytest.raises(BuildError) as caught:
        build(spec)
    said = str(caught.value).splitlines()[1:]
    assert said[0] == "first"
    assert '-DDEVPROF_BUILD_INFO="tiny | torch 2.13.0 abc"' in said
    assert [said[i + 1] for i, word in enumerate(said) if word == "-isystem"] == [
        str(tmp_path / "mine"),
        str(include_dir()),
        *(str(root / "include" / part) for part in ("", "torch/csrc/api/include", "kineto")),
    ]
    for word in ("-std=c++20", "-DUSE_KINETO", "-DX='a b'", str(tiny.sources[0]), f"-L{root}/lib", "-ltorch_cpu"):
        assert word in said


@pytest.mark.usefixtures("needs_compiler")
def test_devprofs_header_is_found_without_asking_for_it(tiny: NativeBuild) -> None:
    tiny.sources[0].write_text('#include "devprof/correlation.h"\n' + TINY)
    assert build(tiny).is_file()


@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.parametrize("language", [("c", "c99"), ("c++", "c++11")])
def test_devprofs_header_is_c_and_cpp(language: tuple[str, str], tmp_path: Path) -> None:
    source = tmp_path / "vendor.c"
    source.write_text('#include "devprof/correlation.h"\nint version = DEVPROF_CORRELATION_VERSION;\n')
    flags = ["-x", language[0], f"-std={language[1]}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        [*(compiler() or ()), *flags, f"-I{include_dir()}", str(source)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("needs_compiler")
def test_the_installed_torch_is_linked_and_named_in_the_library(tiny: NativeBuild) -> None:
    spec, torch = dataclasses.replace(tiny, needs_torch=True), torch_facts()
    reason = missing(spec)
    if torch is None or reason is not None:
        pytest.skip(reason or "needs torch")
    content = build(spec).read_bytes()
    assert torch.build_info.encode() in content
    assert str(torch.root / "lib").encode() in content  # where the loader finds libtorch


@pytest.mark.usefixtures("needs_compiler")
def test_a_library_that_touches_the_interpreter_is_bound_to_its_abi(tiny: NativeBuild) -> None:
    if python_include() is None:
        pytest.skip("needs Python's headers")
    tiny.sources[0].write_text("#include <Python.h>\n" + TINY)
    soabi = str(sysconfig.get_config_var("SOABI"))
    assert soabi.encode() in build(dataclasses.replace(tiny, needs_python=True)).read_bytes()


# -- the cache --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_nothing_is_built_into_a_cache_that_others_may_write_to(
    mode: int, tiny: NativeBuild, cache: Path, calls: Path
) -> None:
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(BuildError, match="no write access for others"):
        build(tiny)
    assert _n_calls(calls) == 0


def test_a_cache_that_cannot_be_made_is_said(
    tiny: NativeBuild, tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVPROF_CACHE", "/proc/no/cache/here")
    with pytest.raises(BuildError, match=r"cannot build 'tiny' into /proc/no/cache/here: .*; set DEVPROF_CACHE"):
        build(tiny)


def test_a_generous_umask_does_not_make_the_library_public(tiny: NativeBuild, calls: Path) -> None:
    before = os.umask(0)
    try:
        build(tiny)
        assert find(tiny) is not None
    finally:
        os.umask(before)


def test_processes_that_build_at_the_same_time_build_once(tiny: NativeBuild, calls: Path, cache: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from devprof.contract import NativeBuild; from devprof.native import *\n"
        "spec = NativeBuild('tiny', (Path(sys.argv[1]),), needs_torch=False)\n"
        "print('ready', flush=True); build(spec); print(load(spec).answer(), flush=True)"
    )
    cache.mkdir(mode=0o700)
    with library_path(tiny).with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # all of them find nothing, then wait here
        command = [sys.executable, "-c", program, str(tiny.sources[0])]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        ready = [child.stdout.readline() for child in started if child.stdout]
    answers = [child.communicate(timeout=60)[0] for child in started]
    assert (ready, answers, _n_calls(calls)) == (["ready\n"] * 3, ["42\n"] * 3, 1)
