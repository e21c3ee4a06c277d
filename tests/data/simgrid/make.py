"""All-to-all exchanges simulated by SimGrid, and the matrices for them. Makes `results.json`.

    python3 make.py > results.json          # every case, one process each; minutes
    python3 make.py 16 columns no-spine     # one case, printed as JSON

Run it with an interpreter that has SimGrid's Python module (Debian and Ubuntu: python3-simgrid; frozen
with SimGrid 3.32). It needs nothing else, so that the matrices come out the same everywhere: they use
`random.Random`, whose sequence is fixed by its seed.

Model: CM02, latency 0, bandwidth factor 1, no TCP window limit; each host has one link up and one link
down of 25 GB/s and sends 100 MB in all, equal or skewed by receiver. With the spine, four pods of
hosts are joined by one link up and one link down per pod, oversubscribed four to one.
"""

import json
import random
import subprocess
import sys

SEED = 20261129
BYTES_PER_HOST = 100_000_000
NIC = 25e9
PODS = 4
OVERSUBSCRIPTION = 4
CASES = [
    (ranks, skew, spine)
    for ranks in (16, 64, 128, 256)
    for skew in ("uniform", "columns")
    for spine in (False, True)
    if ranks <= 128 or not spine
]


def matrix(ranks: int, skew: str) -> list[list[int]]:
    """Return whole bytes from row to column, 0 on the diagonal; columns are lognormal, sigma 0.3."""
    draws = random.Random(SEED + ranks)
    factor = [draws.lognormvariate(0.0, 0.3) if skew == "columns" else 1.0 for _ in range(ranks)]
    size = [round(BYTES_PER_HOST / ranks * each) for each in factor]
    return [[0 if source == target else size[target] for target in range(ranks)] for source in range(ranks)]


def pod_of(rank: int, ranks: int) -> int:
    """Return the pod of a rank: blocks of equal size."""
    return rank * PODS // ranks


def pod_bandwidth(ranks: int) -> float:
    """Return what the spine carries out of, or into, one pod, bytes/s."""
    return NIC * ranks / PODS / OVERSUBSCRIPTION


def simulate(ranks: int, skew: str, spine: bool) -> dict[str, object]:
    """Run one exchange in SimGrid."""
    import simgrid

    options = [
        "network/model:CM02",
        "network/TCP-gamma:0",
        "network/latency-factor:1",
        "network/bandwidth-factor:1",
        "network/crosstraffic:0",
    ]
    engine = simgrid.Engine(["all-to-all", "--log=root.thres:error", *(f"--cfg={each}" for each in options)])
    hosts = build(simgrid, ranks, spine)
    ends: list[float] = []
    simgrid.Actor.create("sender", hosts[0], lambda: send(simgrid, hosts, matrix(ranks, skew), ends))
    engine.run()
    return {
        "ranks": ranks,
        "skew": skew,
        "spine": spine,
        "seed": SEED,
        "flows": len(ends),
        "makespan_s": max(ends),
        "mean_finish_s": sum(ends) / len(ends),
        "simgrid": ".".join(str(part) for part in simgrid.simgrid_version.split(".")[:2]),
    }


def build(simgrid: object, ranks: int, spine: bool) -> list[object]:
    """Return the hosts of a platform in which every pair has a route."""
    zone = simgrid.NetZone.create_full_zone("fabric")
    hosts = [zone.create_host(f"host-{rank}", 1e9) for rank in range(ranks)]
    links = {
        (way, kind, at): zone.create_link(f"{kind}-{way}-{at}", rate).set_latency(0).seal()
        for way in ("up", "down")
        for kind, count, rate in (("nic", ranks, NIC), ("pod", PODS, pod_bandwidth(ranks)))
        for at in range(count)
    }
    for source in range(ranks):
        for target in range(ranks):
            if source != target:
                route = [links[step] for step in steps(source, target, ranks, spine)]
                ends = (hosts[source].netpoint, hosts[target].netpoint)
                hops = [simgrid.LinkInRoute(link) for link in route]
                zone.add_route(*ends, None, None, hops, False)
    zone.seal()
    return hosts


def steps(source: int, target: int, ranks: int, spine: bool) -> list[tuple[str, str, int]]:
    """Return the links from host to host."""
    pods = pod_of(source, ranks), pod_of(target, ranks)
    middle = [("up", "pod", pods[0]), ("down", "pod", pods[1])] if spine and pods[0] != pods[1] else []
    return [("up", "nic", source), *middle, ("down", "nic", target)]


def send(simgrid: object, hosts: list[object], sizes: list[list[int]], ends: list[float]) -> None:
    """Start all flows at once and note when each of them ends."""
    pairs = [(s, t) for s in range(len(hosts)) for t in range(len(hosts)) if sizes[s][t]]
    flows = [simgrid.Comm.sendto_async(hosts[s], hosts[t], sizes[s][t]) for s, t in pairs]
    simgrid.Comm.wait_all(flows)
    ends.extend(flow.finish_time for flow in flows)


def main(words: list[str]) -> None:
    """Print one case, or all cases, as JSON."""
    if words:
        ranks, skew, spine = words
        print(json.dumps(simulate(int(ranks), skew, spine == "spine")))
        return
    found = []
    for ranks, skew, spine in CASES:
        case = [sys.executable, __file__, str(ranks), skew, "spine" if spine else "no-spine"]
        found.append(json.loads(subprocess.run(case, capture_output=True, text=True, check=True).stdout))
        print("done:", *case[2:], file=sys.stderr)
    print("[" + ",\n ".join(json.dumps(each) for each in found) + "]")


if __name__ == "__main__":
    main(sys.argv[1:])
