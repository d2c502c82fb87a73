"""A plugin is left out for ever, or for as long as its hook still runs."""

from __future__ import annotations

import threading

from devprof.capture.quarantine import keep_out, kept_out, quarantined


def test_nobody_is_left_out_at_first() -> None:
    assert (kept_out("demo"), quarantined()) == (None, {})


def test_a_plugin_without_an_end_is_left_out_for_ever_with_its_first_reason() -> None:
    keep_out("demo", "hung")
    keep_out("demo", "hung again")
    keep_out("demo", "hurried", until=threading.Thread())
    assert (kept_out("demo"), kept_out("other"), quarantined()) == ("hung", None, {"demo": "hung"})


def test_a_plugin_is_left_out_while_its_thread_runs(release: threading.Event) -> None:
    thread = threading.Thread(target=release.wait, args=(60,))
    thread.start()
    keep_out("demo", "hurried", until=thread)
    assert quarantined() == {"demo": "hurried"}
    release.set()
    thread.join(60)
    assert (kept_out("demo"), quarantined()) == (None, {})


def test_a_hook_that_hangs_later_is_worse_than_one_that_was_hurried() -> None:
    keep_out("demo", "hurried", until=threading.Thread())
    keep_out("demo", "hung")
    assert quarantined() == {"demo": "hung"}
