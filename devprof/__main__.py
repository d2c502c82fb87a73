"""``python -m devprof``: the same as the ``devprof`` command."""

from devprof.cli import main

if __name__ == "__main__":
    main()
