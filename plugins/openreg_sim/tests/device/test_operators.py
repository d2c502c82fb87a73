"""Every operator of torch's own test collection gives on the device what it gives on the CPU."""

from __future__ import annotations

import itertools
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

SPARSE = {"sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse"}
"""These make or take sparse tensors, which the device does not have."""

HOST_ARGUMENT = {"tensor_split", "to"}
"""These take a tensor or a device that must stay the host's, which this test moves along with the others."""


def _collection() -> list[Any]:
    """Return torch's collection of operators with samples; its module needs a package of which it uses nothing here."""
    stand_in: Any = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase
    stand_in.assert_expected_inline = None
    sys.modules.setdefault("expecttest", stand_in)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if op.dtypes]


@pytest.fixture(scope="module")
def collection() -> list[Any]:
    return _collection()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Operators warn about what they are asked for, which is not the subject; and tiny tensors want one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def _dtype(op: Any) -> torch.dtype:
    return torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]


def _samples(op: Any, count: int, requires_grad: bool = False) -> list[Any]:
    # not `op.sample_inputs`, which walks the whole stack for every sample to find a test of unittest's
    torch.manual_seed(0)
    return list(itertools.islice(op.sample_inputs_func(op, "cpu", _dtype(op), requires_grad), count))


def _moved(value: Any) -> Any:
    return tree_map(lambda leaf: leaf.to("openreg") if isinstance(leaf, torch.Tensor) else leaf, value)


def _copied(value: Any) -> Any:
    return tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, value)


def _keywords(sample: Any) -> dict[str, Any]:
    moved = dict(_moved(sample.kwargs))
    if str(moved.get("device")).startswith("cpu"):
        moved["device"] = "openreg"
    return moved


def _assert_same(expected: Any, found: Any, values: bool = True) -> None:
    expected_leaves, found_leaves = tree_leaves(expected), tree_leaves(found)
    assert len(expected_leaves) == len(found_leaves)
    for want, have in zip(expected_leaves, found_leaves, strict=True):
        if not isinstance(want, torch.Tensor):
            assert want == have or want != want
            continue
        assert have.device.type == "openreg"
        assert (have.shape, have.stride(), have.dtype) == (want.shape, want.stride(), want.dtype)
        if values:
            torch.testing.assert_close(have.cpu(), want, equal_nan=True)


def _failures(operators: list[Any], check: Callable[[Any], bool]) -> tuple[dict[str, str], int]:
    """Run a check over operators; return the failures by name, and how many operators were checked."""
    failures: dict[str, str] = {}
    checked = 0
    for op in operators:
        try:
            checked += check(op)
        except Exception as problem:  # noqa: BLE001  # all of them are to be reported together
            failures[op.full_name] = f"{type(problem).__name__}: {problem}"[:300]
    return failures, checked


def _on_cpu(call: Callable[[], Any]) -> tuple[bool, Any]:
    """Say whether the CPU can do it at all, and what it gives; some samples are for other devices."""
    torch.manual_seed(0)
    try:
        return True, call()
    except Exception:  # noqa: BLE001  # what the CPU cannot do is no expectation
        return False, None


def _forward(op: Any) -> bool:
    done = False
    for sample in _samples(op, 2):
        arguments = (sample.input, *sample.args)
        works, expected = _on_cpu(lambda a=arguments, s=sample: op.op(*_copied(a), **_copied(s.kwargs)))
        if not works:
            continue
        moved, keywords = _moved(arguments), _keywords(sample)
        torch.manual_seed(0)
        _assert_same(expected, op.op(*moved, **keywords), values="empty" not in op.name)
        done = True
    return done


def _gradients(op: Any, sample: Any, arguments: Any, keywords: Any) -> list[Any]:
    """Return the gradients of a sum over the results, with respect to every argument that the sample wants them for."""
    leaves: list[torch.Tensor] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            leaves.append(value.detach().clone().requires_grad_())
            return leaves[-1]
        return value

    torch.manual_seed(0)
    results = sample.output_process_fn_grad(op.op(*tree_map(leaf, arguments), **keywords))
    wanted = [result for result in tree_leaves(results) if isinstance(result, torch.Tensor) and result.requires_grad]
    total = torch.stack([(result.abs() if result.is_complex() else result).double().sum() for result in wanted]).sum()
    total.backward()
    return [each.grad for each in leaves if each.grad is not None]


def _backward(op: Any) -> bool:
    if not op.supports_autograd or not _dtype(op).is_floating_point:
        return False
    for sample in _samples(op, 1, requires_grad=True):
        arguments = (sample.input, *sample.args)
        works, expected = _on_cpu(lambda a=arguments, s=sample: _gradients(op, s, a, s.kwargs))
        if works and expected:
            _assert_same(expected, _gradients(op, sample, _moved(arguments), _keywords(sample)))
            return True
    return False


def _in_place(op: Any) -> bool:
    variant = op.get_inplace()
    if variant is None:
        return False
    for sample in _samples(op, 1):
        if not isinstance(sample.input, torch.Tensor):
            continue
        works, expected = _on_cpu(lambda s=sample: variant(*_copied((s.input, *s.args)), **s.kwargs))
        if works:
            target = _moved(_copied(sample.input))
            torch.manual_seed(0)
            found = variant(target, *_moved(sample.args), **_keywords(sample))
            assert found is target
            _assert_same(expected, found)
            return True
    return False


def _out(op: Any) -> bool:
    if not op.supports_out:
        return False
    for sample in _samples(op, 1):
        arguments = (sample.input, *sample.args)
        works, expected = _on_cpu(lambda a=arguments, s=sample: op.op(*_copied(a), **s.kwargs))
        if not works or not isinstance(expected, torch.Tensor):
            continue
        target = torch.empty(0, dtype=expected.dtype, device="openreg")
        torch.manual_seed(0)
        found = op.op(*_moved(arguments), **_keywords(sample), out=target)
        assert found is target
        assert (found.device.type, found.shape, found.dtype) == ("openreg", expected.shape, expected.dtype)
        if "empty" not in op.name:
            torch.testing.assert_close(found.cpu(), expected, equal_nan=True)
        return True
    return False


def test_results_are_those_of_the_cpu(collection: list[Any]) -> None:
    """Values, shapes, strides and dtypes agree, for random operators too, since the generators are alike."""
    failures, checked = _failures(collection, _forward)
    assert set(failures) == SPARSE | HOST_ARGUMENT, failures
    assert checked > 650


def test_gradients_are_those_of_the_cpu(collection: list[Any]) -> None:
    """Backward on the device's own autograd thread gives the CPU's gradients."""
    failures, checked = _failures(collection, _backward)
    assert set(failures) <= SPARSE | HOST_ARGUMENT, failures
    assert checked > 450


def test_in_place_variants_write_the_tensor_they_are_given(collection: list[Any]) -> None:
    """`x.op_()` returns x itself, with the CPU's values."""
    failures, checked = _failures(collection, _in_place)
    assert failures == {}
    assert checked > 120


def test_out_variants_resize_and_fill_the_tensor_they_are_given(collection: list[Any]) -> None:
    """`op(..., out=x)` with an empty x gives x the CPU's result, memory included."""
    failures, checked = _failures(collection, _out)
    assert set(failures) <= SPARSE, failures
    assert checked > 250
