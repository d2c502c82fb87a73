"""Tables as text: readable when piped, in the layout of torch's, with clear words for what cannot be asked."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from devprof.analysis import events, key_averages
from devprof.errors import UsageError
from devprof.store import Trace


def cells(table: str) -> list[list[str]]:
    """Return the cells of a table's rows: header first, rules and sums left out."""
    lines = [line for line in table.splitlines() if not line.startswith(("-", "=", "Self", "This"))]
    rule = next(line for line in table.splitlines() if line.startswith("-"))
    widths = [len(dashes) for dashes in rule.split()]
    found = []
    for line in lines:
        at, row = 0, []
        for width in widths:
            row.append(line[at : at + width].strip())
            at += width + 2
        found.append(row)
    return found


def columns(table: str, *titles: str) -> list[tuple[str, ...]]:
    """Return some columns of a table's rows."""
    header, *rows = cells(table)
    return [tuple(row[header.index(title)] for title in titles) for row in rows]


@pytest.fixture
def trace(made: Any) -> Trace:
    made.op("outer", 0, 2_000_000, id=1)
    made.op("inner", 1000, 501_000, id=2)
    made.op("inner", 600_000, 700_000, id=3)
    made.kernel("kernel", 3000, 53_000, linked=2)
    made.kernel("kernel", 60_000, 210_000, linked=3)
    built: Trace = made.build()
    return built


def test_a_table_is_plain_text_in_columns(trace: Trace) -> None:
    assert key_averages(trace).table().splitlines() == [
        (
            "----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  ------------  "
        ),
        (
            "      Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg      Self TOY    Self TOY %  "
            "   TOY total  TOY time avg    # of Calls  "
        ),
        (
            "----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  ------------  "
        ),
        (
            "     outer        70.00%       1.400ms       100.00%       2.000ms       2.000ms       0.000us         0.00%  "
            "   200.000us     200.000us             1  "
        ),
        (
            "     inner        30.00%     600.000us        30.00%     600.000us     300.000us     200.000us       100.00%  "
            "   200.000us     100.000us             2  "
        ),
        (
            "    kernel         0.00%       0.000us         0.00%       0.000us       0.000us     200.000us       100.00%  "
            "   200.000us     100.000us             2  "
        ),
        (
            "----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  ------------  "
        ),
        "Self CPU time total: 2.000ms",
        "Self TOY time total: 200.000us",
    ]


def test_an_event_list_has_a_row_per_event(trace: Trace) -> None:
    assert columns(events(trace).table(), "Name", "CPU total", "TOY total", "# of Calls") == [
        ("outer", "2.000ms", "200.000us", "1"),
        ("inner", "500.000us", "50.000us", "1"),
        ("kernel", "0.000us", "50.000us", "1"),
        ("kernel", "0.000us", "150.000us", "1"),
        ("inner", "100.000us", "150.000us", "1"),
    ]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("cpu_time_total", ["outer", "inner", "kernel"]),
        ("self_cpu_time_total", ["outer", "inner", "kernel"]),
        ("count", ["inner", "kernel", "outer"]),
        ("cpu_time", ["outer", "inner", "kernel"]),
        ("device_time", ["outer", "inner", "kernel"]),
        ("self_device_time_total", ["inner", "kernel", "outer"]),
        ("self_cuda_time_total", ["inner", "kernel", "outer"]),
        ("self_privateuse1_time_total", ["inner", "kernel", "outer"]),
        ("self_toy_time_total", ["inner", "kernel", "outer"]),
        ("cpu_memory_usage", ["outer", "inner", "kernel"]),
        ("flops", ["outer", "inner", "kernel"]),
    ],
)
def test_rows_are_sorted_by_any_figure_greatest_first_and_equal_ones_as_they_stood(
    trace: Trace, key: str, names: list[str]
) -> None:
    assert columns(key_averages(trace).table(sort_by=key), "Name") == [(name,) for name in names]


def test_an_unknown_sort_key_is_refused_with_those_that_there_are(trace: Trace) -> None:
    with pytest.raises(UsageError) as refused:
        key_averages(trace).table(sort_by="self_cpu_time")
    assert str(refused.value) == (
        "a table cannot be sorted by 'self_cpu_time'; it can be sorted by cpu_time, cpu_time_total, self_cpu_time_total, "
        "cpu_memory_usage, self_cpu_memory_usage, device_time, device_time_total, self_device_time_total, "
        "device_memory_usage, self_device_memory_usage, flops, count"
    )


@pytest.mark.parametrize("key", ["_figure_time", "other_time_total", "name", "", 3])
def test_what_is_no_figure_is_no_sort_key(trace: Trace, key: Any) -> None:
    with pytest.raises(UsageError, match="a table cannot be sorted by"):
        key_averages(trace).table(sort_by=key)


@pytest.mark.parametrize(("limit", "n"), [(0, 0), (1, 1), (2, 2), (99, 3), (-1, 3)])
def test_a_limit_cuts_rows_and_not_sums(trace: Trace, limit: int, n: int) -> None:
    table = key_averages(trace).table(row_limit=limit)
    assert len(cells(table)) == n + 1
    assert table.endswith("Self CPU time total: 2.000ms\nSelf TOY time total: 200.000us\n")


def test_only_what_is_at_the_top_is_shown_when_asked(trace: Trace) -> None:
    lines = events(trace).table(top_level_events_only=True, header="Training").splitlines()
    assert lines[1] == "Training"
    assert lines[3] == "This report only display top-level ops statistics"
    assert set(lines[0]) == set(lines[2]) == {"="}
    assert columns("\n".join(lines[4:]), "Name") == [("outer",), ("kernel",), ("kernel",)]


@pytest.mark.parametrize(
    ("unit", "shown"), [("s", "0.002s"), ("ms", "2.000ms"), ("us", "2000.000us"), (None, "2.000ms")]
)
def test_times_are_shown_in_the_unit_that_was_asked_for(trace: Trace, unit: str | None, shown: str) -> None:
    table = key_averages(trace).table(time_unit=unit)
    assert columns(table, "CPU total")[0] == (shown,)
    assert f"Self CPU time total: {shown}" in table


def test_an_unknown_unit_is_refused(trace: Trace) -> None:
    with pytest.raises(UsageError, match="time_unit is 'ns'; a table shows times in one of s, ms, us, or None"):
        key_averages(trace).table(time_unit="ns")


def test_long_names_are_cut_at_the_end(made: Any) -> None:
    made.op("a name of twenty-nine letters", 0, 10)
    assert columns(key_averages(made.build()).table(max_name_column_width=12), "Name") == [("a name of...",)]
    assert columns(key_averages(made.build()).table(max_name_column_width=None), "Name") == [
        ("a name of twenty-nine letters",)
    ]


def test_each_backend_has_columns_and_a_sum_of_its_own(made: Any) -> None:
    made.op("op", 0, 100_000, id=1)
    made.kernel("k", 10_000, 20_000, linked=1, stream=made.stream(backend="toy"))
    made.kernel("k", 10_000, 13_000, linked=1, stream=made.stream(backend="cuda"))
    made.memory(5, 2048, Device="cuda:0")
    table = key_averages(made.build()).table(sort_by="self_cuda_time_total")
    assert columns(table, "Name", "TOY total", "CUDA total", "Self TOY %", "Self CUDA", "CUDA Mem") == [
        ("op", "10.000us", "3.000us", "100.00%", "3.000us", "2.00 KB"),
        ("k", "0.000us", "3.000us", "0.00%", "3.000us", "0 B"),
        ("k", "10.000us", "0.000us", "100.00%", "0.000us", "0 B"),
    ]
    assert table.endswith(
        "Self CPU time total: 100.000us\nSelf TOY time total: 10.000us\nSelf CUDA time total: 3.000us\n"
    )


def test_columns_are_as_wide_as_their_titles(made: Any) -> None:
    made.op("op", 0, 100, id=1)
    made.kernel("k", 1, 2, linked=1, stream=made.stream(backend="a_long_backend"))
    rule, header, *_ = key_averages(made.build()).table().splitlines()
    assert len(rule) == len(header)
    assert "Self A_LONG_BACKEND %  A_LONG_BACKEND total  A_LONG_BACKEND time avg" in header


def test_without_device_work_there_are_no_device_columns(made: Any) -> None:
    made.stream()
    made.op("op", 0, 100)
    assert cells(key_averages(made.build()).table())[0] == [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ]


def test_memory_has_columns_where_it_was_recorded(made: Any) -> None:
    made.op("op", 0, 100)
    made.op("inner", 10, 20)
    for size in (1536, -512):
        made.memory(15, size)
    made.memory(50, 3 << 30)
    made.memory(60, -1)
    assert columns(key_averages(made.build()).table(), "Name", "CPU Mem", "Self CPU Mem") == [
        ("op", "3.00 GB", "3.00 GB"),
        ("inner", "1.00 KB", "1.00 KB"),
    ]


def test_a_session_that_recorded_no_allocation_still_shows_that_it_looked(made: Any) -> None:
    made.op("op", 0, 100)
    assert columns(key_averages(made.build(profile_memory=True)).table(), "CPU Mem") == [("0 B",)]


def test_shapes_overloads_operations_and_stacks_have_columns_of_their_own(made: Any) -> None:
    made.frame("train.py(7): main", 0, 1000)
    made.frame("train.py(3): step", 1, 900)
    made.op("aten::mm", 10, 20, Input_Dims=[[20, 30], [30, 50]], Overload_name="out")
    table = key_averages(made.build(with_flops=True), True, 2, True).table()
    wanted = ("Name", "Overload Name", "Input Shapes", "Total KFLOPs", "Source Location")
    assert columns(table, *wanted)[-3:] == [
        ("aten::mm", "out", "[[20, 30], [30, 50]]", "60.000", "train.py(3): step"),
        ("", "", "", "", "train.py(7): main"),
        ("", "", "", "", ""),
    ]


def test_a_long_path_is_cut_at_its_front(made: Any) -> None:
    made.frame("a/very/long/path/to/train.py(7): main", 0, 1000)
    made.op("op", 10, 20)
    table = key_averages(made.build(), group_by_stack_n=1).table(max_src_column_width=20)
    assert ("op", "...train.py(7): main") in columns(table, "Name", "Source Location")


def test_a_share_of_nothing_is_no_number(made: Any) -> None:
    made.kernel("k", 10, 20)
    assert columns(key_averages(made.build()).table(), "Self CPU %", "Self TOY %") == [("NaN", "100.00%")]


def test_a_table_of_nothing_is_empty(made: Any) -> None:
    assert key_averages(made.build()).table() == ""
    assert str(events(made.build())) == ""


def test_a_list_is_printed_as_its_table(trace: Trace) -> None:
    averages = key_averages(trace)
    assert str(averages) == averages.table()
    assert repr(averages) == "<Averages of 5 events in 3 rows>"
    assert repr(averages[1]) == (
        "<FunctionEventAvg key=inner count=2 cpu_time=600.000us self_cpu_time=600.000us device_time=200.000us "
        "device_type=cpu>"
    )
    assert repr(events(trace)[0]) == (
        "<FunctionEvent id=1 name=outer device_type=cpu thread=1 start_us=0.0 end_us=2000.0 cpu_time=2.000ms, "
        "device_time=200.000us>"
    )


class Cells(HTMLParser):
    """The texts of a page's table cells, and of its paragraphs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.lines: list[str] = []
        self._into: list[str] = self.lines
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ("table", "tr", "th", "td", "p"), f"{tag} came out of a name"
        if tag == "tr":
            self.rows.append([])
        self._into = self.lines if tag == "p" else self.rows[-1] if self.rows else []

    def handle_data(self, data: str) -> None:
        self._into.append(data)


def test_a_notebook_shows_the_averages_as_a_table_whatever_the_names(made: Any) -> None:
    made.op("<script>alert(1)</script>", 0, 2_000_000, id=1)
    made.op("inner & outer", 3_000_000, 3_400_000, id=2)
    made.kernel("kernel<float>", 3000, 53_000, linked=2)
    trace = made.build()
    shown = Cells(key_averages(trace)._repr_html_())
    header, *rows = shown.rows
    names = [row[header.index("Name")] for row in rows]
    assert names == ["inner & outer", "kernel<float>", "<script>alert(1)</script>"]
    assert [row[header.index("Self TOY")] for row in rows] == ["50.000us", "50.000us", "0.000us"]
    assert shown.lines == ["Self CPU time total: 2.400ms", "Self TOY time total: 50.000us"]
    assert len(Cells(events(trace)._repr_html_()).rows) == 1 + len(trace)


def test_a_notebook_shows_that_nothing_was_recorded(made: Any) -> None:
    assert Cells(key_averages(made.build())._repr_html_()).lines == ["no events"]
