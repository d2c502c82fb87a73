"""Native libraries, built on the user's machine and found again.

Job: build a `NativeBuild` against the installed torch, keep it in a private cache, refuse what does not fit.
In: sources that a package carries, the installed torch's headers, a compiler.
Out: the path of a shared library, or one sentence that says what is missing.
Never: imports torch, or builds during an import.
"""
