"""The checks, a module per area.

Job: what a right plugin promises, as functions that find out.
In: a `Bench` with a plugin and a workload.
Out: nothing, or `CheckFailed` with what was expected and what came.
Never: knows a vendor, or pytest.
"""
