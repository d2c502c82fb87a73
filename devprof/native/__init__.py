"""Native libraries, built on the user's machine and found again.

Job: build a `NativeBuild` against the installed torch, keep it in a private cache, refuse what does not fit.
In: sources that a package carries, the installed torch's headers, a compiler.
Out: the path or handle of a shared library, or one sentence that says what is missing.
Never: imports torch, or builds during an import.
"""

from devprof.native.builder import build
from devprof.native.cache import cache_dir, find, library_path
from devprof.native.facts import TorchFacts, include_dir, missing, torch_facts
from devprof.native.loader import load

__all__ = ["TorchFacts", "build", "cache_dir", "find", "include_dir", "library_path", "load", "missing", "torch_facts"]
