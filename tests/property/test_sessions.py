"""Any order of calls to a profile, from two threads, and to the correlation stacks: what happens is what a model says."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import devprof
from devprof.correlation.stacks import PythonStacks
from devprof.errors import SessionError
from devprof.profiler.runs import PROFILES

THREADS = st.booleans()
"""True: the call is made on another thread."""


class Sessions(RuleBasedStateMachine):
    """Two profiles without torch, of which one runs at a time; ranges come and go meanwhile."""

    @initialize()
    def begin(self) -> None:
        self.profiles = [devprof.profile(activities=["cpu"], host="python") for _ in range(2)]
        self.pool = ThreadPoolExecutor(1)
        self.running: int | None = None
        self.open: list[tuple[Any, str, bool]] = []
        self.closed: set[str] = set()
        self.n_ranges = 0

    def call(self, elsewhere: bool, what: Callable[[], Any]) -> Any:
        return self.pool.submit(what).result() if elsewhere else what()

    @rule(which=st.integers(0, 1), elsewhere=THREADS)
    def start(self, which: int, elsewhere: bool) -> None:
        if self.running is None:
            self.call(elsewhere, self.profiles[which].start)
            self.running, self.closed = which, set()
            self.open = [(range_, name, False) for range_, name, _ in self.open]
        else:
            with pytest.raises(SessionError, match="running already"):
                self.call(elsewhere, self.profiles[which].start)

    @rule(which=st.integers(0, 1), elsewhere=THREADS)
    def stop(self, which: int, elsewhere: bool) -> None:
        prof = self.profiles[which]
        if self.running != which:
            with pytest.raises(SessionError, match="not running"):
                self.call(elsewhere, prof.stop)
            return
        self.call(elsewhere, prof.stop)
        self.running = None
        trace = prof.trace
        names = {trace.name_of(event) for event in range(len(trace))}
        still_open = {name for _, name, inside in self.open if inside}
        assert self.closed <= names <= self.closed | still_open

    @rule(which=st.integers(0, 1), elsewhere=THREADS)
    def step(self, which: int, elsewhere: bool) -> None:
        before = self.profiles[which].step_num
        self.call(elsewhere, self.profiles[which].step)
        assert self.profiles[which].step_num == before + 1

    @precondition(lambda self: len(self.open) < 5)
    @rule()
    def enter(self) -> None:
        self.n_ranges += 1
        name = f"range {self.n_ranges}"
        range_ = devprof.record_function(name)
        range_.__enter__()
        self.open.append((range_, name, self.running is not None))

    @precondition(lambda self: self.open)
    @rule()
    def leave(self) -> None:
        range_, name, inside = self.open.pop()
        range_.__exit__(None, None, None)
        if inside and self.running is not None:
            self.closed.add(name)

    @rule(elsewhere=THREADS)
    def range_elsewhere(self, elsewhere: bool) -> None:
        self.n_ranges += 1
        name = f"range {self.n_ranges}"

        def work() -> None:
            with devprof.record_function(name):
                pass

        self.call(elsewhere, work)
        if self.running is not None:
            self.closed.add(name)

    @invariant()
    def one_holds_the_turn(self) -> None:
        if hasattr(self, "running"):
            assert (PROFILES.holder is not None) == (self.running is not None)

    def teardown(self) -> None:
        if not hasattr(self, "running"):
            return
        while self.open:
            self.leave()
        if self.running is not None:
            self.stop(self.running, False)
        self.pool.shutdown()
        assert PROFILES.holder is None


class Stacks(RuleBasedStateMachine):
    """The stacks of op ids and user ids of one thread, beside two lists."""

    @initialize()
    def begin(self) -> None:
        self.stacks = PythonStacks()
        self.ids: tuple[list[int], list[int]] = ([], [])
        self.unbalanced = 0

    @rule(user=st.booleans(), number=st.integers(1, 2**63 - 1))
    def push(self, user: bool, number: int) -> None:
        (self.stacks.push_user_correlation_id if user else self.stacks.push_correlation_id)(number)
        self.ids[user].append(number)

    @rule(user=st.booleans())
    def pop(self, user: bool) -> None:
        (self.stacks.pop_user_correlation_id if user else self.stacks.pop_correlation_id)()
        if self.ids[user]:
            self.ids[user].pop()
        else:
            self.unbalanced += 1

    @rule()
    def new_generation(self) -> None:
        self.stacks.new_generation()
        self.ids, self.unbalanced = ([], []), 0

    @invariant()
    def the_same(self) -> None:
        if hasattr(self, "stacks"):
            assert tuple(self.stacks.current()) == tuple(ids[-1] if ids else 0 for ids in self.ids)
            assert tuple(self.stacks.depths()) == tuple(map(len, self.ids))
            assert self.stacks.unbalanced_pops() == self.unbalanced


Sessions.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
Stacks.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestSessions = Sessions.TestCase
TestStacks = Stacks.TestCase
