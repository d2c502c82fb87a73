"""`HeldInterrupt`: a Ctrl-C waits until the block is over, except where it is let through."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from devprof.capture import HeldInterrupt


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_comes_out_when_the_block_is_over() -> None:
    told: list[str] = []

    def block() -> None:
        with HeldInterrupt(lambda: told.append("hurry")) as held:
            interrupt()
            assert held.pending
            told.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert told == ["hurry", "the rest"]


def test_what_is_let_through_is_interrupted_at_once_and_what_follows_is_not() -> None:
    done: list[str] = []
    with HeldInterrupt(lambda: done.append("held")) as held:
        with pytest.raises(KeyboardInterrupt):
            held.let_through(interrupt)
        assert not held.pending
        assert held.let_through(lambda: "value") == "value"
        done.append("the rest")
    assert done == ["the rest"]


def test_an_interrupt_of_before_waits_on_while_others_are_let_through() -> None:
    def block() -> None:
        with HeldInterrupt(lambda: None) as held:
            interrupt()
            assert held.let_through(lambda: "value") == "value"

    with pytest.raises(KeyboardInterrupt):
        block()


def test_outside_of_the_block_nothing_is_let_through_or_held() -> None:
    held = HeldInterrupt(lambda: None)
    with held:
        pass
    assert held.let_through(lambda: signal.getsignal(signal.SIGINT)) is signal.default_int_handler


def test_a_handler_that_was_set_while_let_through_stays() -> None:
    seen: list[int] = []

    def theirs(signum: int, frame: object) -> None:
        seen.append(signum)

    with HeldInterrupt(lambda: None) as held:
        held.let_through(lambda: signal.signal(signal.SIGINT, theirs))
        interrupt()
        assert seen == []
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is theirs
    assert seen == [signal.SIGINT]


def test_one_inside_another_hands_its_interrupt_on() -> None:
    def block() -> None:
        with HeldInterrupt(lambda: None) as outer:
            with HeldInterrupt(lambda: None):
                interrupt()
            assert outer.pending

    with pytest.raises(KeyboardInterrupt):
        block()
