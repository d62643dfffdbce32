"""What the machine and the bare parts can do, measured in the same run as the engine: the disk, the store, Ray's
actors.

A figure of the engine means little by itself on a shared machine; beside these it becomes a ratio.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import redis
from pydantic import BaseModel

DOCUMENT_BYTES = 420

# One round trip per instance, and no more than a wake must do: write the document, drop the lease, add a deadline,
# pop the next id, write its token, return its document.
BARE_SCRIPT = b"""#!lua
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[4] .. ARGV[1], 'doc', ARGV[2])
  redis.call('HDEL', KEYS[4] .. ARGV[1], 'tk')
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
end
local head = redis.call('ZPOPMIN', KEYS[1])
if not head[1] then return nil end
redis.call('HSET', KEYS[4] .. head[1], 'tk', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], head[1])
return { head[1], redis.call('HGET', KEYS[4] .. head[1], 'doc') }
"""
KEYS = ("{bare}:ready", "{bare}:leases", "{bare}:due", "{bare}:i:")


class BareDocument(BaseModel):
    """A document of the size of a small checkpoint."""

    id: str
    version: int
    node: str
    deadline: int
    variables: dict[str, str | int]


def fdatasync_per_s(folder: Path, seconds: float = 0.5) -> float:
    """Appends of a commit's size, each followed by fdatasync: what `appendfsync always` costs on this disk."""
    path = folder / "fdatasync.probe"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        count = 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            os.write(descriptor, b"x" * 600)
            os.fdatasync(descriptor)
            count += 1
        return float(count / (time.perf_counter() - begin))
    finally:
        os.close(descriptor)
        path.unlink()


def _bare_worker(socket: str, barrier: Any, results: Any) -> None:
    client = redis.Redis(unix_socket_path=socket)
    script = client.script_load(BARE_SCRIPT)
    done, body = "", b""
    count = 0
    barrier.wait()
    begin = time.perf_counter()
    while True:
        token = f"{os.getpid()}:{count}"
        reply = client.evalsha(script, 4, *KEYS, done, body, 1_800_000_000_000 + count, token)
        if reply is None:
            break
        document = BareDocument.model_validate_json(reply[1])
        document.version += 1
        done, body = reply[0].decode(), document.model_dump_json().encode()
        count += 1
    results.put((begin, time.perf_counter(), count))


def bare_loop_per_s(socket: str, instances: int, os_processes: int) -> float:
    """Claims and commits a second of the bare loop over `instances` documents, by as many processes as the engine has
    actors."""
    client = redis.Redis(unix_socket_path=socket)
    document = BareDocument(id="", version=1, node="timer", deadline=1_800_000_000_000, variables={"fill": ""})
    missing = DOCUMENT_BYTES - len(document.model_dump_json())
    document.variables["fill"] = "x" * missing
    pipe = client.pipeline(transaction=False)
    for number in range(instances):
        pipe.hset(f"{KEYS[3]}{number}", "doc", document.model_dump_json())
        pipe.zadd(KEYS[0], {str(number): number})
    pipe.execute()
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(os_processes), context.Queue()
    workers = [
        context.Process(target=_bare_worker, args=(socket, barrier, results), daemon=True) for _ in range(os_processes)
    ]
    for worker in workers:
        worker.start()
    reports = [results.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    total = sum(count for _, _, count in reports)
    if total != instances:
        raise AssertionError(f"the bare loop served {total} of {instances}")
    seconds = max(end for _, end, _ in reports) - min(begin for begin, _, _ in reports)
    keys = list(client.scan_iter("{bare}:*", count=1000))
    for first in range(0, len(keys), 1000):
        client.delete(*keys[first : first + 1000])
    return float(total / seconds)


def actor_per_wake_per_s(wakes: int = 8) -> float:
    """Bare Ray: create an actor, call it, kill it; one after the other. Ray must be running."""
    begin = time.perf_counter()
    for _ in range(wakes):
        create_and_call_s()
    return float(wakes / (time.perf_counter() - begin))


def create_and_call_s() -> float:
    """Seconds until an empty Ray actor was created and had answered its first call; it is killed."""
    import ray

    class Waker:
        def wake(self) -> int:
            return 1

    actor_class: Any = ray.remote(num_cpus=0)(Waker)
    begin = time.perf_counter()
    actor = actor_class.remote()
    ray.get(actor.wake.remote())
    took = time.perf_counter() - begin
    ray.kill(actor)
    return took
