"""Print an op of a Chrome trace with the launches and the device work that belong to it.

python examples/show_trace.py kernel_trace.json aten::mm
"""

import json
import sys
from pathlib import Path

FIELDS = ("cat", "name", "start us", "dur us", "row", "External id", "correlation")


def describe(event, origin, rows):
    args = event.get("args", {})
    row = rows.get((event["pid"], event["tid"])) or f"thread {event['tid']}"
    ids = (args.get("External id", ""), args.get("correlation", ""))
    return event["cat"], event["name"], f"{event['ts'] - origin:.1f}", f"{event['dur']:.1f}", row, *map(str, ids)


def main(path, op):
    events = json.loads(Path(path).read_text())["traceEvents"]
    meta = [event for event in events if event["ph"] == "M"]
    devices = {event["pid"]: event["args"]["name"] for event in meta if event["name"] == "process_name"}
    rows = {}
    for event in meta:
        if event["name"] == "thread_name" and event["args"]["name"].startswith("stream"):
            rows[event["pid"], event["tid"]] = f"{devices[event['pid']]}, {event['args']['name']}"
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "Trace"]
    found = next(event for event in slices if event["name"] == op)
    key = found["args"]["External id"]
    belongs = [event for event in slices if event.get("args", {}).get("External id") == key]
    lines = [FIELDS, *(describe(event, found["ts"], rows) for event in sorted(belongs, key=lambda event: event["ts"]))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python show_trace.py TRACE.json OP")
    main(*sys.argv[1:])
