"""What a provider is: the stacks in Python are one."""

from __future__ import annotations

import inspect

from devprof import correlation
from devprof.correlation import CorrelationProvider, PythonStacks


def _signatures(of: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(of).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def test_the_stacks_in_python_have_exactly_the_methods_of_a_provider() -> None:
    assert _signatures(PythonStacks) == _signatures(CorrelationProvider)


def test_each_method_of_a_provider_has_its_function_in_the_room() -> None:
    for name, parameters in _signatures(CorrelationProvider).items():
        assert list(inspect.signature(getattr(correlation, name)).parameters) == parameters[1:], name
