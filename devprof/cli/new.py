"""``devprof new``: a package for a plugin that is about to be written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devprof.cli.output import Json, print_json
from devprof.scaffold import VARIANTS, Names, write_package

__all__ = ["new"]


def new(
    name: Annotated[str, typer.Argument(help="What pip and users will call the plugin, such as my-npu.")],
    directory: Annotated[
        Path | None, typer.Option("--directory", "-d", help="Where to write it: new or empty. Default: ./NAME.")
    ] = None,
    variant: Annotated[str, typer.Option(help=f"What the device's SDK is like: {', '.join(VARIANTS)}.")] = "python",
    torch_device: Annotated[
        str | None, typer.Option(help="The name of your torch backend, if it is not that of the package.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write an installable package with a plugin, a fake device and tests that pass.

    Variants: python, for an SDK that Python can call; c, for one in C, with ctypes; torch, for a device with a torch backend
    (PrivateUse1), with events for torch's legacy profiler. Nothing is overwritten.
    """
    names = Names.of(name, torch_device)
    target = Path(names.distribution) if directory is None else directory
    written = write_package(target, names, variant)
    if as_json:
        print_json({"directory": str(target.resolve()), "files": [str(path) for path in written]})
        return
    typer.echo(
        f'{target}: {len(written)} files. Next:\n\n  cd {target}\n  pip install -e ".[test]"\n  python -m pytest\n'
        "  python demo.py\n"
    )
    typer.echo("The device is a fake one. README.md says what to replace, in which order.")
