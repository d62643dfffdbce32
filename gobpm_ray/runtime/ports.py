"""The store as the engine sees it: rows in, rows out, every method one atomic script (or one read).

Two stores implement it and pass one contract suite: `gobpm_ray.store.redis_store.RedisStore` (Lua scripts on Redis or
Valkey)
and `gobpm_ray.runtime.memory.MemoryStore` (in process, for `simulate` and `Engine.open(store=None)`).

Payloads and parts are opaque bytes here; only `gobpm_ray.checkpoint` reads them. All times are milliseconds;
"business" times follow
the manual clock when there is one, "liveness" times are always the store's own.

Life of an instance in the store: `start` (or a matched start subscription) writes it with one `start` trigger in its
inbox and makes it *ready*; `claim` leases it; `commit` consumes triggers and either keeps the lease, releases it
(dehydrates), or ends the instance. A trigger that arrives makes an unleased instance ready, and rings the bell of a
leased one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

BellName = Literal["message", "timer", "task", "ready", "supervisor"]
"""One bit each; rung by the scripts, popped by the one who sleeps on it."""


StartRow = tuple[str, int, str, str, str, bytes]
"""The arguments of `Store.start`."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer "stored": `seq` orders it, `duplicate` says that this delivery id was accepted before (nothing was
    written)."""

    id: str
    duplicate: bool = False
    instance_id: str = ""
    seq: int = 0


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A delivered, unconsumed trigger in an instance's inbox, in order of delivery."""

    id: str
    kind: str
    wait: str
    seq: int
    key: str = ""
    """Canonical key of a message or signal: what a returned message is routed by again."""
    payload: bytes = b"{}"
    """JSON object: `{"values": {...}, "node": "", "cause": "", "code": ""}`, absent fields default."""
    expires: int = 0
    """Messages: business time after which it is a dead letter; 0 for the rest."""


@dataclass(frozen=True, slots=True)
class ArmRow:
    """A wait to hold. `kind` decides its index: timer -> due, message and signal -> subs, task and job -> tasks,
    incident -> incidents. A child or conditional wait has none: what meets it names it. Nor has an unkeyed one, which
    nothing meets: another takes its place."""

    wait: str
    kind: str
    node: str
    key: str = ""
    deadline: int = 0
    group: str = ""
    repeat: bool = False
    depth: int = 0
    touch: tuple[str, ...] = ()
    """Names of the parts that a trigger for this wait needs (besides the head)."""
    row: bytes = b""
    """Task and job: the JSON row that lists show and the accepting script reads
    (`node name assignee users groups required due follow_up priority form topic inputs`, absent fields default).
    Start timers of a process: `{"cycle","anchor","index"}`."""
    joins: str = ""
    """A wait of the instance: if it is armed, this one is in its race, which is called `group` if it was in none; an
    unkeyed one is gone."""


@dataclass(frozen=True, slots=True)
class SendRow:
    """Accepted inside the commit. message, signal: to be folded, like `publish`. The others name whom they are for, and
    are delivered in the commit's own script; one that comes too late is nobody's concern and changes nothing.

    start: the new instance `to` of `process`; its record names the committing instance and `wait` as its caller. If it
    cannot be started (no such process, calls nest deeper than `max_call_depth`), `wait` gets a `failed` trigger
    instead. child, escalation: to `wait` of the instance `to`; an escalation leaves the wait armed. cancel: to the
    instance `to`."""

    id: str
    kind: Literal["message", "signal", "start", "child", "escalation", "cancel"]
    key: str = ""
    name: str = ""
    payload: bytes = b"{}"
    ttl: int = 0
    to: str = ""
    wait: str = ""
    process: str = ""
    version: int = 0
    """0: the newest."""
    business_key: str = ""

    @property
    def addressed(self) -> bool:
        return self.kind not in ("message", "signal")


@dataclass(frozen=True, slots=True)
class DataRow:
    """What a data store of the engine holds."""

    name: str
    version: int
    """Another one for every write, and never the same again, also not of a store that was dropped in between."""
    at: int
    """Business time of the write."""
    by: str
    """The instance that wrote it; '' : an operator."""
    secret: bool
    """Something in it is a secret of the process that wrote it: nobody is shown the value."""
    value: bytes


@dataclass(frozen=True, slots=True)
class DataUse:
    """What a step has to do with one data store."""

    name: str
    seen: int = -1
    """The version that was read, 0 while there was none: the commit is refused unless it is still that one. -1: it was
    not read."""
    value: bytes | None = None
    """Written; None: it was only read."""
    secret: bool = False


Residency = Literal["release", "keep", "either"]
"""`either`: keep while nothing is ready and fewer than `max_resident` are leased, release otherwise: the script
decides."""


@dataclass(slots=True)
class Commit:
    """One step's whole outcome. Refused (LeaseLost) unless `token` is live, unexpired, and `version` is the stored
    one."""

    instance_id: str
    token: str
    version: int
    """Of the checkpoint that the step started from; the commit stores version + 1."""
    commit_id: str
    """The same id again answers as the first time and changes nothing."""
    residency: Residency = "release"
    outcome: Literal["", "completed", "terminated"] = ""
    parts: dict[str, bytes] = field(default_factory=dict)
    removed: Sequence[str] = ()
    consumed: Sequence[str] = ()
    """Ids of the inbox's first triggers, in order; refused whole if they are not there (C65)."""
    returned: Sequence[TriggerRow] = ()
    """Overtaken messages: back to routing at their place."""
    arms: Sequence[ArmRow] = ()
    withdrawals: Sequence[str] = ()
    sends: Sequence[SendRow] = ()
    history: Sequence[bytes] = ()
    facts: Sequence[bytes] = ()
    """JSON objects `{"fact": name, "instance": id, ...}`: names and counts only."""
    release_facts: Sequence[bytes] = ()
    """Appended too if the commit releases the lease: what is only true then, when the store decides an `either`."""
    learnt: str = ""
    """Correlation properties as `core.keys.learnt_text` writes them, when the step has learnt more; '' otherwise."""
    data: Sequence[DataUse] = ()
    """DataStoreChanged, with nothing written, if one of them is not as it was read."""
    next_token: str = ""
    """Claim the next ready instance with this token if the commit frees the actor; '' claims nothing."""


@dataclass(frozen=True, slots=True)
class ParkedStart:
    """A start whose first leg is computed already: the instance begins where that leg ends (docs/adr/0010)."""

    process_id: str
    version: int
    """The leg's own; never 0."""
    newest: bool
    """The newest was asked for: not so unless `version` still is it."""
    instance_id: str
    delivery_id: str
    business_key: str
    payload: bytes
    """Of the start trigger, which the commit consumes; not stored, but held to its limit."""
    now: int
    """Business time of the leg."""
    commit: Commit
    """From version 0: releases or ends, consumes the start trigger alone, has nothing to do with data stores."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A leased instance, its parts and its pending triggers."""

    instance_id: str
    token: str
    epoch: int
    version: int
    process_id: str
    process_version: int
    business_key: str
    parts: dict[str, bytes]
    complete: bool
    """Every part is here; False: the head and what the triggers touch."""
    triggers: tuple[TriggerRow, ...]
    inbox: int
    """Length of the whole inbox, which may exceed the triggers handed out."""
    now: int
    """Business clock."""
    deaths: int = 0
    """Hosts that died silently over it, in real work and without a commit in between (N9)."""
    suspect: bool = False
    """The last host died in doubt: renew before anything else, so that a death of this one counts."""
    caller: str = ""
    """`instance RS wait` of the call activity that called it; '' when nobody did."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    kept: bool
    """The lease is still ours."""
    version: int
    inbox: int
    """Triggers that came meanwhile: if kept, go on with them; if released, the instance is ready again."""
    now: int
    next: Claim | None = None
    ready: int = field(default=0, compare=False)
    """With `next`: how many more are ready. A hint, old when it is read."""


A_co = TypeVar("A_co", covariant=True)


class Answer(Protocol[A_co]):
    """Of a call that was sent and is not waited for."""

    def result(self) -> A_co:
        """Waits for it; raises what the call raises that is waited for. Once only."""


@dataclass(frozen=True, slots=True)
class PendingRow:
    """An accepted delivery that is not folded yet."""

    seq: int
    id: str
    kind: Literal["message", "signal"]
    key: str
    name: str
    payload: bytes
    expires: int
    accepted: int
    """Business time of acceptance."""
    accepted_live: int
    """The store's own time of acceptance: the lag WARN is judged by it."""


@dataclass(frozen=True, slots=True)
class Routed:
    """What became of one row in one call."""

    result: Literal["delivered", "parked", "dropped", "partial", "gone", "expired", "full", "unread"]
    """delivered: folded; parked: nobody waits, kept until its TTL; dropped: a signal to nobody; partial: a broadcast
    with more to do;
    gone: folded before; expired: became a dead letter; full: its taker's inbox is, and it stays pending."""
    woken: int = 0
    started: int = 0


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A message or signal that was accepted and set aside: expired, or not to be folded."""

    id: str
    kind: Literal["message", "signal"]
    key: str
    name: str
    payload: bytes
    reason: str
    at: int
    """Business time at which it was set aside."""
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class DueRow:
    instance_id: str
    """An instance, or `@<process id>` for a process's start timer."""
    wait: str
    deadline: int


@dataclass(frozen=True, slots=True)
class DueList:
    now: int
    rows: tuple[DueRow, ...]
    next_deadline: int | None
    """The earliest deadline that is not due yet."""


@dataclass(frozen=True, slots=True)
class TaskView:
    id: str
    """`instance_id/wait id`"""
    instance_id: str
    process_id: str
    wait: str
    kind: Literal["task", "job"]
    owner: str
    """Of a job: the worker that has it locked."""
    created: int
    row: bytes
    failures: int = 0
    """Jobs: attempts that failed and were not the last."""
    cause: str = ""
    """Jobs: of the last of these."""
    process_version: int = 0
    seq: int = 0
    """Its place in the order: where the next page begins."""


JobVerb = Literal["job", "failed", "error", "escalation"]
"""What a worker's report is to the instance: the trigger's kind. All but an escalation end the job."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the worker that locked it gets it."""

    id: str
    """`instance_id/wait id`"""
    process_id: str
    process_version: int
    lock: str
    """What every report of it must name."""
    until: int
    """Liveness time at which the lock ends, unless it is extended."""
    created: int
    row: bytes
    failures: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """Everything stored about one instance, as one consistent read."""

    instance_id: str
    process_id: str
    process_version: int
    business_key: str
    status: str
    """active | suspended | completed | terminated"""
    version: int
    epoch: int
    resident: bool
    created: int
    parts: dict[str, bytes]
    waits: dict[str, tuple[str, ...]]
    """wait id -> (kind, node, key, deadline, group, mode, depth, seq)"""
    inbox: tuple[TriggerRow, ...]
    history: tuple[bytes, ...]
    held_at: int = 0
    """Business time since which it is held for its hosts' silent deaths (N9); 0: it is not."""
    caller: str = ""
    """As in `Claim`: who looks for an instance's children finds in each the name of its caller."""


@dataclass(frozen=True, slots=True)
class Definition:
    process_id: str
    version: int
    document: bytes
    """`xml` + newline + the file, or `json` + newline + the model's document."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Whether nothing moves: nothing pending, nothing due, nothing ready, every inbox empty, no lease busy."""

    quiet: bool
    now: int
    next_deadline: int | None


@dataclass(frozen=True, slots=True)
class Population:
    """Counts for `top`; `pending` by kind."""

    resident: int
    ready: int
    oldest_ready_ms: int
    waiting: int
    due: int
    pending: dict[str, int]
    parked: int
    incidents: int
    ended: int
    dead: int


class Store(Protocol):
    """See the module's docstring. Every method raises EnvironmentFailure when the store cannot answer."""

    @property
    def durable(self) -> bool:
        """It outlives the program, and instances are released to it."""

    # --- definitions
    def deploy(self, process_id: str, document: bytes, starts: Sequence[ArmRow]) -> tuple[int, bool]:
        """Store a version unless the newest one has the same document; arm its start events, withdraw the older
        version's.
        A start timer with the same wait id and the same row keeps its deadline (T44). Returns (version, created)."""

    def definition(self, process_id: str, version: int = 0) -> Definition | None:
        """`version` 0: the newest."""

    def definitions(self) -> list[tuple[str, int]]:
        """(process id, newest version), sorted."""

    # --- acceptance: each is one durable row, deduplicated by delivery id for the dedup window. LimitReached, with
    # nothing stored, when payload, backlog or inbox is at its limit; StoreRefused when the store itself is full.
    def start(
        self,
        process_id: str,
        version: int,
        instance_id: str,
        delivery_id: str,
        business_key: str,
        payload: bytes,
    ) -> Accepted:
        """A new instance, ready, with one `start` trigger. `version` 0: the newest. UnknownProcess if there is none."""

    def start_many(self, rows: Sequence[StartRow], before: int = 0) -> list[Accepted]:
        """`start` for each, pipelined; not atomic as a whole. `before`: so many more of the caller's are stored
        already, which a refusal says."""

    def start_parked(self, starts: Sequence[ParkedStart]) -> list[Accepted | None]:
        """Each as `start`, a claim, its commit and the release would have left it, but in one step; pipelined like
        `start_many`. A duplicate is answered as there. None: nothing was stored; start it plainly, which says so if it
        is refused: the newest version is another one, the business time is more than a second away from the leg's,
        the process is unknown, the id is taken, or a limit is reached."""

    def send_parked(self, starts: Sequence[ParkedStart]) -> Answer[list[Accepted | None]]:
        """The same, not waited for. The calling thread's later calls are carried out after it."""

    def publish(self, delivery_id: str, kind: str, key: str, name: str, payload: bytes, ttl: int) -> Accepted:
        """A message or signal, to be folded by the MessageHolder: cost independent of who waits (H1)."""

    def deliver(self, instance_id: str, kind: str, wait: str, delivery_id: str, payload: bytes) -> Accepted:
        """A trigger that names its instance: accept and deliver in one. `wait` '' addresses the instance (cancel, set).
        UnknownInstance; InputError when the wait is not armed or the instance has ended."""

    def suspend(self, instance_id: str, suspended: bool) -> bool:
        """Set or clear the operator's hold; a suspended instance keeps its triggers. False: it was so already."""

    # --- the wake path
    def claim(self, token: str) -> Claim | None: ...
    def load(self, instance_id: str, token: str) -> Claim:
        """The whole instance (every part, pending triggers) under our live lease; LeaseLost otherwise."""

    def fetch(self, instance_id: str, token: str) -> tuple[tuple[TriggerRow, ...], int]:
        """Pending triggers of an instance that we lease, and the business time; LeaseLost."""

    def commit(self, commit: Commit) -> CommitResult: ...
    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        """The same, not waited for. The calling thread's later calls are carried out after it."""

    def renew(self, instance_id: str, token: str) -> tuple[int, int]:
        """Extend our lease; (inbox length, number of ready instances); LeaseLost."""

    def abandon(self, instance_id: str, token: str, backoff_ms: int) -> None:
        """Give the lease back without consuming anything: ready again after the back-off (D18). LeaseLost."""

    def unclaim(self, instance_id: str, token: str) -> None:
        """A claim with which nothing was begun goes back to the head of the line, its count of silent deaths as it was.
        LeaseLost."""

    def release_dead(self, actor: str) -> int:
        """Leases whose token starts with `actor:` are released to ready; how many."""

    def sweep(self, limit: int = 100) -> int:
        """Expired leases back to ready with their triggers (N9); how many."""

    def hold(self, instance_id: str, token: str, history: bytes, fact: bytes) -> None:
        """Our lease ends and the instance is suspended as an open incident, its triggers kept, until `suspend(id,
        False)`: what follows on too many silent deaths (N9). LeaseLost."""

    def reconcile(self, cursor: str, limit: int) -> tuple[str, int]:
        """One page of a slow walk: an active, unleased instance with triggers that is not ready is made so. Returns
        (where to go on, '' at the end; how many were repaired). '' begins (C69)."""

    def wait_instance_bell(self, instance_id: str, timeout_s: float) -> bool: ...

    # --- holders
    def order_lease(self, holder: str, token: str, ttl_ms: int) -> bool:
        """Hold or renew the order lease of a holder kind."""

    def pending(self, after_seq: int, limit: int) -> list[PendingRow]: ...
    def route(self, seq: int, limit: int, key: str = "") -> Routed:
        """Fold one row; a broadcast folds at most `limit` waits a call and keeps its progress in the store. `unread`: a
        model says where in this message's payload its correlation properties stand; read it, and call again with the
        message's `key` as that completes it (`gobpm_ray.runtime.correlating`)."""

    def fail(self, seq: int, reason: str) -> bool:
        """A pending row whose content no script can fold becomes a dead letter (H6); False: it was not pending."""

    def dead(self, limit: int = 1_000) -> list[DeadRow]:
        """Dead letters, newest first."""

    def replay(self, delivery_id: str, new_id: str, ttl: int) -> Accepted:
        """The newest dead letter of this delivery is accepted again under an id of its own. UnknownDelivery."""

    def drop_dead(self, delivery_id: str) -> None:
        """The newest dead letter of this delivery is gone for good. UnknownDelivery."""

    def expire(self, limit: int) -> int:
        """Parked messages past their TTL become dead letters; ended instances past retention, and dedup tombstones
        past their
        window, go. How many."""

    def due(self, limit: int) -> DueList: ...
    def fire(self, rows: Sequence[DueRow]) -> int:
        """Deliver due timers to their instances, each re-checked; how many were delivered. One whose instance is
        damaged stays due, is named in the log, and holds up no other."""

    def start_timer_row(self, process: str, wait: str) -> bytes | None:
        """The row of a process's start timer (`process` with its `@`)."""

    def fire_start(self, row: DueRow, next_wait: str, next_deadline: int, next_row: bytes) -> bool:
        """Start an instance for a due start timer and arm its next occurrence ('' : none); False if it was not due."""

    # --- human tasks and jobs
    def tasks(
        self, kind: str = "task", instance_id: str = "", limit: int = 1_000, after_seq: int = 0
    ) -> list[TaskView]: ...
    def task(self, task_id: str) -> TaskView | None: ...
    def claim_task(self, task_id: str, user: str, groups: Sequence[str]) -> None:
        """UnknownTask; TaskRefused: held by another, or not eligible. `user` '' acts as an operator: refused as
        nobody."""

    def unclaim_task(self, task_id: str) -> None: ...
    def reassign_task(self, task_id: str, user: str) -> None:
        """An operator gives the task to a user, whoever has it and whoever may; UnknownTask."""

    def complete_task(
        self,
        task_id: str,
        user: str,
        groups: Sequence[str],
        outputs: Iterable[str],
        delivery_id: str,
        payload: bytes,
        *,
        strict: bool = False,
    ) -> Accepted:
        """Check (owner, eligibility, required `outputs` names, claimed when strict) and deliver; `user` '': an
        operator.
        Four distinct refusals as TaskRefused; nothing changed by any (H58)."""

    # --- jobs. A lock is judged by liveness time: expired, it is nobody's, also before anybody has noticed.
    def fetch_jobs(self, topics: Sequence[str], worker: str, lock_ms: int, limit: int) -> list[JobView]:
        """Lock at most `limit` jobs of these topics for the worker, the most urgent and then the oldest first, every
        topic having a share. What others locked too long ago is fetched again."""

    def wait_jobs(self, topics: Sequence[str], timeout_s: float) -> bool:
        """Sleep until a job of these topics may be there to be fetched; a hint, like every bell."""

    def report_job(self, task_id: str, verb: JobVerb, lock: str, delivery_id: str, payload: bytes) -> Accepted:
        """Deliver what became of a job. `lock` '' acts as an operator. UnknownTask, LockLost (C68)."""

    def retry_job(self, task_id: str, lock: str, delivery_id: str, backoff_ms: int, cause: str, history: bytes) -> bool:
        """The attempt failed and another is due after the back-off, by the business clock; the line goes into the
        instance's history, which is not woken. False: a duplicate. UnknownTask, LockLost."""

    def extend_lock(self, task_id: str, lock: str, lock_ms: int) -> int:
        """The lock ends so many milliseconds from now; that liveness time. UnknownTask, LockLost."""

    def unlock_job(self, task_id: str, lock: str) -> None:
        """It may be fetched at once, and no attempt has failed. `lock` '': whoever has it. UnknownTask, LockLost."""

    def wake_jobs(self, limit: int) -> int:
        """Jobs whose lock has ended or whose back-off is over may be fetched, and their workers hear it; how many."""

    # --- data stores of the engine
    def read_data(self, names: Sequence[str]) -> dict[str, DataRow]:
        """What these data stores hold at one moment; one that nobody has written is not among them."""

    def all_data(self) -> list[DataRow]:
        """Every data store that holds something, by name."""

    def write_data(self, name: str, value: bytes, expected: int = -1, *, secret: bool = False) -> int:
        """An operator writes a data store; its new version. `expected`: only if it has this version (0: holds nothing),
        DataStoreChanged otherwise. LimitReached for a value beyond `max_variable`."""

    def drop_data(self, name: str) -> bool:
        """The data store holds nothing any more; False: it held nothing."""

    # --- incidents
    def incidents(self, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str, str]]:
        """(seq, instance id, wait) of open incidents, oldest first, over all instances; wait '': of the whole instance
        (N9)."""

    # --- reading
    def instance(self, instance_id: str) -> InstanceRecord | None: ...
    def status(self, instance_id: str) -> str | None:
        """active | suspended | completed | terminated; None: unknown."""

    def instances(self, *, ended: bool | None = None, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str]]:
        """(seq, id), oldest first."""

    def facts(self, after: str = "0", limit: int = 1_000) -> list[tuple[str, bytes]]: ...
    def population(self) -> Population: ...
    def readiness(self) -> tuple[int, int]:
        """(instances that are ready, ms since the oldest of them became so): of `population` what a supervisor asks."""

    def leases(self) -> list[tuple[str, str, int]]:
        """(instance id, token, ms until expiry)."""

    # --- clocks and bells
    def now(self) -> int: ...
    def manual_clock(self, start_ms: int) -> int:
        """Switch to a manual clock unless there is one already; the business time."""

    def set_clock(self, now_ms: int) -> int:
        """Move the manual clock forward (never back) and ring the holders; InputError without a manual clock."""

    def quiet(self) -> Quiet: ...
    def wait_bell(self, bell: BellName, timeout_s: float) -> bool: ...
    def ring(self, bell: BellName) -> None: ...

    # --- the engine's own registry
    def put_value(self, table: str, name: str, value: bytes) -> None:
        """Small durable registers of the engine (callables, supervisor's heartbeat, actors): `table` is one of
        `code`, `engine`, `actors`, `folding`, `stores` (what processes say of their data stores)."""

    def get_value(self, table: str, name: str) -> bytes | None: ...
    def values(self, table: str) -> dict[str, bytes]: ...
    def drop_value(self, table: str, name: str) -> None: ...
    def count(self, signals: Mapping[str, int]) -> None:
        """Add to the engine's totals of reliability signals (N12), which are `values("signals")`."""

    def close(self) -> None: ...
