"""Cases on a Dask cluster (``jumar[dask]``): a ``concurrent.futures.Executor`` whose workers may be on other machines.

Workers read and write the run's directory, so they must see it under the same path. A worker that dies has its tasks run again
by another one; a case that is run a second time goes on from what is on disk, under the case's own lock.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from jumar.core.text import escape
from jumar.errors import ConfigError, JumarError

if TYPE_CHECKING:
    from concurrent.futures import Executor

_TIMEOUT = 10


class DaskError(JumarError):
    """The scheduler cannot be reached, or has no workers."""


@contextlib.contextmanager
def dask_executor(address: str) -> Generator[Executor]:
    """Connect to the scheduler at ``HOST:PORT`` and give an executor on it; the connection is closed afterwards.

    Errors: :class:`jumar.errors.ConfigError` without the extra, :class:`DaskError` when nobody answers within ten seconds.
    """
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ConfigError("--executor dask://… needs the extra: pip install 'jumar[dask]'") from error
    try:
        client: Any = Client(f"tcp://{address}", timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DaskError(
            f"no Dask scheduler answers at {escape(address)} ({escape(str(error))}); start one: dask scheduler, dask worker"
        ) from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # of a scheduler that is gone it logs a traceback
    with client:
        if not client.scheduler_info()["workers"]:
            raise DaskError(f"the Dask scheduler at {escape(address)} has no workers; start some: dask worker {escape(address)}")
        # Not pure: the same case run twice is not the same result looked up. No retries: the scheduler moves the case of a worker
        # that died in any case, and a case that raised (the disk is full, say) would only pay for its step again.
        yield client.get_executor(pure=False)
