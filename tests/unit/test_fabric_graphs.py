import textwrap
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.hardware.fabric import Link
from simulator.hardware.graphs import (
    FabricGraph,
    FatTree,
    FullMesh,
    Group,
    Nics,
    Pcie,
    Rails,
    Switched,
    Tier,
    TorusWiring,
    Wiring,
    build,
    cut_bandwidth,
    draw,
    fold,
    from_file,
    from_mapping,
    route,
    wiring,
)

FAST, PORT, TRUNK = Link(300e9, 1e-6), Link(25e9, 2e-6), Link(100e9, 3e-6)
BOXES = """
name: two boxes
nodes:
  - {name: a, kind: accelerator}
  - {name: b, kind: accelerator}
  - {name: s, kind: switch}
links:
  - {from: a, to: s, bandwidth: 25 GB/s, latency: 1 us, count: 2, kind: nic}
  - {from: b, to: s, bandwidth: 200 Gb/s}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "fabric.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        from_file(written(folder, text))
    message = str(caught.value)
    assert "\n" not in message
    return message


# Graphs from a file


def test_a_file_becomes_a_graph_with_ranks_in_its_order(tmp_path: Path) -> None:
    fabric = from_file(written(tmp_path, BOXES))
    assert fabric.name == "two boxes"
    assert fabric.ranks == ("a", "b")
    assert isinstance(fabric.graph, nx.MultiDiGraph)
    assert len(fabric.links) == 6
    assert set(fabric.links.capacity) == {25e9}


def test_traffic_is_split_equally_over_parallel_links(tmp_path: Path) -> None:
    way = route(from_file(written(tmp_path, BOXES))).way(0, 1)
    assert way == {"a -> s": 0.5, "a -> s #2": 0.5, "s -> b": 1.0}


def test_plain_data_gives_the_same_graph_as_the_file(tmp_path: Path) -> None:
    data = {
        "nodes": [{"name": name, "kind": "accelerator"} for name in "ab"],
        "links": [{"from": "a", "to": "b", "bandwidth": "25 GB/s"}],
    }
    assert route(from_mapping(data)).way(1, 0) == {"b -> a": 1.0}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bandwidth: 25 GB/s", "bandwidth: -25 GB/s", ["fabric.yaml:8", "links[0].bandwidth", "negative"]),
        ("bandwidth: 25 GB/s", "bandwidth: 25", ["links[0].bandwidth", "needs a unit"]),
        ("latency: 1 us", "latncy: 1 us", ["latncy", 'did you mean "latency"']),
        ("from: b, to: s", "from: b, to: ss", ["links[1].to", 'no node is named "ss"', 'did you mean "s"']),
        ("name: b, kind: accelerator", "name: a, kind: accelerator", ['two ranks are named "a"', ":5"]),
        ("name: b, kind: accelerator", "name: b, kind: acelerator", ['did you mean "accelerator"']),
        ("  - {from: b, to: s, bandwidth: 200 Gb/s}", "", ['accelerator "b" has no link']),
        ("from: b, to: s", "one_way: true, from: b, to: s", ['accelerator "b" has no link in']),
        ("from: b, to: s", "from: b, to: b", ["link b -> b leads back"]),
        ("count: 2", "count: 0", ["links[0].count", "from 1 to"]),
        ("name: b,", "name: no,", ["nodes[1].name", "put names in quotes"]),
        ("name: b, kind", "kind", ["nodes[1]", "name is missing"]),
        ("nodes:", "nodes: 7\nspare:", ["unknown key", "spare"]),
    ],
)
def test_a_fault_in_a_file_is_refused_by_its_name(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    message = refusal(tmp_path, BOXES.replace(old, new))
    assert [word for word in words if word not in message] == [], message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "a mapping is needed"),
        ("nodes: [", "not valid YAML"),
        ("name: x\nname: y\n", '"name" is given twice'),
        ("nodes: &x [1]\nlinks: *x\n", "aliases"),
        ("nodes: !!python/object/apply:os.getcwd []\n", "tag"),
        ("nodes: " + "[" * 100 + "]" * 100, "levels deep"),
        ("name: 2024-99-99\n", "not valid YAML"),
        ("nodes: []\nlinks: []\n", "has no accelerators"),
        ("nodes: [3]\nlinks: []\n", "a mapping is needed, not 3"),
        ("[a]: 1\n", "keys must be text"),
    ],
)
def test_a_file_that_is_no_fabric_is_refused_in_one_line(tmp_path: Path, text: str, word: str) -> None:
    assert word in refusal(tmp_path, text)


def test_a_missing_or_binary_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        from_file(tmp_path / "none.yaml")
    (tmp_path / "fabric.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="no UTF-8 text"):
        from_file(tmp_path / "fabric.yaml")


CHAIN = """
nodes: [{name: a, kind: accelerator}, {name: b, kind: accelerator}, {name: c, kind: accelerator}]
links:
  - {from: a, to: b, bandwidth: 1 GB/s}
  - {from: b, to: c, bandwidth: 1 GB/s}
"""


def test_a_pair_without_a_way_is_named(tmp_path: Path) -> None:
    island = CHAIN.replace("[{name: a", "[{name: d, kind: accelerator}, {name: a")
    island = island.replace("from: b, to: c", "from: c, to: d")
    assert refusal(tmp_path, island).endswith('fabric: "d" cannot reach "a"')


def test_accelerators_forward_only_when_they_say_so(tmp_path: Path) -> None:
    message = refusal(tmp_path, CHAIN)
    assert '"a" cannot reach "c"' in message
    assert "forwards: true" in message
    relaying = CHAIN.replace("name: b, kind: accelerator", "name: b, kind: accelerator, forwards: true")
    way = route(from_file(written(tmp_path, relaying))).way(0, 2)
    assert list(way) == ["a -> b", "b -> c"]


def test_a_short_way_that_costs_more_is_not_taken(tmp_path: Path) -> None:
    triangle = CHAIN.replace("kind: accelerator}", "kind: accelerator, forwards: true}")
    dear = triangle + "  - {from: a, to: c, bandwidth: 1 GB/s, cost: 3}\n"
    even = triangle + "  - {from: a, to: c, bandwidth: 1 GB/s, cost: 2}\n"
    assert route(from_file(written(tmp_path, dear))).way(0, 2) == {"a -> b": 1.0, "b -> c": 1.0}
    split = route(from_file(written(tmp_path, even))).way(0, 2)
    assert split == {"a -> c": 0.5, "a -> b": 0.5, "b -> c": 0.5}


def test_ways_of_unequal_length_that_meet_are_added_up(tmp_path: Path) -> None:
    text = """
    nodes: [{name: a, kind: accelerator}, {name: m, kind: switch}, {name: n, kind: switch},
            {name: b, kind: accelerator}]
    links:
      - {from: a, to: m, bandwidth: 1 GB/s}
      - {from: m, to: n, bandwidth: 1 GB/s}
      - {from: a, to: n, bandwidth: 1 GB/s, cost: 2}
      - {from: n, to: b, bandwidth: 1 GB/s}
    """
    routes = route(from_file(written(tmp_path, text)))
    assert routes.way(0, 1) == {"a -> n": 0.5, "a -> m": 0.5, "m -> n": 0.5, "n -> b": 1.0}
    assert len(routes.link) == sum(len(routes.way(*pair)) for pair in [(0, 1), (1, 0)])


# Graphs made in Python


def graph_of(**link: float) -> "nx.MultiDiGraph[str]":
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_nodes_from("ab", kind="accelerator", forwards=False)
    fields = {"kind": "link", "bandwidth": 1e9, "latency": 0.0, "cost": 1, **link}
    graph.add_edge("a", "b", **fields)
    graph.add_edge("b", "a", **fields)
    return graph


@pytest.mark.parametrize(
    ("link", "word"),
    [
        ({"bandwidth": -1.0}, "link a -> b: bandwidth must be above zero, not -1"),
        ({"bandwidth": float("nan")}, "bandwidth must be above zero, not nan"),
        ({"latency": -2.0}, "latency must not be below zero, it is -2"),
        ({"cost": 0}, "cost must be above zero"),
    ],
)
def test_an_impossible_link_is_refused(link: dict[str, float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        FabricGraph(graph_of(**link), ("a", "b"))


@pytest.mark.parametrize(
    ("ranks", "word"),
    [
        ((), "no accelerators"),
        (("a", "a"), 'two ranks are named "a"'),
        (("a", "x"), 'rank "x" is not a node'),
    ],
)
def test_ranks_must_be_distinct_nodes(ranks: tuple[str, ...], word: str) -> None:
    with pytest.raises(InputError, match=word):
        FabricGraph(graph_of(), ranks)


def test_a_link_without_a_rate_is_refused_by_name() -> None:
    graph = graph_of()
    graph.add_edge("a", "b", kind="link", latency=0.0, cost=1)
    with pytest.raises(InputError, match="link a -> b lacks bandwidth"):
        FabricGraph(graph, ("a", "b"))


def test_all_pairs_of_a_large_fabric_are_not_routed_but_folded() -> None:
    large = build(Wiring((Group(65, 8, Switched(FAST), Nics(PORT, 8)),)))
    with pytest.raises(InputError, match="520 ranks; all pairs are routed up to 512 ranks: fold it"):
        route(large)
    assert fold(large).ranks == 520


def test_a_custom_graph_cannot_be_folded() -> None:
    with pytest.raises(InputError, match="custom graph"):
        fold(FabricGraph(graph_of(), ("a", "b")))


# Plans


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Group(1, 8, FullMesh(FAST), domain_hosts=2), "full mesh ends at the host"),
        (lambda: Group(1, 6, Pcie(FAST, 4, FAST)), "6 accelerators do not fill PCIe switches of 4"),
        (lambda: Group(2, 8, Switched(FAST), Nics(PORT, 3)), "3 NICs cannot be shared evenly by 8"),
        (lambda: Wiring((Group(2, 8, Switched(FAST)),)), "several fast domains need NICs"),
        (lambda: Wiring(()), "at least one group"),
        (lambda: FatTree(2, Tier(2, TRUNK), pod_leaves=2), "go together"),
        (lambda: Rails(2, None), "only relays"),
        (lambda: in_rails(Rails(2, None, relays=True)), "join one unit of 2 hosts, not 4 hosts"),
        (lambda: in_rails(Rails(2, Tier(1, TRUNK), relays=True), 2), "a NIC for each accelerator"),
        (lambda: in_rails(Rails(2, Tier(1, TRUNK)), 8), "on rails an accelerator has one NIC"),
        (lambda: in_rails(FatTree(3, Tier(1, TRUNK)), domain_hosts=2), "do not fill leaves of 3"),
        (lambda: Wiring((Group(2, 4, Switched(FAST), Nics(PORT, 1)),) * 2), "names of their own"),
        (lambda: TorusWiring((4, 4), FAST, (True,)), "wrap must be given for 2 axes"),
        (lambda: in_rails(FatTree(2, Tier(1, TRUNK))).resized(18), "18 ranks do not fill hosts of 4"),
    ],
)
def test_a_plan_that_cannot_be_wired_says_why(make: object, word: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=word):
        make()


def in_rails(network: FatTree | Rails, nics: int = 4, domain_hosts: int = 1) -> Wiring:
    return Wiring((Group(4, 4, Switched(FAST), Nics(PORT, nics), domain_hosts),), network)


def test_pcie_peers_turn_at_their_switch_or_go_through_host_memory() -> None:
    lane, memory = Link(16e9), Link(200e9)
    direct = route(build(Wiring((Group(1, 4, Pcie(lane, 2, lane)),))))
    staged = route(build(Wiring((Group(1, 4, Pcie(lane, 2, lane, memory)),))))
    assert list(direct.way(0, 1)) == ["host0/0 -> host0/pcie0", "host0/pcie0 -> host0/1"]
    assert list(staged.way(0, 1)) == [
        "host0/0 -> host0/pcie0_up",
        "host0/pcie0_up -> host0/pcie_up",
        "host0/pcie_up -> host0/pcie_down",
        "host0/pcie_down -> host0/pcie0_down",
        "host0/pcie0_down -> host0/1",
    ]
    crossed = staged.links.capacity[staged.links.kinds.index("host memory")]
    assert crossed == memory.bandwidth / 2  # every byte is written, then read


def test_a_relayed_flow_leaves_from_the_peer_on_the_rail_of_its_goal() -> None:
    fabric = build(in_rails(Rails(4, Tier(2, TRUNK), relays=True)))
    way = list(route(fabric).way(fabric.ranks.index("host0/1"), fabric.ranks.index("host2/3")))
    assert way[0] == "host0/1 -> host0/switch"
    assert "host0/nic3 -> leaf0/rail3" in way
    assert not any("spine" in link for link in way)


def test_accelerators_share_the_nics_of_their_host_in_order() -> None:
    fabric = build(Wiring((Group(2, 8, Switched(FAST), Nics(PORT, 2)),)))
    routes = route(fabric)
    used = [next(link for link in routes.way(rank, 8) if "/nic" in link) for rank in range(8)]
    assert used == [f"host0/{rank} -> host0/nic{rank // 4}" for rank in range(8)]


def test_ranks_count_through_groups_hosts_and_accelerators() -> None:
    groups = (
        Group(1, 2, Switched(FAST), Nics(PORT, 1), name="old"),
        Group(2, 1, FullMesh(FAST), Nics(PORT, 1), name="new"),
    )
    assert build(Wiring(groups)).ranks == ("host0/0", "host0/1", "host1/0", "host2/0")


def test_machines_of_the_catalog_have_a_wiring() -> None:
    for name in ("dgx_a100", "gb200_nvl72", "cloudmatrix_384"):
        cluster = catalog.machine(name).cluster(hosts=20)
        folded = fold(wiring(cluster))
        assert folded.ranks == cluster.ranks
        assert sum(pair.pairs for pair in folded.pairs) == cluster.ranks * (cluster.ranks - 1)


def test_a_cut_needs_ranks_on_both_sides() -> None:
    with pytest.raises(InputError, match="ranks on both sides"):
        cut_bandwidth(FabricGraph(graph_of(), ("a", "b")), [])


# Drawings


def test_a_drawing_names_levels_counts_and_rates() -> None:
    group = Group(192, 8, FullMesh(Link(28e9)), Nics(PORT, 8))
    text = draw(Wiring((group,), FatTree(16, Tier(8, TRUNK))))
    assert text == textwrap.dedent("""\
        1,536 accelerators in 192 hosts
        └─ 8 spines
           │  leaf up: 96 x 100 GB/s, 3 us
           │  oversubscribed 4 : 1
           └─ 12 leaves
              │  nic out: 1,536 x 25 GB/s, 2 us
              └─ 192 hosts
                 │  mesh: 10,752 x 28 GB/s
                 └─ 1,536 accelerators
        partners of each: 7 same host, 120 same leaf, 1,408 across""")


def test_every_drawing_fits_eighty_columns(tmp_path: Path) -> None:
    plans = [
        in_rails(Rails(2, Tier(2, TRUNK), relays=True)),
        in_rails(FatTree(1, Tier(2, TRUNK), 2, Tier(2, TRUNK))),
        Wiring((Group(3, 4, Switched(FAST), Nics(PORT, 4), 2, "a name that goes on" * 5),)),
        TorusWiring((16, 16, 64), TRUNK, (True, True, False)),
    ]
    long_name = BOXES.replace("two boxes", "many boxes " * 20)
    for fabric in [*plans, from_file(written(tmp_path, long_name))]:
        lines = draw(fabric).splitlines()
        assert len(lines) > 2
        assert max(map(len, lines)) <= 80


def test_a_custom_graph_is_drawn_by_its_kinds(tmp_path: Path) -> None:
    text = draw(from_file(written(tmp_path, BOXES)))
    assert "two boxes: 2 accelerators" in text
    assert "switch: 1" in text
    assert "nic: 4 x 25 GB/s, 1 us" in text


def test_a_built_graph_is_drawn_as_its_plan() -> None:
    plan = TorusWiring((4, 4), TRUNK)
    assert draw(build(plan)) == draw(plan)
    with pytest.raises(InputError, match="cannot be drawn"):
        draw(np.zeros(3))
