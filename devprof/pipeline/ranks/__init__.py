"""Many processes of one job: their traces as one, or one question to each of them.

Job: line up the clocks of several traces, renumber what would collide, join them; read many files with bounded memory.
In: a `Trace` or a file per rank.
Out: one `Trace` that says which rank is where and how far each was moved; an answer per rank.
Never: changes a rank's own durations, or guesses a clock without saying so.
"""

from devprof.pipeline.ranks.files import merge_files, per_rank
from devprof.pipeline.ranks.merging import merge

__all__ = ["merge", "merge_files", "per_rank"]
