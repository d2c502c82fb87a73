"""The functions that CUPTI calls: on any thread, without an exception; and whose each buffer is. In Python and native."""

from __future__ import annotations

import ctypes as c
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_cupti.collector import Collector
from cuda_cupti.exchange import INTERRUPTED, BufferState, Exchange
from cuda_cupti.external_ids import ExternalIds
from cuda_cupti.layouts import expected
from cuda_cupti.python_exchange import Buffer, BufferPool, PythonExchange
from hypothesis import given
from hypothesis import strategies as st
from stand_in import on_foreign_thread

from plugins.cuda_cupti.tests.structs import pack

SIZE = 1 << 16
FREE, LENT, FILLED = BufferState
_ONE_RECORD = np.array([39, 5, 1, 0, 1, 0], "<u4").tobytes()


@pytest.fixture
def exchange(exchange_of: Callable[[int], Exchange]) -> Exchange:
    return exchange_of(SIZE)


def _request(exchange: Exchange) -> tuple[int | None, int, int]:
    buffer, size, most = c.c_void_p(0xDEAD), c.c_size_t(7), c.c_size_t(7)
    exchange.requested(c.pointer(buffer), c.pointer(size), c.pointer(most))
    return buffer.value, size.value, most.value


def _lent(exchange: Exchange) -> int:
    address, _, _ = _request(exchange)
    assert address is not None
    return address


def _filled(exchange: Exchange) -> Any:
    item = exchange.next()
    assert not isinstance(item, int)
    return item


def test_a_buffer_has_one_owner_at_every_step_and_is_cleared_before_it_is_lent_again(exchange: Exchange) -> None:
    exchange.begin()
    assert exchange.states() == {FREE: 2}
    address, size, most = _request(exchange)
    assert (size, most, exchange.states()) == (SIZE, 0, {FREE: 1, LENT: 1})
    assert address is not None
    c.memset(address, 7, 100)
    exchange.completed(None, 0, address, size, 100)
    buffer = _filled(exchange)
    assert (bytes(buffer.valid()), exchange.states()) == (b"\7" * 100, {FREE: 1, FILLED: 1})
    exchange.give_back(buffer)
    assert (exchange.states(), c.string_at(address, SIZE)) == ({FREE: 2}, bytes(SIZE))


def test_buffers_and_signals_come_in_the_order_in_which_they_arrived(exchange: Exchange) -> None:
    exchange.begin()
    first, second = _lent(exchange), _lent(exchange)
    exchange.completed(None, 0, second, SIZE, 8)
    exchange.post(5)
    exchange.completed(None, 0, first, SIZE, 8)
    exchange.post(6)
    found = [exchange.next() for _ in range(4)]
    assert [one if isinstance(one, int) else one.address for one in found] == [second, 5, first, 6]


def test_completions_of_what_was_never_lent_or_is_back_already_are_counted_and_touch_nothing(
    exchange: Exchange,
) -> None:
    exchange.begin()
    address = _lent(exchange)
    exchange.completed(None, 0, address, SIZE, 8)
    for again in (address, 0x1234, None):
        exchange.completed(None, 0, again, SIZE, 8)
    exchange.post(1)
    assert (exchange.strange, _filled(exchange).address, exchange.next()) == (3, address, 1)


def test_more_valid_bytes_than_the_buffer_has_are_not_believed(exchange: Exchange) -> None:
    exchange.begin()
    exchange.completed(None, 0, _lent(exchange), SIZE, 2**40)
    assert len(_filled(exchange).valid()) == SIZE


def test_a_request_that_cannot_be_met_is_declined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = PythonExchange(BufferPool(SIZE))
    exchange.begin()
    held = [_request(exchange) for _ in range(2)]

    def no_memory(size_bytes: int) -> object:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("cuda_cupti.python_exchange.Buffer", no_memory)
    assert _request(exchange) == (None, 0, 0)
    assert (len({address for address, *_ in held}), exchange.refused) == (2, 1)


def test_without_memory_requests_are_declined_and_no_session_begins(exchange_of: Callable[[int], Exchange]) -> None:
    exchange = exchange_of(1 << 30)
    exchange.begin()
    held = [_request(exchange) for _ in range(2)]
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, limits[1]))
    try:
        declined = _request(exchange)
        with pytest.raises(OSError, match="Cannot allocate memory"):
            exchange.begin()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert (declined, exchange.refused, len({address for address, *_ in held})) == ((None, 0, 0), 1, 2)


def test_an_interrupt_inside_a_callback_reaches_the_program_and_costs_no_buffer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchange = PythonExchange(BufferPool(SIZE))
    exchange.begin()
    raised: list[str] = []

    def once(name: str) -> None:
        real = getattr(exchange.pool, name)

        def interrupted(*arguments: int) -> Any:
            if name not in raised:
                raised.append(name)
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(exchange.pool, name, interrupted)

    once("lend")
    once("take_back")
    exchange.completed(None, 0, _lent(exchange), SIZE, 8)
    items = [exchange.next() for _ in range(3)]
    assert raised == ["lend", "take_back"]
    assert [one if isinstance(one, int) else one.valid_bytes for one in items] == [INTERRUPTED, 8, INTERRUPTED]


@pytest.mark.parametrize("at", ["before", "after"])
def test_an_interrupt_around_the_handing_over_loses_no_buffer_and_gives_none_out_twice(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, raised, real = PythonExchange(BufferPool(SIZE)), [], PythonExchange._pass_on

    def interrupted(self: PythonExchange, buffer: Buffer | None) -> None:
        if raised:
            return real(self, buffer)
        raised.append(at)
        if at == "after":
            real(self, buffer)
        raise KeyboardInterrupt

    monkeypatch.setattr(PythonExchange, "_pass_on", interrupted)
    exchange.begin()
    exchange.completed(None, 0, _lent(exchange), SIZE, 8)
    buffer = _filled(exchange)
    exchange.give_back(buffer)
    lent = [_lent(exchange) for _ in range(2)]
    exchange.completed(None, 0, buffer.address, SIZE, 9)
    items = [exchange.next(), exchange.next()]
    assert [one if isinstance(one, int) else (one.address, one.valid_bytes) for one in items] == [
        INTERRUPTED,
        (buffer.address, 9),
    ]
    assert (raised, len(set(lent)), exchange.states()) == ([at], 2, {FILLED: 1, LENT: 1})


def test_the_decoding_thread_passes_an_interrupt_on(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = threading.Event()
    monkeypatch.setattr("_thread.interrupt_main", passed.set)
    collector = Collector(exchange, expected(130001))
    collector.begin()
    exchange.post(INTERRUPTED)
    assert passed.wait(10)
    collector.finish()


_INTERRUPTED_PROGRAM = """
import ctypes as c, signal, sys, threading
from cuda_cupti.native_exchange import NativeExchange

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with Ctrl-C ignored
exchange, rounds = NativeExchange(c.CDLL(sys.argv[1]), 1 << 16), 0
exchange.begin()
for _ in range(200):
    try:
        threading.Timer(0.0005, signal.raise_signal, [signal.SIGINT]).start()
        while True:
            address, size, most = c.c_void_p(), c.c_size_t(), c.c_size_t()
            exchange.requested(c.pointer(address), c.pointer(size), c.pointer(most))
            exchange.completed(None, 0, address.value, size.value, 8)
            exchange.give_back(exchange.next())
    except KeyboardInterrupt:
        rounds += 1
print(rounds, exchange.strange)
"""


def test_a_ctrl_c_is_never_lost_in_a_native_function(exchange: Exchange, tmp_path: Any) -> None:
    if isinstance(exchange, PythonExchange):
        pytest.skip("in Python one may be lost between the entry of a function and its first line")
    command = [sys.executable, "-c", _INTERRUPTED_PROGRAM, str(tmp_path / "exchange0.so")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.split(), done.stderr) == (["200", "0"], "")


def test_eight_foreign_threads_at_once_get_buffers_of_their_own(exchange: Exchange) -> None:
    exchange.begin()
    together, mine = threading.Barrier(8), []

    def work() -> None:
        def inside() -> None:
            for _ in range(50):
                address = _lent(exchange)
                c.memset(address, 1, 64)
                mine.append(address)
                exchange.completed(None, 0, address, SIZE, 64)

        together.wait(30)
        on_foreign_thread(inside)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(mine)), exchange.states()[FILLED], exchange.strange) == (400, 400, 0)
    assert {_filled(exchange).address for _ in range(400)} == set(mine)


def test_what_comes_back_in_between_sessions_is_no_ones_and_is_lent_again_cleared(exchange: Exchange) -> None:
    exchange.begin()
    address = _lent(exchange)
    exchange.end()
    c.memset(address, 3, 10)
    exchange.completed(None, 0, address, SIZE, 10)
    exchange.begin()
    exchange.post(1)
    assert (exchange.next(), exchange.states()) == (1, {FREE: 2})
    assert c.string_at(address, SIZE) == bytes(SIZE)


def test_in_between_sessions_nothing_is_lent(exchange: Exchange) -> None:
    assert _request(exchange) == (None, 0, 0)
    exchange.begin()
    _lent(exchange)
    exchange.end()
    assert [_request(exchange) for _ in range(3)] == [(None, 0, 0)] * 3
    assert (exchange.states(), exchange.loans, exchange.refused) == ({FREE: 1, LENT: 1}, 1, 0)
    exchange.begin()
    assert _lent(exchange)


def test_a_buffer_that_cupti_kept_from_an_earlier_session_is_decoded_in_the_one_in_which_it_comes_back(
    exchange: Exchange,
) -> None:
    exchange.begin()
    kept = _lent(exchange)
    exchange.end()
    exchange.begin()
    exchange.completed(None, 0, kept, SIZE, 8)
    assert (_filled(exchange).address, exchange.strange) == (kept, 0)


def test_only_the_first_loans_are_waited_for_and_those_that_were_given_up_no_more(exchange: Exchange) -> None:
    exchange.begin()
    first, second = _lent(exchange), _lent(exchange)
    loans = exchange.loans
    _lent(exchange)
    assert (loans, exchange.loans) == (2, 3)
    assert [exchange.outstanding(n) for n in range(4)] == [0, 1, 2, 3]
    exchange.completed(None, 0, second, SIZE, 8)
    assert [exchange.outstanding(n) for n in range(4)] == [0, 1, 1, 2]
    exchange.give_up(loans)
    assert [exchange.outstanding(n) for n in range(4)] == [0, 0, 0, 1]
    exchange.completed(None, 0, first, SIZE, 8)
    for _ in range(2):
        exchange.give_back(_filled(exchange))
    assert {_lent(exchange), _lent(exchange)} == {first, second}
    assert exchange.outstanding(exchange.loans) == 3  # a new loan of the same memory is waited for


def test_what_a_session_left_undecoded_is_not_the_next_ones(exchange: Exchange) -> None:
    exchange.begin()
    exchange.completed(None, 0, _lent(exchange), SIZE, 8)
    exchange.begin()
    exchange.post(1)
    assert (exchange.next(), exchange.states()) == (1, {FREE: 2})


def test_memory_of_a_long_session_goes_back_to_the_system_but_for_what_cupti_holds(exchange: Exchange) -> None:
    exchange.begin()
    held = [_lent(exchange) for _ in range(20)]
    for address in held[:15]:
        exchange.completed(None, 0, address, SIZE, 0)
    for _ in range(15):
        exchange.give_back(_filled(exchange))
    exchange.end()
    exchange.trim()
    assert exchange.states() == {FREE: 8, LENT: 5}


def test_memory_of_a_session_goes_back_also_where_the_decoding_thread_came_late(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, real = threading.Event(), exchange.end
    collector = Collector(exchange, expected(130001), free=lambda address: ended.wait(10))

    def end() -> None:
        real()
        ended.set()

    monkeypatch.setattr(exchange, "end", end)
    collector.begin()
    overhead = pack(17, "13.0", overheadKind=6 << 16, overheadData=1)
    held = [_lent(exchange) for _ in range(20)]
    for address in held:
        c.memmove(address, overhead, len(overhead))
        exchange.completed(None, 0, address, SIZE, len(overhead))
    collector.finish()
    assert (len(collector.records), exchange.states()) == (20, {FREE: 8})


def _complete(exchange: Exchange, data: bytes) -> None:
    address = _lent(exchange)
    c.memmove(address, data, len(data))
    exchange.completed(None, 0, address, SIZE, len(data))


def test_one_buffer_that_cannot_be_decoded_does_not_cost_the_others(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cuda_cupti.collector as module

    real, calls = module.decode, []

    def decode(raw: Any, layout: Any, text_at: Any) -> Any:
        calls.append(len(raw))
        if len(calls) == 1:
            raise ValueError("broken")
        return real(raw, layout, text_at)

    monkeypatch.setattr(module, "decode", decode)
    collector = Collector(exchange, expected(130001))
    collector.begin()
    for _ in range(2):
        _complete(exchange, _ONE_RECORD)
    collector.finish()
    assert [len(one) for one in collector.records] == [1]
    assert collector.errors == ["a buffer of 24 bytes could not be decoded: ValueError('broken')"]
    assert FILLED not in exchange.states()


def test_records_beyond_the_limit_are_counted_and_let_go(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_cupti.collector.MOST_BYTES", 50)
    collector = Collector(exchange, expected(130001))
    collector.begin()
    for _ in range(3):
        _complete(exchange, _ONE_RECORD)
    collector.finish()
    assert (len(collector.records), collector.unkept) == (2, 1)


def test_everything_completed_is_decoded_when_the_collector_has_caught_up(exchange: Exchange) -> None:
    collector = Collector(exchange, expected(130001))
    collector.begin()
    for n in range(1, 6):
        _complete(exchange, _ONE_RECORD * n)
        collector.catch_up()
        assert [len(one) for one in collector.taken()] == [n]
    collector.finish()


def test_a_collector_without_a_thread_leaves_no_session_open(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    collector = Collector(exchange, expected(130001))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        with pytest.raises(RuntimeError, match="new thread"):
            collector.begin()
    collector.finish()
    assert _request(exchange) == (None, 0, 0)
    collector.begin()
    collector.finish()
    assert list(collector.records) == []


@given(st.lists(st.integers(1, 2**64 - 1), max_size=20))
def test_ids_of_64_bits_come_back_as_they_were_and_only_to_their_own_session(ids: list[int]) -> None:
    session, other = ExternalIds(), ExternalIds()
    pushed = np.array([session.outgoing(one) for one in ids], dtype=np.uint64)
    assert session.incoming(pushed).tolist() == ids
    assert other.incoming(pushed).tolist() == [0] * len(ids)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_numbers_of_other_clients_are_no_ids(pushed: list[int]) -> None:
    session = ExternalIds()
    stamp = session.outgoing(1) >> 42
    found = session.incoming(np.array(pushed, dtype=np.uint64)).tolist()
    assert [one for one, number in zip(found, pushed, strict=True) if number >> 42 != stamp and one] == []
