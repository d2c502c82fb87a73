"""Which op, which launch and which device work belong together.

Job: join records on launch numbers, apply the capture window, resolve ids, draw arrows, span user ranges on devices.
In: the batches of one plugin in one session, in Unix ns.
Out: masks, link columns and spans beside the batches, with a count of everything that did not fit.
Never: changes a record's time, invents device work, or knows a vendor's names or a host.

Order for a plugin's records: `join_launches`, `apply_window`, `overlapping_rows`, `duplicates` where they may be, `link`,
`with_launch_items`, then `annotation_spans`. For the host's own events: `nest`, `forward_backward`.
A "row" is a record's position in all batches laid end to end.
"""

from devprof.link.duplicates import duplicates, may_hold_duplicates
from devprof.link.forward_backward import ForwardBackward, forward_backward
from devprof.link.id_table import IdTable
from devprof.link.join import LaunchJoin, join_launches
from devprof.link.linking import LinkCounts, LinkedColumns, LinkResult, link
from devprof.link.nesting import Nesting, nest, nesting
from devprof.link.overlaps import RowOverlaps, crossings, overlapping_rows, places_of
from devprof.link.references import with_launch_items
from devprof.link.user_parents import UserParents
from devprof.link.user_spans import AnnotationSpans, annotation_spans
from devprof.link.window import WindowResult, apply_window
from devprof.link.work_rows import SeparatedWork, separate_work

__all__ = [
    "AnnotationSpans",
    "ForwardBackward",
    "IdTable",
    "LaunchJoin",
    "LinkCounts",
    "LinkResult",
    "LinkedColumns",
    "Nesting",
    "RowOverlaps",
    "SeparatedWork",
    "UserParents",
    "WindowResult",
    "annotation_spans",
    "apply_window",
    "crossings",
    "duplicates",
    "forward_backward",
    "join_launches",
    "link",
    "may_hold_duplicates",
    "nest",
    "nesting",
    "overlapping_rows",
    "places_of",
    "separate_work",
    "with_launch_items",
]
