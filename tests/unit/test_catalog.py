"""The hardware catalog: every number has a unit, a source and a confidence, and published figures hold."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest
import yaml

from simulator.errors import InputError
from simulator.hardware import Torus, TwoLevel, catalog
from simulator.hardware.catalog.build import DIMENSIONS, PROSE, quantity

Number = tuple[str, str, Any]  # where it stands, field, mapping

READERS: Mapping[str, Any] = {
    "accelerator": catalog.accelerator,
    "host": catalog.host,
    "nic": catalog.nic,
    "fabric": catalog.fabric,
    "machine": catalog.machine,
}
# tests/unit/test_collective_curves.py and tests/unit/test_software.py walk their files
OWN_TESTS = {"collective", "gemm", "software"}
# what files hold beside entries, where it is not the sources that several numbers share
SECTIONS = {"gemm": ("general", "units"), "software": ("gather_efficiency", "two_stream_factor")}
EVERYTHING = [(kind, name) for kind in catalog.KINDS if kind not in OWN_TESTS for name in catalog.names(kind)]
TPUS = {"tpu_v3", "tpu_v4", "tpu_v5p", "tpu_v6e"}
GPUS = {"v100", "v100_16", "a100_40", "a100_80", "h100", "h200", "b200", "gb200"}


def numbers(kind: str, name: str) -> Iterator[Number]:
    """Yield every field of an entry that is not prose, nested ones under the field they belong to."""
    for field, value in catalog.entry(kind, name).items():
        if field == "peak_flops":
            yield from ((f"{name}.{field}.{precision}", field, rate) for precision, rate in value.items())
        elif field not in PROSE:
            yield f"{name}.{field}", field, value


def problem(number: Number) -> str | None:
    """Say what is wrong with a catalog number, or nothing."""
    where, field, raw = number
    if not isinstance(raw, dict) or {"value", "source", "confidence"} - raw.keys():
        return f"{where}: value, source and confidence are needed"
    priced = field == "price_usd_per_hour"
    if priced != ("of" in raw):
        return f"{where}: a price, and nothing else, says with `of` which machine it is the price of"
    if unknown := raw.keys() - {"value", "source", "confidence", "range", "note", *(["of"] * priced)}:
        return f"{where}: unknown keys {sorted(unknown)}"
    if field not in DIMENSIONS:
        return f"{where}: no dimension is known for {field}"
    if raw["confidence"] not in catalog.CONFIDENCE:
        return f'{where}: unknown confidence "{raw["confidence"]}"'
    return problem_of_source(where, raw) or problem_of_value(where, field, raw)


def problem_of_source(where: str, raw: Mapping[str, Any]) -> str | None:
    """A source names a document in words; an assumption says why."""
    if not isinstance(raw["source"], str) or len(raw["source"].split()) + raw["source"].count("/") < 4:
        return f"{where}: the source does not say where to look"
    excused = re.search(r"\bno (measurement|figure|document|measured|all-to-all)\b", raw["source"])
    if (raw["confidence"] == "assumed") != bool(excused):
        return f"{where}: assumed values, and only they, say that no source was found"
    return None


def problem_of_value(where: str, field: str, raw: Mapping[str, Any]) -> str | None:
    """Values have units that parse; ranges enclose them."""
    if field == "dims":
        return None if all(quantity(field, length) > 0 for length in raw["value"]) else f"{where}: bad dims"
    try:
        value = quantity(field, raw["value"])
        low, high = [quantity(field, end) for end in raw.get("range", [raw["value"]] * 2)]
    except InputError as error:
        return f"{where}: {error}"
    return None if low <= value <= high else f"{where}: the range does not enclose the value"


@pytest.mark.parametrize(("kind", "name"), EVERYTHING)
def test_every_number_has_a_unit_a_source_and_a_confidence(kind: str, name: str) -> None:
    assert [found for number in numbers(kind, name) if (found := problem(number))] == []


@pytest.mark.parametrize(("kind", "name"), EVERYTHING)
def test_every_entry_becomes_a_valid_value_object(kind: str, name: str) -> None:
    part = READERS[kind](name)
    assert READERS[kind](name) is part
    assert isinstance(part, TwoLevel | Torus) or part.name == name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "25"}, "needs a unit"),
        ({"value": 25}, "needs a unit"),
        ({"value": "25 Gbps"}, "unknown unit"),
        ({"value": "25 GB"}, "a bandwidth is needed"),
        ({"source": None}, "does not say where"),
        ({"source": "a book"}, "does not say where"),
        ({"confidence": "certain"}, "unknown confidence"),
        ({"confidence": "assumed"}, "assumed values"),
        ({"range": ["26 GB/s", "30 GB/s"]}, "does not enclose"),
        ({"why": "because"}, "unknown keys"),
    ],
)
def test_the_walk_refuses_a_number_that_is_not_well_documented(change: dict[str, Any], message: str) -> None:
    good = {"value": "25 GB/s", "source": "a document that can be looked up", "confidence": "vendor"}
    assert problem(("x.between", "between", good)) is None
    found = problem(("x.between", "between", good | change))
    assert found is not None
    assert message in found


@pytest.mark.parametrize(("field", "of"), [("price_usd_per_hour", {}), ("power_watts", {"of": "dgx_h100"})])
def test_the_walk_refuses_a_price_of_no_machine_and_a_machine_without_a_price(
    field: str, of: dict[str, str]
) -> None:
    number = {"value": "2 USD/h", "source": "a document that can be looked up", "confidence": "vendor", **of}
    found = problem((f"x.{field}", field, number))
    assert found is not None and "which machine" in found


@pytest.mark.parametrize("key", ["value", "source", "confidence"])
def test_the_walk_refuses_a_number_that_lacks_a_part(key: str) -> None:
    good = {"value": "25 GB/s", "source": "a document that can be looked up", "confidence": "vendor"}
    del good[key]
    assert problem(("x.between", "between", good)) == "x.between: value, source and confidence are needed"


def test_the_walk_refuses_a_bare_number() -> None:
    assert problem(("x.between", "between", 25e9)) == "x.between: value, source and confidence are needed"


def test_every_catalog_file_is_walked_and_has_no_repeated_name() -> None:
    folder = files("simulator.hardware.catalog")
    found = {item.name for item in folder.iterdir() if item.name.endswith(".yaml")}
    assert found == set(catalog.KINDS.values())
    for kind, file in catalog.KINDS.items():
        text = folder.joinpath(file).read_text(encoding="utf-8")
        headings = re.findall(r"^  (\w+):(?! &)", text.partition("\nentries:\n")[2], re.MULTILINE)
        assert sorted(headings) == list(catalog.names(kind))
        assert set(yaml.safe_load(text)) == {*SECTIONS.get(kind, ("sources",)), "entries"}


# published figures


@pytest.mark.parametrize(
    ("name", "precision", "teraflops"),
    [
        ("v100", "fp16", 125),
        ("a100_40", "bf16", 312),
        ("a100_80", "bf16", 312),
        ("a100_80", "tf32", 156),
        ("h100", "bf16", 990),
        ("h200", "bf16", 990),
        ("b200", "bf16", 2250),
        ("gb200", "bf16", 2500),
        ("ascend_910b", "fp16", 376),
        ("ascend_910b", "bf16", 353.9),
        ("tpu_v3", "bf16", 140),
        ("tpu_v4", "bf16", 275),
        ("tpu_v5p", "bf16", 459),
        ("tpu_v6e", "bf16", 918),
    ],
)
def test_published_peaks_hold(name: str, precision: str, teraflops: float) -> None:
    assert catalog.accelerator(name).peak(precision) == pytest.approx(teraflops * 1e12, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "gigabytes", "bandwidth"),
    [
        ("v100", 32, 900e9),
        ("a100_40", 40, 1555e9),
        ("a100_80", 80, 2039e9),
        ("h100", 80, 3350e9),
        ("h200", 141, 4800e9),
        ("ascend_910b", 68.7, 1.6 * 2**40),
        ("tpu_v4", 34.36, 1200e9),
        ("tpu_v6e", 32, 1638e9),
    ],
)
def test_published_memories_hold(name: str, gigabytes: float, bandwidth: float) -> None:
    chip = catalog.accelerator(name)
    assert chip.hbm_bytes == pytest.approx(gigabytes * 1e9, rel=1e-3)
    assert chip.hbm_bandwidth == pytest.approx(bandwidth, rel=1e-3)


def test_prices_are_per_hour_and_power_is_in_watts() -> None:
    assert catalog.accelerator("v100").price_usd_per_hour == 3.06
    assert catalog.accelerator("h100").power_watts == 700


def test_what_was_not_found_is_left_unknown() -> None:
    assert catalog.accelerator("ascend_910b").price_usd_per_hour is None
    assert catalog.accelerator("tpu_v5p").power_watts is None


def test_only_tpus_have_sparse_cores() -> None:
    having = {name for name in catalog.names("accelerator") if catalog.accelerator(name).sparse_cores}
    assert having == TPUS
    assert {name for name in catalog.names("accelerator") if catalog.accelerator(name).kind == "gpu"} == GPUS


def test_two_dies_of_a_910c_make_the_published_package() -> None:
    die = catalog.accelerator("ascend_910c")
    assert 2 * die.peak("fp16") == 752e12
    assert 2 * die.hbm_bytes == 128 * 2**30
    assert catalog.machine("cloudmatrix_384").cluster(48).ranks == 2 * 384


@pytest.mark.parametrize(("name", "terabytes"), [("tpu_v4_pod", 24.0), ("tpu_v6e_pod", 3.2)])
def test_a_full_pod_has_about_the_bisection_that_its_maker_prints(name: str, terabytes: float) -> None:
    pod = catalog.fabric(name)
    assert isinstance(pod, Torus)
    assert pod.bisection_bandwidth() == pytest.approx(terabytes * 1e12, rel=0.11)


def test_the_fast_domain_of_an_nvl72_is_larger_than_its_host() -> None:
    rack = catalog.machine("gb200_nvl72")
    assert rack.per_host == 4
    assert rack.fabric.domain_size(rack.per_host) == 72


def test_a_dgx_a100_gives_each_accelerator_a_200_gigabit_card() -> None:
    fabric = catalog.machine("dgx_a100").fabric
    assert isinstance(fabric, TwoLevel)
    assert fabric.between == catalog.nic("nic_200g").bandwidth == 25e9
    assert fabric.within == 300e9


def test_the_polaris_fabric_falls_with_scale_as_it_was_measured() -> None:
    """Bus bandwidth 9.4 GB/s on 2 hosts and 3.4 on 540; through the NIC goes the share of peers outside."""
    fabric = catalog.fabric("slingshot_a100")
    assert isinstance(fabric, TwoLevel)
    measured = 3.4 / (9.4 * 8 / 7 * 4 / 8)
    assert fabric.slow(2160).rate / fabric.slow(8).rate == pytest.approx(measured, rel=0.01)


# names


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r'no accelerator "a100_8" \(did you mean "a100_80"\?\)'):
        catalog.accelerator("a100_8")


def test_an_unknown_name_far_from_any_other_lists_what_there_is() -> None:
    with pytest.raises(InputError, match=r"no nic .*allowed: nic_100g, nic_200g, nic_25g, nic_400g"):
        catalog.nic("zzz")


@pytest.mark.parametrize("kind", sorted(READERS))
def test_every_reader_refuses_an_unknown_name(kind: str) -> None:
    with pytest.raises(InputError, match=f"the catalog has no {kind}"):
        READERS[kind]("no_such_thing")


def test_an_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r'no kind "fabrics" \(did you mean "fabric"\?\)'):
        catalog.names("fabrics")


def test_a_raw_entry_shows_value_source_confidence_and_range() -> None:
    price = catalog.entry("accelerator", "h100")["price_usd_per_hour"]
    assert price["value"] == "6.88 USD/h"
    assert price["confidence"] == "secondary"
    assert price["range"] == ["4.92 USD/h", "12.29 USD/h"]
    assert "Amazon EC2" in price["source"]


def test_a_count_that_is_not_whole_is_refused() -> None:
    with pytest.raises(InputError, match="cores: a whole number is needed"):
        quantity("cores", "192")


def test_the_help_of_the_catalog_names_every_kind() -> None:
    from analysis.cli.commands.catalog import list_names
    from simulator.hardware.catalog import KINDS

    told = list_names.__annotations__["kind"].__metadata__[0].help
    assert told.rstrip(".").split(", ") == list(KINDS)
