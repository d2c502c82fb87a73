"""What only one can run at a time: who holds it, and how the others hear of it."""

from __future__ import annotations

import os
import threading

import pytest

from devprof.capture import Exclusive
from devprof.errors import SessionError


def test_the_refusal_names_who_runs_where_it_was_started_and_on_which_thread() -> None:
    place = Exclusive()
    holder = place.take("the first")
    with pytest.raises(SessionError) as refused:
        place.take("a second")
    assert str(refused.value) == (
        f"a second cannot start: the first is running already, started {holder.place} on thread "
        f"{threading.current_thread().name!r}. Stop that one first, or put both into one"
    )
    assert holder.place.startswith(f"at {__file__}:")


def test_a_check_refuses_as_a_take_does_and_takes_nothing() -> None:
    place = Exclusive()
    place.check("one")
    assert place.holder is None
    place.take("one")
    with pytest.raises(SessionError, match="another cannot start: one is running already"):
        place.check("another")


def test_it_is_free_again_once_it_is_given_back_by_its_holder_alone() -> None:
    place = Exclusive()
    first = place.take("first")
    place.give_back(first)
    second = place.take("second")
    place.give_back(first)  # late, and no longer its own
    assert place.holder is second


def test_a_forked_child_finds_it_free() -> None:
    place = Exclusive()
    place.take("the parent's")
    child = os.fork()
    if child == 0:
        os._exit(0 if place.holder is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert place.holder is not None


def test_it_can_be_given_back_while_it_is_being_taken() -> None:
    place = Exclusive()

    class Words(str):
        """As a finalizer does that the garbage collector runs at this moment."""

        __slots__ = ()

        def __format__(self, spec: str) -> str:
            place.give_back(first)
            return "another"

    first = place.take("first")
    with pytest.raises(SessionError, match="another cannot start: first is running already"):
        place.take(Words())
    assert place.take("next") is place.holder
