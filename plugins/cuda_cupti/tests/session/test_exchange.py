"""The functions that CUPTI calls: on any thread, without a lock, and never with an exception; and whose each buffer is."""

from __future__ import annotations

import ctypes as c
import threading
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from cuda_cupti.buffers import BufferPool, BufferState
from cuda_cupti.collector import Collector, Exchange
from cuda_cupti.external_ids import ExternalIds
from cuda_cupti.layouts import expected
from hypothesis import given
from hypothesis import strategies as st
from stand_in import on_foreign_thread

SIZE = 1 << 16
FREE, LENT, FILLED = BufferState


def _request(exchange: Exchange) -> tuple[int | None, int, int]:
    buffer, size, most = c.c_void_p(0xDEAD), c.c_size_t(7), c.c_size_t(7)
    exchange.requested(c.pointer(buffer), c.pointer(size), c.pointer(most))
    return buffer.value, size.value, most.value


def test_a_buffer_has_one_owner_at_every_step_and_is_cleared_before_it_is_lent_again() -> None:
    exchange, filled = Exchange(BufferPool(SIZE)), SimpleQueue[Any]()
    exchange.begin(filled)
    assert exchange.pool.states() == {FREE: 2}
    address, size, most = _request(exchange)
    assert (size, most, exchange.pool.states()) == (SIZE, 0, {FREE: 1, LENT: 1})
    assert address is not None
    c.memset(address, 7, 100)
    exchange.completed(None, 0, address, size, 100)
    buffer = filled.get_nowait()
    assert (bytes(buffer.valid()), exchange.pool.states()) == (b"\7" * 100, {FREE: 1, FILLED: 1})
    exchange.pool.give_back(buffer)
    assert (exchange.pool.states(), c.string_at(address, SIZE)) == ({FREE: 2}, bytes(SIZE))


def test_completions_of_what_was_never_lent_or_is_back_already_are_counted_and_touch_nothing() -> None:
    exchange, filled = Exchange(BufferPool(SIZE)), SimpleQueue[Any]()
    exchange.begin(filled)
    address, size, _ = _request(exchange)
    exchange.completed(None, 0, address, size, 8)
    for again in (address, 0x1234, None):
        exchange.completed(None, 0, again, size, 8)
    assert (exchange.pool.strange, filled.qsize()) == (3, 1)


def test_more_valid_bytes_than_the_buffer_has_are_not_believed() -> None:
    exchange, filled = Exchange(BufferPool(SIZE)), SimpleQueue[Any]()
    exchange.begin(filled)
    address, size, _ = _request(exchange)
    exchange.completed(None, 0, address, size, 2**40)
    assert len(filled.get_nowait().valid()) == SIZE


def test_a_request_that_cannot_be_met_is_declined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange(BufferPool(SIZE))
    exchange.begin(SimpleQueue())
    held = [_request(exchange) for _ in range(2)]

    def no_memory(size_bytes: int) -> object:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("cuda_cupti.buffers.Buffer", no_memory)
    assert _request(exchange) == (None, 0, 0)
    assert (len({address for address, *_ in held}), exchange.pool.refused) == (2, 1)


def test_an_interrupt_inside_a_callback_reaches_the_program_and_costs_no_buffer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchange, filled = Exchange(BufferPool(SIZE)), SimpleQueue[Any]()
    exchange.begin(filled)
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
    address, size, _ = _request(exchange)
    exchange.completed(None, 0, address, size, 8)
    items = [filled.get_nowait() for _ in range(filled.qsize())]
    assert raised == ["lend", "take_back"]
    assert [getattr(item, "valid_bytes", "interrupt") for item in items] == ["interrupt", 8, "interrupt"]


def test_the_decoding_thread_passes_an_interrupt_on(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = threading.Event()
    monkeypatch.setattr("_thread.interrupt_main", passed.set)
    exchange = Exchange(BufferPool(SIZE))
    collector = Collector(exchange, expected(130001))
    collector.begin()
    monkeypatch.setattr(exchange.pool, "lend", _interrupt_once(exchange.pool.lend))
    _request(exchange)
    assert passed.wait(10)
    collector.finish()


def _interrupt_once(real: Any) -> Any:
    raised: list[bool] = []

    def lend(session: int) -> Any:
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt
        return real(session)

    return lend


def test_eight_foreign_threads_at_once_get_buffers_of_their_own() -> None:
    exchange, filled = Exchange(BufferPool(SIZE)), SimpleQueue[Any]()
    exchange.begin(filled)
    together, mine = threading.Barrier(8), []

    def work() -> None:
        def inside() -> None:
            for _ in range(50):
                address, size, _ = _request(exchange)
                assert address is not None
                c.memset(address, 1, 64)
                mine.append(address)
                exchange.completed(None, 0, address, size, 64)

        together.wait(30)
        on_foreign_thread(inside)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(mine)), filled.qsize(), exchange.pool.strange) == (400, 400, 0)
    assert exchange.pool.states()[FILLED] == 400


def test_a_late_buffer_is_no_ones_records_and_is_lent_again_cleared() -> None:
    exchange, first, second = Exchange(BufferPool(SIZE)), SimpleQueue[Any](), SimpleQueue[Any]()
    exchange.begin(first)
    address, size, _ = _request(exchange)
    assert address is not None
    exchange.end()
    c.memset(address, 3, 10)
    exchange.completed(None, 0, address, size, 10)
    exchange.begin(second)
    assert (first.qsize(), second.qsize(), exchange.pool.states()) == (0, 0, {FREE: 2})
    assert c.string_at(address, SIZE) == bytes(SIZE)


def test_memory_of_a_long_session_goes_back_to_the_system_but_for_what_cupti_holds() -> None:
    exchange = Exchange(BufferPool(SIZE))
    exchange.begin(SimpleQueue())
    held = [_request(exchange) for _ in range(20)]
    for address, size, _ in held[:15]:
        exchange.completed(None, 0, address, size, 0)
    exchange.end()
    exchange.begin(SimpleQueue())
    exchange.end()
    states = exchange.pool.states()
    assert (states[LENT], states[FREE] <= 15) == (5, True)


def test_one_buffer_that_cannot_be_decoded_does_not_cost_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import cuda_cupti.collector as module

    real, calls = module.decode, []

    def decode(raw: Any, layout: Any, text_at: Any) -> Any:
        calls.append(len(raw))
        if len(calls) == 1:
            raise ValueError("broken")
        return real(raw, layout, text_at)

    monkeypatch.setattr(module, "decode", decode)
    exchange = Exchange(BufferPool(SIZE))
    collector = Collector(exchange, expected(130001))
    collector.begin()
    for _ in range(2):
        address, size, _ = _request(exchange)
        assert address is not None
        c.memmove(address, np.array([39, 5, 1, 0, 1, 0], "<u4").tobytes(), 24)
        exchange.completed(None, 0, address, size, 24)
    collector.finish()
    assert [len(one) for one in collector.records] == [1]
    assert collector.errors == ["a buffer of 24 bytes could not be decoded: ValueError('broken')"]


def test_records_beyond_the_limit_are_counted_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_cupti.collector.MOST_BYTES", 50)
    exchange = Exchange(BufferPool(SIZE))
    collector = Collector(exchange, expected(130001))
    collector.begin()
    for _ in range(3):
        address, size, _ = _request(exchange)
        assert address is not None
        c.memmove(address, np.array([39, 5, 1, 0, 1, 0], "<u4").tobytes(), 24)
        exchange.completed(None, 0, address, size, 24)
    collector.finish()
    assert (len(collector.records), collector.unkept) == (2, 1)


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
