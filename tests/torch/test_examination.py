"""What the doctor says of torch: which profiler and which stubs another backend has put into torch's places."""

from __future__ import annotations

from toyland import Program


def test_a_profiler_and_stubs_of_another_backend_are_told_and_our_own_are_not(program: Program) -> None:
    facts = program(
        """
        import toyland, torch
        from devprof.torch.examination import examine

        def notes():
            return [says for well, says in examine() if "another" in says or "of its own" in says]

        other = toyland.other_backend()
        with toyland.alone():
            stubs = toyland.Stubs()
            name = toyland.take_in(stubs=stubs)
            with torch.autograd.profiler.profile(use_device=toyland.backend()):
                torch.ones(3)
            alone = notes()
            other.other_register()
            with_factory = notes()
            other.other_register_stubs()
            with_both = notes()
            toyland.take_out(name)
        toyland.say(ours=stubs.count("record"), alone=alone, with_factory=with_factory, with_both=with_both)
        """,
        timeout_s=100,
    )
    assert facts["ours"] > 0
    assert facts["alone"] == []
    (factory,) = facts["with_factory"]
    assert factory.startswith("torch: the backend has registered a profiler of its own with torch (a factory in C++).")
    assert facts["with_both"] == [
        factory,
        "torch: another backend's stubs (5Stubs) are in the legacy profiler, which keeps one; a plugin's stubs stay out",
    ]
