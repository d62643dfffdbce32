"""The names of every key of one partition, from one object; nobody else spells a key.

Every key carries the partition's hash tag, so that one script changes an instance and its indexes atomically, on one
server
and on Redis Cluster alike. The order of `FIXED` is the order of KEYS in every script (`lua/prelude.lua` names them
again).
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIXED = (
    "clock",  # string: the manual business clock, absent: the store's own time
    "seq",  # string: the one counter that orders accepted rows, armed waits and instances
    "ready",  # zset: instance -> liveness ms from which it may be claimed
    "leases",  # zset: instance -> liveness ms at which its lease ends
    "idle",  # zset: leased instances that merely wait
    "due",  # zset: instance RS wait -> deadline, business ms
    "subs",  # zset, lexicographic: waiting message and signal subscriptions
    "in",  # hash: seq -> accepted message or signal that is not folded or is parked
    "pend",  # zset: seq -> seq of what is not folded
    "progress",  # hash: seq -> how far a broadcast has been folded; of a message given back: by which processes
    "dedup",  # hash: delivery id -> accepted ms RS instance
    "dedupx",  # zset: delivery id -> accepted ms
    "parked",  # zset, lexicographic: canonical key RS seq of messages that nobody took, one for each key of a message
    "parkx",  # zset: of each such message the member of its first key -> business ms at which it expires
    "dead",  # list: dead letters, newest first
    "facts",  # stream: what happened
    "tasks",  # hash: task id -> created RS kind RS row
    "owners",  # hash: task id -> user
    "topen",  # zset: task id -> seq
    "incidents",  # zset: instance RS wait -> seq
    "instances",  # zset: every instance that has a record, ended or not -> seq
    "ended",  # zset: instance -> liveness ms of its end
    "purge",  # zset: ended instances whose waits are still being removed
    "defs",  # hash: process id -> newest version; process id RS version -> digest
    "docs",  # hash: digest -> document
    "bell:message",
    "bell:timer",
    "bell:task",
    "bell:ready",
    "bell:supervisor",
    "liveness",  # string: in place of the store's own time; set by the simulation alone, no engine writes it
    "jobq",  # zset, lexicographic: jobs that may be fetched, key (topic US urgency) RS seq RS task id
    "joblocks",  # zset: task id -> liveness ms at which a worker's lock ends
    "jobwait",  # zset: task id -> business ms from which a failed job may be fetched again
    "jobs",  # hash: task id -> failures RS lock RS last cause, once it was fetched
    "conv",  # hash: process RS canonical key -> the living instance that a message of this key began
)


@dataclass(frozen=True, slots=True)
class Keys:
    """`engine_id` separates engines on one store; `partition` is an argument, never a literal (one today)."""

    engine_id: str
    partition: int = 0
    tag: str = field(init=False)
    fixed: tuple[bytes, ...] = field(init=False)
    instances: bytes = field(init=False)
    """Prefix of the instances' keys: `<prefix><id>` hash, `:q` inbox, `:h` history, `:b` bell."""

    def __post_init__(self) -> None:
        tag = f"{{gobpm:{self.engine_id}:{self.partition}}}"
        object.__setattr__(self, "tag", tag)
        object.__setattr__(self, "fixed", tuple(f"{tag}:{name}".encode() for name in FIXED))
        object.__setattr__(self, "instances", f"{tag}:i:".encode())

    def __getitem__(self, name: str) -> bytes:
        return self.fixed[FIXED.index(name)]

    def instance(self, instance_id: str) -> bytes:
        return self.instances + instance_id.encode()

    def order(self, holder: str) -> str:
        return f"{self.tag}:order:{holder}"

    def job_bell(self, topic: str) -> bytes:
        """One bit for each topic that a job was ever armed for."""
        return f"{self.tag}:jobbell:{topic}".encode()

    def table(self, name: str) -> str:
        return f"{self.tag}:table:{name}"
