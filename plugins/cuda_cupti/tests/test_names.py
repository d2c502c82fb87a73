from __future__ import annotations

import pytest
from cuda_cupti import names
from cuda_cupti.names import LONGEST, demangled
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("mangled", "written"),
    [
        ("_Z12devprof_axpyIfEvPT_S0_i", "void devprof_axpy<float>(float*, float, int)"),
        (
            "_ZN2at6native4reluILi4ESt5arrayIPcLm1EEEEvT0_",
            "void at::native::relu<4, std::array<char*, 1ul> >(std::array<char*, 1ul>)",
        ),
        ("sm80_xmma_gemm_f32f32", "sm80_xmma_gemm_f32f32"),
        ("triton_poi_fused_0", "triton_poi_fused_0"),
        ("_Z", "_Z"),
        ("_Znonsense", "_Znonsense"),
        ("", ""),
        ("_Zë", "_Zë"),
    ],
)
def test_a_mangled_name_is_written_as_in_the_source_and_any_other_stays(mangled: str, written: str) -> None:
    assert demangled(mangled) == written


def test_a_name_too_long_for_kineto_stays_as_it_is() -> None:
    long = f"_Z{LONGEST}" + "f" * LONGEST + "v"
    assert demangled(long) == long
    assert demangled("_Z900" + "f" * 900 + "v") == "f" * 900 + "()"


def test_without_a_demangler_names_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_LIBRARIES", ("libdoes-not-exist.so.9",))
    names._demangler.cache_clear()
    demangled.cache_clear()
    try:
        assert demangled("_Z1fv") == "_Z1fv"
    finally:
        names._demangler.cache_clear()
        demangled.cache_clear()


@given(st.text(max_size=200))
def test_any_text_comes_back_as_text(text: str) -> None:
    assert isinstance(demangled("_Z" + text), str)


def test_nested_as_deep_as_a_name_can_be_it_still_comes_back() -> None:
    assert isinstance(demangled("_Z1f" + "P" * 8000 + "i"), str)
    assert isinstance(demangled("_Z1f" + "IS_" * 2000), str)
