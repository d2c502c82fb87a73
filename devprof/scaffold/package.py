"""`write_package`: the templates of a variant, filled in, in a new directory."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from devprof import __version__
from devprof.contract import CONTRACT_VERSION
from devprof.errors import UsageError
from devprof.scaffold.names import Names

__all__ = ["VARIANTS", "files_of", "write_package"]

_COMMON = {
    ".github/workflows/ci.yml": "common/ci.yml",
    ".gitignore": "common/gitignore",
    "README.md": "common/README.md",
    "demo.py": "common/demo.py",
    "pyproject.toml": "common/pyproject.toml",
    "src/$package/__init__.py": "common/init.py",
    "src/$package/device.py": "python/device.py",
    "src/$package/plugin.py": "python/plugin.py",
    "src/$package/py.typed": "common/py.typed",
    "src/$package/session.py": "python/session.py",
    "src/$package/workload.py": "common/workload.py",
    "tests/conftest.py": "common/conftest.py",
    "tests/test_conformance.py": "common/test_conformance.py",
    "tests/test_profile.py": "common/test_profile.py",
}

_OF_C = {
    "src/$package/csrc/runtime.c": "c/runtime.c",
    "src/$package/csrc/runtime.h": "c/runtime.h",
    "src/$package/device.py": "c/device.py",
    "src/$package/plugin.py": "c/plugin.py",
    "src/$package/sdk.py": "c/sdk.py",
    "src/$package/session.py": "c/session.py",
    "tests/conftest.py": "c/conftest.py",
    "tests/test_sdk.py": "c/test_sdk.py",
}

_OF_TORCH = {
    "demo.py": "torch/demo.py",
    "src/$package/plugin.py": "torch/plugin.py",
    "src/$package/stubs.py": "torch/stubs.py",
    "tests/conftest.py": "torch/conftest.py",
    "tests/test_torch.py": "torch/test_torch.py",
}

VARIANTS: dict[str, dict[str, str]] = {
    "python": _COMMON,
    "c": _COMMON | _OF_C,
    "torch": _COMMON | _OF_TORCH,
}
"""By variant: the template of each file. A file's name is a template too."""

_PACKAGE_DATA = {"python": '"py.typed"', "c": '"py.typed", "csrc/*"', "torch": '"py.typed"'}
"""By variant: files of the package that are no Python."""


def files_of(names: Names, variant: str = "python") -> dict[str, str]:
    """Return the texts of a package's files, by path.

    Args:
        names: what its parts are called.
        variant: a key of `VARIANTS`.

    Raises:
        UsageError: there is no such variant.
    """
    if variant not in VARIANTS:
        raise UsageError(f"there is no variant {variant!r}; expected one of {', '.join(VARIANTS)}")
    values = {
        "dist": names.distribution,
        "package": names.package,
        "torch_device": names.torch_device,
        "devprof_version": __version__,
        "contract_version": str(CONTRACT_VERSION),
        "package_data": _PACKAGE_DATA[variant],
    }
    for part in ("steps", "files"):  # of the README
        values[part] = _filled(f"{variant}/{part}.md", values).rstrip()
    return {Template(path).substitute(values): _filled(source, values) for path, source in VARIANTS[variant].items()}


def _filled(source: str, values: dict[str, str]) -> str:
    text = (files("devprof.scaffold") / "templates" / f"{source}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def write_package(directory: Path, names: Names, variant: str = "python") -> list[Path]:
    """Write a package.

    Args:
        directory: where to; made, with those above it. An empty one is taken as well.
        names: what its parts are called.
        variant: a key of `VARIANTS`.

    Returns:
        The files.

    Raises:
        UsageError: there is no such variant, or something is in the directory.
        OSError: a file cannot be written.
    """
    texts = files_of(names, variant)
    if directory.is_symlink() or (directory.exists() and (not directory.is_dir() or any(directory.iterdir()))):
        raise UsageError(
            f"{directory} is there already, and nothing is overwritten: name another directory with --directory, or remove it"
        )
    for path, text in texts.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    return [directory / path for path in texts]
