"""A capture that is asked for from outside, while the program runs.

Job: listen on a socket of this user's, record for as long as was asked, and write the trace into one folder; and ask another
    process to do so.
In: requests of ``devprof attach``; the program's steps.
Out: a trace file, and an answer that says where it is, or why there is none.
Never: listens where nobody opted in, talks to another user, writes outside its folder, or stands in the way of a profile of the
    program's own.
"""

from devprof.trigger.client import Listening, attach, listening
from devprof.trigger.listener import Listener, on_demand, start_if_asked
from devprof.trigger.request import Answer, CaptureRequest

__all__ = [
    "Answer",
    "CaptureRequest",
    "Listener",
    "Listening",
    "attach",
    "listening",
    "on_demand",
    "start_if_asked",
]
