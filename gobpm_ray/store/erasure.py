"""The end of an engine's keys: what `run` leaves of an engine that lived for one command only.

It knows that all keys of an engine begin with its partition's tag. It refuses to ask whether somebody still uses them.
"""

from __future__ import annotations

import re

from gobpm_ray.store.connection import open_client, store_errors
from gobpm_ray.store.keys import Keys

BATCH = 500


def erase_engine(url: str, engine_id: str) -> int:
    """No key of this engine is left in the store; how many there were."""
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", Keys(engine_id).tag) + "*"
    erased = 0
    with open_client(url) as client, store_errors(f"erasing engine {engine_id}"):
        batch: list[bytes] = []
        for key in client.scan_iter(match=pattern, count=BATCH):
            batch.append(key)
            if len(batch) == BATCH:
                erased += int(client.unlink(*batch))
                batch.clear()
        if batch:
            erased += int(client.unlink(*batch))
    return erased
