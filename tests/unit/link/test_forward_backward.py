"""Arrows from forward ops to backward ops."""

from __future__ import annotations

import numpy as np

from devprof.link import forward_backward

MAIN, BACK, OTHER = 11, 22, 33


def pairs(*ops: tuple[int, int, int, int, int]) -> list[tuple[int, int]]:
    """(forward, backward) of ops given as (start, end, thread, sequence number, forward thread)."""
    columns = np.array(ops, dtype=np.int64).reshape(-1, 5).T
    found = forward_backward(*columns)
    assert len(found) == len(found.forward)
    return list(zip(found.forward.tolist(), found.backward.tolist(), strict=True))


def test_a_backward_op_on_another_thread_finds_its_forward_op() -> None:
    assert pairs((0, 10, MAIN, 5, 0), (20, 30, BACK, 5, MAIN)) == [(0, 1)]


def test_pairs_are_numbered_in_the_order_in_which_the_backward_ops_ended() -> None:
    forward = [(0, 10, MAIN, 1, 0), (10, 20, MAIN, 2, 0), (20, 30, MAIN, 3, 0)]
    backward = [(40, 50, BACK, 3, MAIN), (50, 60, BACK, 2, MAIN), (60, 70, BACK, 1, MAIN)]
    assert pairs(*forward, *backward) == [(2, 3), (1, 4), (0, 5)]


def test_of_several_forward_ops_with_a_number_the_one_that_started_last_made_the_node() -> None:
    matmul, mm = (0, 20, MAIN, 5, 0), (5, 15, MAIN, 5, 0)
    assert pairs(matmul, mm, (30, 40, BACK, 5, MAIN)) == [(1, 2)]


def test_of_nested_backward_ops_the_inner_one_gets_the_arrow() -> None:
    engine, node = (20, 40, BACK, 5, MAIN), (25, 35, BACK, 5, MAIN)
    assert pairs((0, 10, MAIN, 5, 0), engine, node) == [(0, 2)]


def test_of_backward_ops_that_end_together_the_inner_one_gets_the_arrow() -> None:
    assert pairs((0, 10, MAIN, 5, 0), (20, 40, BACK, 5, MAIN), (25, 40, BACK, 5, MAIN)) == [(0, 2)]


def test_a_second_backward_pass_over_the_graph_gets_no_arrow() -> None:
    assert pairs((0, 10, MAIN, 5, 0), (20, 30, BACK, 5, MAIN), (40, 50, BACK, 5, MAIN)) == [(0, 1)]


def test_a_number_that_is_used_again_gets_an_arrow_again() -> None:
    first = [(0, 10, MAIN, 5, 0), (20, 30, BACK, 5, MAIN)]
    second = [(40, 50, MAIN, 5, 0), (60, 70, BACK, 5, MAIN)]
    assert pairs(*first, *second) == [(0, 1), (2, 3)]


def test_threads_do_not_share_numbers() -> None:
    forward = [(0, 10, MAIN, 5, 0), (2, 8, OTHER, 5, 0)]
    assert pairs(*forward, (20, 30, BACK, 5, OTHER), (40, 50, BACK, 5, MAIN)) == [(1, 2), (0, 3)]


def test_without_a_number_or_without_the_other_end_there_is_no_arrow() -> None:
    assert pairs((0, 10, MAIN, -1, 0), (20, 30, BACK, -1, MAIN)) == []
    assert pairs((0, 10, MAIN, 5, 0), (20, 30, BACK, 6, MAIN)) == []
    assert pairs((0, 10, MAIN, 5, 0), (20, 30, BACK, 5, OTHER)) == []
    assert pairs((0, 10, MAIN, 5, 0)) == []
    assert pairs() == []


def test_a_backward_op_that_ended_before_its_forward_op_gets_no_arrow() -> None:
    assert pairs((0, 50, MAIN, 5, 0), (20, 30, BACK, 5, MAIN)) == []
