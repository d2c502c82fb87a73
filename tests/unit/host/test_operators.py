"""`RecordFunction`: what a framework says of its ops, and what is recorded of it."""

from __future__ import annotations

import gc
import weakref
from contextlib import ExitStack
from contextvars import Context, copy_context
from typing import Any

import numpy as np
import pytest

from devprof.errors import UsageError
from devprof.host import RecordFunction, RecordScope, record_function
from devprof.model import ActivityType
from tests.unit.host.recordings import Range, recording, run_in_thread


class Tensor:
    """Has a shape and a dtype."""

    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.shape = shape
        self.dtype = dtype


def test_sequence_numbers_and_forward_threads_are_kept_where_they_are_given() -> None:
    with recording() as session:
        with RecordFunction("mul", sequence_nr=0):
            pass
        with RecordFunction("plain"):
            pass
        with RecordFunction("MulBackward", RecordScope.BACKWARD_FUNCTION, sequence_nr=0, forward_thread_id=77):
            pass
    backward = {"Sequence number": 0, "Fwd thread id": 77, "Record scope": 1}
    assert session.ranges == [
        Range("mul", 2, 3, items={"Sequence number": 0}),
        Range("plain", 4, 5),
        Range("MulBackward", 6, 7, items=backward),
    ]


def test_every_scope_but_the_usual_two_is_named() -> None:
    with recording() as session:
        for scope in RecordScope:
            with RecordFunction("range", scope):
                pass
    found = [(a.activity_type, a.metadata.get("Record scope")) for a in session.result.ranges.activities()]
    assert found == [
        (ActivityType.USER_ANNOTATION, None)
        if scope is RecordScope.USER_SCOPE
        else (ActivityType.CPU_OP, None if scope is RecordScope.FUNCTION else int(scope))
        for scope in RecordScope
    ]


def test_scopes_have_torchs_numbers() -> None:
    assert [scope.name for scope in RecordScope] == [
        "FUNCTION",
        "BACKWARD_FUNCTION",
        "TORCHSCRIPT_FUNCTION",
        "KERNEL_FUNCTION_DTYPE",
        "CUSTOM_CLASS",
        "BUILD_FEATURE",
        "LITE_INTERPRETER",
        "USER_SCOPE",
        "STATIC_RUNTIME_OP",
        "STATIC_RUNTIME_MODEL",
    ]
    assert list(RecordScope) == list(range(10))


def test_overloads_of_one_op_are_told_apart() -> None:
    with recording() as session:
        for overload_name in ("", "Tensor", "Scalar", "Tensor"):
            with RecordFunction("add", overload_name=overload_name):
                pass
    overloads = [r.items.get("Overload name") for r in session.ranges]
    assert ([r.name for r in session.ranges], overloads) == (["add"] * 4, [None, "Tensor", "Scalar", "Tensor"])


def test_inputs_are_kept_as_shapes_types_and_values_where_shapes_are_recorded() -> None:
    inputs = (Tensor(2, 3), 5, [Tensor(1), Tensor(4, dtype="int64")], None)
    with recording(record_shapes=True) as session, RecordFunction("op", inputs=inputs), RecordFunction("nothing"):
        pass
    assert [r.items for r in session.ranges] == [
        {
            "Input Dims": "[[2, 3], [], [[1], [4]], []]",
            "Input type": '["float", "Scalar", "TensorList", ""]',
            "Concrete Inputs": '["", "5", "", ""]',
        },
        {},
    ]


def test_inputs_are_not_looked_at_where_shapes_are_not_recorded() -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"somebody read {name}")

    with recording() as session, RecordFunction("op", inputs=(Untouchable(),)):
        pass
    assert session.ranges == [Range("op", 2, 3)]


def test_an_op_inside_user_ranges_knows_the_innermost_one_through_other_ops() -> None:
    names = [("outer", True), ("op", False), ("inner", True), ("a", False), ("b", False)]
    with recording() as session, ExitStack() as stack:
        for name, is_user in names:
            stack.enter_context(record_function(name) if is_user else RecordFunction(name))
    assert [(r.name, r.parent, r.user) for r in session.ranges] == [
        ("outer", "", ""),
        ("op", "outer", "outer"),
        ("inner", "op", "outer"),
        ("a", "inner", "inner"),
        ("b", "a", "inner"),
    ]


def test_an_op_keeps_none_of_its_inputs_once_it_is_left() -> None:
    tensor = Tensor(2)
    alive = weakref.ref(tensor)
    contexts: list[Context] = []
    with recording(record_shapes=True), RecordFunction("op", inputs=(tensor,)):
        contexts.append(copy_context())  # as a task takes it along
    del tensor
    gc.collect()
    assert alive() is None


def test_an_op_may_end_on_another_thread() -> None:
    op = RecordFunction("op")
    with recording() as session:
        op.__enter__()
        run_in_thread(lambda: op.__exit__(None, None, None))
        with RecordFunction("after"):
            pass
    assert [(r.name, r.start, r.end, r.parent, list(r.items)) for r in session.ranges] == [
        ("op", 2, 3, "", ["End thread"]),
        ("after", 4, 5, "", []),
    ]


def test_an_op_ends_with_an_exception() -> None:
    with recording() as session, pytest.raises(ValueError, match="no"), RecordFunction("op"):
        raise ValueError("no")
    assert session.ranges == [Range("op", 2, 3)]


def test_while_nobody_records_an_op_is_nothing() -> None:
    with RecordFunction("op") as op:
        assert op.block is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": None}, "a range's name is text; found NoneType None"),
        ({"overload_name": 3}, "overload_name is text; found int 3"),
        ({"scope": 99}, "scope is 99; expected a member of RecordScope"),
        ({"sequence_nr": 2**70}, "sequence_nr is 1180591620717411303424; expected a whole number of 64 bits"),
        ({"sequence_nr": 1.5}, "sequence_nr is 1.5; expected a whole number"),
        ({"forward_thread_id": None}, "forward_thread_id is None; expected a whole number"),
        ({"inputs": np.zeros(3)}, "inputs is a ndarray; expected a tuple or list of the op's inputs"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_op_that_is_made_wrongly_is_refused_before_it_is_entered(wrong: Any, message: str) -> None:
    with recording(record_shapes=True) as session:
        with pytest.raises(UsageError) as raised:
            RecordFunction(**{"name": "op", **wrong})
        with record_function("after"):
            pass
    assert str(raised.value) == message
    assert session.ranges == [Range("after", 2, 3)]


def test_what_is_nearly_a_text_or_a_number_is_taken_as_one() -> None:
    class Text(str):
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

    with recording() as session, RecordFunction(Text("op"), sequence_nr=np.int64(3)):  # type: ignore[arg-type]
        pass
    assert session.ranges == [Range("op", 2, 3, items={"Sequence number": 3})]
