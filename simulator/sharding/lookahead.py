"""How many rows a cache with lookahead brings, keeps, shares and gives back, by the popularity of keys.

Everything is an expectation over batches of lookups that are drawn independently of each other. With M
lookups in the batches of all ranks together and d(m) the distinct keys among m lookups, a key that one
batch uses and none of the L before is counted by d((L + 1) M) - d(L M), and one that is looked up once
among n lookups by n (d(n) - d(n - 1)) (our derivations; for keys with given chances the first is the sum
of q (1 - q)^L, q = 1 - (1 - p)^M). They need nothing of a popularity but its d.
"""

from collections.abc import Callable
from dataclasses import dataclass

from simulator.quantities import CopyWork, ServerWork, Work
from simulator.sharding.moves import access, width_total
from simulator.sharding.served import Rows, Served
from simulator.workload.tables import KEY_BYTES, EmbeddingTable


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Rows per batch, by width, when rows are kept that one of the next `depth` batches uses.

    The cache is the same on `ranks` ranks and holds what any of them needs (logically replicated), but
    each rank writes back its even part of what leaves it, and a row that is looked up once is held by
    the one rank that needs it. With one rank, the cache is its own.
    """

    served: Served
    depth: int
    ranks: int

    def _rows(self, of: Callable[["_Batches"], float]) -> Rows:
        return self.served.rows(lambda table: of(_Batches(table, self._lookups(table), self.depth)))

    def _lookups(self, table: EmbeddingTable) -> float:
        return table.draws(self.served.step.workload.batch * self.ranks)

    @property
    def distinct(self) -> Rows:
        """Rows of a batch of all ranks."""
        return self._rows(lambda keys: keys.distinct(1))

    @property
    def prefetched(self) -> Rows:
        """Rows that enter the cache: no batch used them within the lookahead before."""
        return self._rows(lambda keys: keys.entering)

    @property
    def fetched(self) -> Rows:
        """Rows that one rank fetches: of those that enter, what others alone need is left to them."""
        others = 1.0 - 1.0 / self.ranks
        return self._rows(lambda keys: keys.entering - others * keys.entering_single)

    @property
    def written(self) -> Rows:
        """Rows that one rank writes back: an even part of those that leave, as many as enter."""
        return self._rows(lambda keys: keys.entering / self.ranks)

    @property
    def kept(self) -> Rows:
        """Rows that `depth` + 1 batches use, less those that enter the cache in them: hits at first use."""
        batches = self.depth + 1
        return self._rows(lambda keys: max(0.0, keys.distinct(batches) - batches * keys.entering))

    @property
    def used(self) -> Rows:
        """Rows that `depth` + 1 batches use."""
        return self._rows(lambda keys: keys.distinct(self.depth + 1))

    @property
    def sync_now(self) -> Rows:
        """Rows whose gradients all ranks need before the next batch, which uses them as well."""
        return self._rows(lambda keys: keys.shared)

    @property
    def no_sync(self) -> Rows:
        """Rows looked up once, and not again within the lookahead: no other rank needs their gradients."""
        return self._rows(lambda keys: keys.single)

    @property
    def no_sync_of_one(self) -> Rows:
        """Those of one rank."""
        return {width: count / self.ranks for width, count in self.no_sync.items()}

    @property
    def sync_later(self) -> Rows:
        """All other rows of a batch: their gradients have a whole batch's time to be added up."""
        return self._rows(lambda keys: keys.distinct(1) - keys.shared - keys.single)

    @property
    def synchronized(self) -> Rows:
        """Rows of a batch that more than one rank may need: all but those looked up once."""
        return self._rows(lambda keys: keys.distinct(1) - keys.single)

    @property
    def cached(self) -> Rows:
        """Rows in one rank's full cache: those of `depth` batches, without the single ones of other ranks."""
        others = 1.0 - 1.0 / self.ranks
        return self._rows(lambda keys: keys.distinct(self.depth) - others * keys.once(self.depth))

    @property
    def cached_bytes(self) -> float:
        """Bytes of the cached rows and their optimizer state."""
        return self.bytes_with_state(self.cached)

    def bytes_with_state(self, rows: Rows) -> float:
        """Return the bytes of `rows`, their optimizer state included."""
        optimizer = self.served.step.workload.optimizer
        state = self.served.rows(lambda table: optimizer.row_state_bytes(table.dimension) / table.row_bytes)
        widths = {table.row_bytes for table in self.served.tables}
        tables = {width: sum(table.row_bytes == width for table in self.served.tables) for width in widths}
        return sum(count * width * (1.0 + state[width] / tables[width]) for width, count in rows.items())

    def update(self, rows: Rows) -> Work:
        """Return the optimizer's passes over cached `rows`."""
        return access(rows, "hbm", self.served.step.workload.optimizer.row_passes)

    def taken_apart(self, rows: Rows) -> Work:
        """Return what picks `rows` out of the cache into a vector of their own, or puts them back."""
        return CopyWork(float(width_total(rows)), "device")

    @property
    def oracle(self) -> Work:
        """One host reads all ranks' samples, decides on every key, and sends each rank its batch and lists.

        Lists name a row by its key: what to prefetch, how long to keep it, and which set it is of; every
        rank gets all of them.
        """
        step, servers = self.served.step, self.served
        workload, ranks = step.workload, step.ranks
        samples = workload.batch * ranks
        keys = sum(table.lookups(samples) for table in servers.tables)
        listed = sum(self.distinct.values()) + sum(self.prefetched.values())
        sent = samples * workload.input_bytes_per_sample + ranks * KEY_BYTES * 2 * listed
        return ServerWork(samples * workload.input.cpu_time, sent, keys)


@dataclass(frozen=True)
class _Batches:
    """The keys of one table in consecutive batches of `lookups` lookups each."""

    table: EmbeddingTable
    lookups: float
    depth: int

    def distinct(self, batches: float) -> float:
        """Keys that so many batches use."""
        return self.table.popularity.distinct(batches * self.lookups) if batches else 0.0

    def once(self, batches: float) -> float:
        """Keys that so many batches look up once, all together."""
        total = batches * self.lookups
        step = min(1.0, total / 2)
        if not step:
            return 0.0
        popularity = self.table.popularity
        return max(0.0, (popularity.distinct(total) - popularity.distinct(total - step)) / step * total)

    @property
    def shared(self) -> float:
        return self.table.popularity.overlap(self.lookups)

    @property
    def entering(self) -> float:
        return self.distinct(self.depth + 1) - self.distinct(self.depth)

    @property
    def single(self) -> float:
        """Looked up once in a batch and not in the `depth` after it; at most what the next does not use."""
        rest = self.distinct(1) - (self.shared if self.depth else 0.0)
        return min(rest, self.once(self.depth + 1) / (self.depth + 1))

    @property
    def entering_single(self) -> float:
        """Of those, the ones that the `depth` batches before did not use either."""
        return min(self.entering, self.once(2 * self.depth + 1) / (2 * self.depth + 1))
