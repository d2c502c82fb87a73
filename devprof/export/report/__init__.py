"""A trace as one HTML page: what it holds, with pictures, for people who have nothing but a browser.

Job: put the answers of `analysis` and the findings of `rules` on a page that needs no network.
In: a finished `Trace` and a file name.
Out: one file of bounded size, whatever the size of the trace; it works from a disk, in light and dark, and on paper.
Never: computes an answer that `analysis` gives, or writes a text of the trace without escaping it.
"""

from devprof.export.report.page import html_report

__all__ = ["html_report"]
