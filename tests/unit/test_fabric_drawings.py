"""Every fabric of the catalog is drawn by `recscale catalog show`, in 80 columns, with its own numbers."""

import pytest

from analysis.cli import running
from analysis.cli.views.fabrics import fabric_drawing
from simulator.hardware import Torus, TwoLevel, catalog
from simulator.units import format_bandwidth

NAMES = catalog.names("fabric")


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_keeps_to_80_columns_and_tells_the_rates_of_its_links(name: str) -> None:
    lines = fabric_drawing(name).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("…") for line in lines)
    fabric, drawn = catalog.fabric(name), "\n".join(lines)
    rates = [fabric.rate] if isinstance(fabric, Torus) else []
    if isinstance(fabric, TwoLevel):
        domain = fabric.domain_size(8)
        rates = [fabric.fast.rate, fabric.slow(4 * domain).rate]
        assert "4 hosts" in drawn or "4 fast domains" in drawn
    assert rates
    for rate in rates:
        if not isinstance(fabric, TwoLevel) or fabric.decay_workers is None or rate == fabric.fast.rate:
            assert format_bandwidth(rate) in drawn


@pytest.mark.parametrize("name", NAMES)
def test_the_command_draws_what_it_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert running.run(["catalog", "show", name]) == 0
    assert fabric_drawing(name) in capsys.readouterr().out


def test_other_hardware_is_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert running.run(["catalog", "show", "a100_80"]) == 0
    assert "└─" not in capsys.readouterr().out


def test_an_nvl72_is_drawn_as_trays_in_fast_domains() -> None:
    drawn = fabric_drawing("gb200_nvl72")
    assert "288 accelerators in 72 hosts" in drawn
    assert "71 same domain, 216 across" in drawn
