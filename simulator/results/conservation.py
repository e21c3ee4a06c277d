"""Conservation of updates: of those that a run makes, which share is lost for good, or applied twice.

Rows are drawn as batches use them and replayed through the last batches of a timeline (`staleness_replay`).
Then nobody uses them until every stage that works ahead, late or seldom has had its turn, and the last
batch reads them: what it finds missing is in no store that anyone will read again. Late is something else:
an update that is missing when a batch reads, and there later on (`staleness`).
"""

from dataclasses import dataclass, field

import numpy as np

from simulator.quantities import IntArray
from simulator.results.key_classes import Reuse, classes, drawn_keys, longest_gap
from simulator.results.staleness import readers
from simulator.results.staleness_replay import Counts, Keys, Mask, Replay
from simulator.results.timeline import Timeline

FOLLOWED = 32  # batches whose updates are looked for


@dataclass(frozen=True)
class Updates:
    """Shares of all updates of rows: lost for good, and applied more than once.

    `where` names an update that is (empty: none is).
    """

    lost_share: float
    duplicated_share: float
    where: str = field(default="", compare=False)


def conserved(timeline: Timeline, column: int, reuse: Reuse) -> Updates | None:
    """Return what became of the updates of a run, on `column`.

    None where no stage says what it reads, and where a run is too short to tell what is late from what is
    lost.
    """
    pipeline = timeline.graph.pipeline
    seen, last = readers(pipeline), timeline.batches - 1
    settled = last - longest_gap(pipeline)
    if not seen or settled < 0:
        return None
    made = range(max(0, settled + 1 - FOLLOWED), settled + 1)
    keys = _read_once_more(drawn_keys(made, reuse, made, classes(pipeline, 1)), last)
    read = Replay(timeline, column, seen, keys).read_in([last])
    return max((_fate(keys, counts, last) for counts in read.values()), key=_share)


def _read_once_more(keys: Keys, batch: int) -> Keys:
    """Return `keys` that `batch` uses as well, and no other after those that do so far."""
    quiet = np.zeros((batch + 1 - keys.first - keys.batches, keys.uses.shape[1]), dtype=np.bool_)
    uses = np.concatenate([keys.uses, quiet])
    uses[-1] = True
    update = np.concatenate([keys.update, np.full(quiet.shape, keys.batches)])
    return Keys(keys.first, uses, keys.single, keys.hot, keys.own, update)


def _fate(keys: Keys, counts: Counts, read_in: int) -> Updates:
    """Return the shares of the updates made, of which the last reader has `counts`."""
    made = keys.uses[:-1].T
    found = np.zeros(made.shape, dtype=np.int64)
    known = min(made.shape[1], counts.shape[1])
    found[:, :known] = counts[:, :known]
    each = 1.0 / made.sum(axis=1)
    lost, again = made & (found == 0), np.where(made, np.maximum(found - 1, 0), 0)
    lost_share, duplicated_share = (float(np.mean(wrong.sum(axis=1) * each)) for wrong in (lost, again))
    return Updates(lost_share, duplicated_share, _where(keys, lost, found, read_in))


def _where(keys: Keys, lost: Mask, found: IntArray, read_in: int) -> str:
    """Say of one update that is lost or doubled where it shows."""
    for wrong, fate in ((lost, "is missing from"), (found > 1, "is in twice, in")):
        rows, batches = np.nonzero(wrong)
        if len(rows):
            return (
                f"the update of batch {keys.first + int(batches[-1])} {fate} a row that batch {read_in} reads"
            )
    return ""


def _share(updates: Updates) -> float:
    return updates.lost_share + updates.duplicated_share
