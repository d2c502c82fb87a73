"""Random numbers of the devices."""

from __future__ import annotations

import pytest
import torch


def test_seed_gives_the_numbers_of_a_cpu_generator() -> None:
    """Every device's generator is a CPU generator of its own, seeded by `torch.manual_seed` with the others."""
    torch.manual_seed(11)
    found = [torch.rand(4, device=device).cpu() for device in ("openreg:0", "openreg:1", "cpu")]
    assert found[0].equal(found[2])
    assert found[1].equal(found[2])


def test_devices_draw_apart_from_the_cpu() -> None:
    """Drawing on a device leaves the CPU's generator where it was, dropout included, and the other way round."""
    torch.manual_seed(5)
    torch.rand(3, device="openreg")
    torch.nn.functional.dropout(torch.ones(8, device="openreg"))
    torch.randn(2, 2, device="openreg").bernoulli_()
    expected = torch.Generator().manual_seed(5)
    assert torch.rand(3).equal(torch.rand(3, generator=expected))


def test_state_can_be_saved_and_restored() -> None:
    """State per device, of all devices, and within `fork_rng`."""
    state, states = torch.openreg.get_rng_state(), torch.openreg.get_rng_state_all()
    first = torch.rand(3, device="openreg").cpu()
    torch.openreg.set_rng_state(state)
    assert torch.rand(3, device="openreg").cpu().equal(first)
    torch.openreg.set_rng_state_all(states)
    with torch.random.fork_rng(devices=[0, 1], device_type="openreg"):
        torch.rand(5, device="openreg")
    assert torch.rand(3, device="openreg").cpu().equal(first)
    with pytest.raises(RuntimeError, match="set_rng_state"):
        torch.openreg.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_seeds_can_be_set_and_asked() -> None:
    """Seeds per device, of all devices, random ones, and negative ones."""
    torch.openreg.manual_seed_all(3)
    assert torch.openreg.initial_seed() == 3
    torch.openreg.manual_seed(-1)
    assert torch.openreg.initial_seed() == 2**64 - 1
    torch.openreg.seed()
    assert torch.openreg.initial_seed() != 2**64 - 1
    torch.openreg.seed_all()
    first = torch.openreg.initial_seed()
    with torch.openreg.device(1):
        assert torch.openreg.initial_seed() == first


def test_generators_of_the_device_can_be_passed() -> None:
    """An own generator is used, copied and refused where it does not belong."""
    generator = torch.Generator(device="openreg:1").manual_seed(4)
    assert (str(generator.device), generator.initial_seed()) == ("openreg:1", 4)
    first = torch.rand(3, generator=generator, device="openreg:1").cpu()
    generator.manual_seed(4)
    state = generator.get_state()
    assert torch.randn(3, generator=generator, device="openreg:1").shape == (3,)
    generator.set_state(state)
    assert torch.rand(3, generator=generator, device="openreg:1").cpu().equal(first)
    with pytest.raises(RuntimeError, match="'openreg' device type for generator but found 'cpu'"):
        torch.ones(3, device="openreg").uniform_(generator=torch.Generator())


def test_dropout_has_its_probability_and_scale() -> None:
    """Dropout keeps the mean; outside training it changes nothing; with probability one it drops all."""
    x = torch.ones(20000, device="openreg")
    dropped = torch.nn.functional.dropout(x, 0.25)
    assert sorted(dropped.unique().tolist()) == pytest.approx([0.0, 4 / 3])
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.02)
    assert torch.nn.functional.dropout(x, 0.25, training=False).equal(x)
    assert torch.native_dropout(x, 0.25, False)[0].equal(x)
    assert torch.nn.functional.dropout(x, 1.0).sum().item() == 0.0
