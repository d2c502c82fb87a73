"""A first version of a plugin's package, written for its author.

Job: turn a name into a small installable package that works at once, on a fake device.
In: a name, a variant, and the templates beside this file.
Out: files in a directory that was not there or was empty.
Never: overwrites a file, or imports what it writes.
"""

from devprof.scaffold.names import Names
from devprof.scaffold.package import VARIANTS, files_of, write_package

__all__ = ["VARIANTS", "Names", "files_of", "write_package"]
