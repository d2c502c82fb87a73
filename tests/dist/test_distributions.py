"""What `make dist` builds is whole, and works in a bare environment without torch.

Needs a package index (pip installs numpy, pluggy, rich and typer); leave it out with `make test ARGS='-m "not dist"'`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = [pytest.mark.dist, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SOURCES = {"devprof": ROOT, "openreg_sim": ROOT / "plugins/openreg_sim", "cuda_cupti": ROOT / "plugins/cuda_cupti"}
DISTRIBUTIONS = {
    "devprof": "devprof",
    "openreg_sim": "devprof_openreg_sim",
    "cuda_cupti": "devprof_cuda_cupti",
}
NOT_COPIED = (".git", ".venv*", "*.egg-info", "build", "dist", ".*_cache", "__pycache__", ".hypothesis", "shared")


def _run(command: Sequence[str | Path], **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=500, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels and sdists, built by `make dist` from a copy, so that nothing is left in the checkout."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    pytest.importorskip("build", reason="distributions are built with it")
    copy = tmp_path_factory.mktemp("source") / "devprof"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    # the environment that runs the tests is ready: its stamp is not looked at (-o)
    _run(["make", "-C", copy, "-o", f"{sys.prefix}/.ready", "dist", f"VENV={sys.prefix}"])
    return copy / "dist"


@pytest.fixture(scope="session")
def bare(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a fresh environment with the three wheels and what they ask for."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=True)
    pip = [home / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, *sorted(dist.glob("*.whl"))])
    return home / "bin"


def _native_sources(package: str) -> set[str]:
    folder = SOURCES[package]
    found = (path for suffix in ("*.cpp", "*.h") for path in (folder / package).rglob(suffix))
    return {str(path.relative_to(folder)) for path in found}


def _wheel(dist: Path, package: str) -> Path:
    (wheel,) = dist.glob(f"{DISTRIBUTIONS[package]}-*.whl")
    return wheel


def test_one_wheel_and_one_sdist_of_each(dist: Path) -> None:
    names = [path.name.split("-")[0] for path in dist.iterdir()]
    assert sorted(names) == sorted([*DISTRIBUTIONS.values()] * 2)


@pytest.mark.parametrize("package", DISTRIBUTIONS)
def test_a_wheel_is_pure_and_holds_one_package_with_its_types_and_native_sources(dist: Path, package: str) -> None:
    wheel = _wheel(dist, package)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.endswith("-py3-none-any.whl")
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {package}
    assert {f"{package}/py.typed", *_native_sources(package)} - names == set()
    assert [name for name in names if name.endswith(".so")] == []
    assert any(name.endswith("/licenses/LICENSE") for name in names)


@pytest.mark.parametrize("package", DISTRIBUTIONS)
def test_an_sdist_can_be_built_from(dist: Path, package: str) -> None:
    (sdist,) = dist.glob(f"{DISTRIBUTIONS[package]}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "pyproject.toml", f"{package}/__init__.py", *_native_sources(package)}
    assert wanted - names == set()


def test_everything_but_torch_is_there(bare: Path) -> None:
    listed = _run([bare / "python", "-m", "pip", "list", "--format=freeze"]).split()
    names = {line.partition("==")[0].lower().replace("_", "-") for line in listed}
    assert {"devprof", "devprof-openreg-sim", "devprof-cuda-cupti", "numpy", "pluggy", "rich", "typer"} - names == set()
    assert "torch" not in names


def test_every_module_but_torchs_imports_without_torch(bare: Path, tmp_path: Path) -> None:
    code = """
import importlib, pkgutil
for name in ("devprof", "openreg_sim", "cuda_cupti"):
    package = importlib.import_module(name)
    print(package.__name__, package.__version__)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in ("torch", "__main__"):
            importlib.import_module(f"{name}.{module.name}")
"""
    printed = _run([bare / "python", "-c", code], cwd=tmp_path)
    assert [line.split()[0] for line in printed.splitlines()] == ["devprof", "openreg_sim", "cuda_cupti"]


def test_the_entry_points_are_those_that_torch_and_devprof_look_for(bare: Path, tmp_path: Path) -> None:
    code = """
from importlib.metadata import entry_points
for group in ("console_scripts", "torch.backends", "devprof.plugins"):
    for point in sorted(entry_points(group=group)):
        if point.dist.name.startswith("devprof"):
            print(group, point.name, point.value)
"""
    assert _run([bare / "python", "-c", code], cwd=tmp_path).splitlines() == [
        "console_scripts devprof devprof.cli:main",
        "torch.backends devprof devprof.torch.autoload:arm",
        "torch.backends openreg openreg_sim.autoload:arm",
        "devprof.plugins openreg openreg_sim.plugin",
    ]


def test_doctor_says_in_a_bare_environment_that_torch_is_missing(bare: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [bare / "devprof", "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert "torch is not installed" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr


def test_plugins_lists_the_simulated_device_without_torch(bare: Path, tmp_path: Path) -> None:
    assert "openreg" in _run([bare / "devprof", "plugins"], cwd=tmp_path)


def test_a_program_without_torch_is_profiled_in_an_environment_that_has_none(bare: Path, tmp_path: Path) -> None:
    printed = _run([bare / "python", ROOT / "examples/without_torch.py"], cwd=tmp_path)
    assert "openreg: produced 7 = emitted 7 + dropped 0 + rejected 0; 3 of 3 device records linked" in printed
    said = _run([bare / "devprof", "validate", "--fail-on", "warning", "without_torch.json.gz"], cwd=tmp_path)
    assert said == "without_torch.json.gz: no findings\n"
