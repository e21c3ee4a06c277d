"""Measures fetches from parameter servers by tables, keys and the way of asking; a program of one client."""

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.calibration.measure.rpc import RpcGrid, RpcPoint, point, repeated
from simulator.calibration.train.row_client import Calls, RowClient
from simulator.calibration.train.settings import Model, Settings
from simulator.quantities import IntArray

HEADER_BYTES = 8 * 5
KEY_BYTES = 8
ROWS_OF_A_TABLE = 4096


def rpc_points(grid: RpcGrid, servers: Sequence[str]) -> Iterator[RpcPoint]:
    """Yield what each pair of tables and keys took in each mode."""
    for tables, keys in grid.pairs:
        settings = _settings(grid, tables)
        for mode in Calls:
            client = RowClient(servers, settings, 0, mode)
            client.reset(1)
            yield _measured(client, keys)
            client.close()


def _settings(grid: RpcGrid, tables: int) -> Settings:
    return Settings(model=Model(tables=tables, rows=ROWS_OF_A_TABLE, dimension=grid.dimension))


def _measured(client: RowClient, keys: int) -> RpcPoint:
    model, servers = client.settings.model, len(client.addresses)
    places = [_places(model, server, servers, keys) for server in range(servers)]
    row_bytes = 4 * model.dimension
    calls = 1 if client.calls is Calls.coalesced else model.tables
    moved = servers * (model.tables * keys * (KEY_BYTES + row_bytes) + calls * HEADER_BYTES)
    shape = RpcPoint(client.calls.value, model.tables, keys, servers, row_bytes, float(moved), 0.0, 1.0, 0)
    return point(shape, repeated(lambda: client.fetch(places)))


def _places(model: Model, server: int, servers: int, keys: int) -> IntArray:
    """Return `keys` places of each table in the shard of a server, rising."""
    random = np.random.default_rng(server)
    rows = model.rows // servers
    inside = np.stack([np.sort(random.choice(rows - 1, keys, replace=False)) for _ in range(model.tables)])
    return np.asarray((inside + np.arange(model.tables)[:, None] * rows).reshape(-1), dtype=np.int64)
