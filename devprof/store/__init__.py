"""A capture as immutable columns.

Job: hold the events of one capture with their places, links, items and facts; save and load them. Limits of what a recording
keeps, sums of what it does not, a file for what does not fit into memory.
In: batches in Unix ns with the rows and links that belong to them (`TraceBuilder`).
Out: a `Trace`: read-only arrays, tables of texts, places and rows.
Never: links, converts times, or makes an object per event.
"""

from devprof.store.builder import TraceBuilder
from devprof.store.files import load, save
from devprof.store.items import ItemColumn, ItemKind, ItemValue, RawJson
from devprof.store.places import HOST_BACKEND, Place, PlaceKind, Row
from devprof.store.trace import COLUMNS, ROLES, Trace
from devprof.store.written import told_in_words, written_whole

__all__ = [
    "COLUMNS",
    "HOST_BACKEND",
    "ROLES",
    "ItemColumn",
    "ItemKind",
    "ItemValue",
    "Place",
    "PlaceKind",
    "RawJson",
    "Row",
    "Trace",
    "TraceBuilder",
    "load",
    "save",
    "told_in_words",
    "written_whole",
]
