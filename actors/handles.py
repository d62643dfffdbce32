"""Every call between actors goes through this file: what is remote, what an answer or its absence means, and how
actors are made.

Nobody else calls `.remote`. Decorated classes defeat type checkers, so the classes stay plain and are wrapped here;
handles are `Any` and do not leave this file. It knows Ray's options, names and errors, and refuses to know what the
actors do.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    OwnerDiedError,
    RayActorError,
    RayError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.registry import ActorRow
from actors.spec import NAMESPACE, EngineSpec
from actors.supervisor import End
from gobpm_ray.errors import RayUnavailable

log = logging.getLogger(__name__)

START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 10.0
SUPERSEDED = "superseded"
"""What `watch` answers to an older watcher when a newer one comes."""

_CORES_VALID_S = 10.0
_RETRY_S = 0.2

_ray: Any = ray
"""For what Ray leaves untyped."""


def _wrapped(shell: type) -> Any:
    return ray.remote(shell)


def _options(spec: EngineSpec, role: str, *, restarts: int, concurrency: int) -> dict[str, Any]:
    """Of every actor of the engine: named; detached, for a Ray actor dies with its owner otherwise; and without a
    claim on a CPU, for an actor that waits for its own Ray task must not hold the CPU that the task needs."""
    options: dict[str, Any] = {
        "name": spec.actor_name(role),
        "namespace": NAMESPACE,
        "lifetime": "detached",
        "max_restarts": restarts,
        "max_task_retries": 0,
        "num_cpus": 0,
        "max_concurrency": concurrency,
    }
    if spec.one_machine:
        node = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    return options


def _reason(failure: BaseException) -> str:
    """The line that matters in the text of a remote failure, which quotes a traceback or two."""
    named = [line.strip() for line in str(failure).splitlines() if re.match(r"\s*[\w.]+(Error|NotFound): \S", line)]
    return named[-1][:300] if named else _one_line(failure)


def _one_line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:400] or type(failure).__name__


# ---------------------------------------------------------------------------------------------- holders and supervisor


class Service:
    """A long-lived named actor (a holder, the supervisor), as its starter sees it."""

    def __init__(self, spec: EngineSpec, role: str, handle: Any) -> None:
        self.role = role
        self._spec = spec
        self._handle = handle
        self._answer: Any = None

    def ask(self) -> None:
        """Send a ping; `answered` fetches the answer. Several services start side by side this way."""
        self._answer = self._handle.ping.remote()

    def answered(self, timeout_s: float) -> dict[str, Any] | None:
        """The answer to `ask`; None when the actor is dead and has to be made again; RayUnavailable when it stays
        silent."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer: dict[str, Any] = ray.get(self._answer, timeout=max(deadline - time.monotonic(), 0.0))
                return answer
            except ActorUnavailableError:
                # Killed a moment ago: Ray restarts it, and the same handle answers again.
                if time.monotonic() > deadline:
                    raise RayUnavailable(f"{self.role} is not reachable after {timeout_s:g} s") from None
                time.sleep(_RETRY_S)
                self.ask()
            except ActorDiedError as death:
                if death.actor_init_failed:
                    raise RayUnavailable(f"{self.role} cannot start in the cluster: {_reason(death)}") from None
                log.info("%s: %s", self.role, _one_line(death))
                return None
            except GetTimeoutError:
                raise RayUnavailable(f"{self.role} does not answer within {timeout_s:g} s") from None

    def call(self, method: str, *args: object, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """The answer of one method; RayUnavailable when the actor is dead or silent."""
        try:
            return ray.get(getattr(self._handle, method).remote(*args), timeout=timeout_s)
        except (RayActorError, GetTimeoutError) as failure:
            raise RayUnavailable(f"{self.role}.{method}: {_one_line(failure)}") from failure

    def kill(self) -> None:
        """It is gone for good, whatever it was doing."""
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self._handle, no_restart=True)


def end_services(services: Sequence[Service], timeout_s: float) -> int:
    """All of them are gone for good, stopped side by side; how many had to be killed."""
    stopping = [(service, service._handle.stop.remote()) for service in services]
    deadline = time.monotonic() + timeout_s
    killed = 0
    for service, stopped in stopping:
        try:
            ray.get(stopped, timeout=max(deadline - time.monotonic(), 0.1))
            # An exit by its own will is the one death that Ray does not answer with a restart; this call has no answer.
            ray.get(service._handle.leave.remote(), timeout=max(deadline - time.monotonic(), 0.1))
        except ActorDiedError:
            continue
        except (RayActorError, GetTimeoutError) as failure:
            log.warning("%s does not end by itself and is killed: %s", service.role, _one_line(failure))
        service.kill()
        killed += 1
    return killed


def check_nodes(timeout_s: float = START_TIMEOUT_S) -> None:
    """A worker of this cluster can import the project; RayUnavailable says what it lacks.

    Asked with a Ray task, which fails with a reason; an actor whose class cannot be imported is restarted for ever.
    """
    ray_task: Any = ray.remote(num_cpus=0, max_retries=0)(_imports)
    try:
        ray.get(ray_task.remote(), timeout=timeout_s)
    except (RayError, ImportError, GetTimeoutError) as failure:
        raise RayUnavailable(
            f"the cluster's nodes cannot import the engine: {_reason(failure)}; install it there, or submit the driver "
            "as a job with its working directory"
        ) from None


def _imports() -> None:
    import_module("actors.residency")
    import_module("holders.actors")


def find_service(spec: EngineSpec, role: str) -> Service | None:
    try:
        return Service(spec, role, ray.get_actor(spec.actor_name(role), namespace=NAMESPACE))
    except ValueError:
        return None


def ensure_services(
    spec: EngineSpec, shells: Mapping[str, type], timeout_s: float = START_TIMEOUT_S
) -> dict[str, dict[str, Any]]:
    """Each role's actor lives and answered; returns the answers.

    Of programs that race, one creates and all get the same actor. `get_if_exists` gives a dying actor just as well
    (nine times of nine after a SIGKILL), so every one is asked, and made again if it turns out dead.
    """
    deadline = time.monotonic() + timeout_s
    answers: dict[str, dict[str, Any]] = {}
    missing = dict(shells)
    while missing:
        services = [_get_or_create(spec, role, shell) for role, shell in missing.items()]
        for service in services:
            service.ask()
        for service in services:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise RayUnavailable(f"{service.role} cannot be started within {timeout_s:g} s")
            if (answer := service.answered(left_s)) is not None:
                answers[service.role] = answer
                del missing[service.role]
        if missing:
            time.sleep(_RETRY_S)
    return answers


def _get_or_create(spec: EngineSpec, role: str, shell: type) -> Service:
    options = _options(spec, role, restarts=-1, concurrency=4)
    return Service(spec, role, _wrapped(shell).options(get_if_exists=True, **options).remote(spec))


# ------------------------------------------------------------------------------------------------------ InstanceActors


class RayActors:
    """The supervisor's port (`actors.supervisor.Actors`) on Ray.

    Whoever is created or adopted gets one `watch` call, which returns when the actor ends: its answer is a clean end,
    its error a death. Ray completes it milliseconds after a SIGKILL, and nothing here ever waits for an actor.
    """

    def __init__(self, spec: EngineSpec, shell: type, ring: Callable[[], None]) -> None:
        self._spec = spec
        self._shell = _wrapped(shell)
        self._ring = ring
        self._handles: dict[str, Any] = {}
        self._ended: list[End] = []
        self._changed = threading.Condition()
        self._cores = 1
        self._cores_at = float("-inf")

    @property
    def cluster(self) -> str:
        return cluster_address()

    def cores(self) -> int:
        if time.monotonic() - self._cores_at > _CORES_VALID_S:
            self._cores = max(1, int(_ray.cluster_resources().get("CPU", 1)))
            self._cores_at = time.monotonic()
        return self._cores

    def create(self, row: ActorRow) -> None:
        # Threads: the watchers, the residency shown to people, and the calls of supervisor and starter.
        options = _options(self._spec, row.ray_name, restarts=0, concurrency=8)
        # Ray packs actors that claim no CPU onto one node until it falls over.
        options.setdefault("scheduling_strategy", "SPREAD")
        self._watch(row.name, self._shell.options(**options).remote(self._spec, row))

    def adopt(self, row: ActorRow) -> bool:
        try:
            handle = ray.get_actor(self._spec.actor_name(row.ray_name), namespace=NAMESPACE)
        except ValueError:
            return False
        self._watch(row.name, handle)
        return True

    def _watch(self, name: str, handle: Any) -> None:
        self._handles[name] = handle
        answer = handle.watch.remote()
        answer.future().add_done_callback(lambda future: self._watched(name, handle, future))

    def _watch_again(self, name: str, handle: Any) -> None:
        with contextlib.suppress(RayError):
            self._watch(name, handle)

    def _watched(self, name: str, handle: Any, future: Any) -> None:
        failure = future.exception()
        if isinstance(failure, ActorUnavailableError):
            # Unreachable for the moment is not dead: ask again, and Ray will say which it is.
            timer = threading.Timer(_RETRY_S, self._watch_again, (name, handle))
            timer.daemon = True
            timer.start()
            return
        if failure is not None:
            end = End(name, clean=False, reason=_one_line(failure))
        else:
            clean, reason = future.result()
            if reason == SUPERSEDED:
                return
            end = End(name, clean, reason)
            with contextlib.suppress(RayError):
                handle.leave.remote()
        with self._changed:
            self._ended.append(end)
            self._changed.notify_all()
        # The bell wakes a supervisor that sleeps; one that cannot be rung looks at its next tick.
        with contextlib.suppress(Exception):
            self._ring()

    def spare(self, name: str, kept: bool) -> None:
        self._tell(name, "keep", kept)

    def stop(self, name: str, grace_ms: int) -> None:
        self._tell(name, "stop", grace_ms)

    def _tell(self, name: str, method: str, *args: object) -> None:
        """Send and forget: an actor that cannot hear it is about to be reported as ended."""
        if (handle := self._handles.get(name)) is not None:
            with contextlib.suppress(RayError):
                getattr(handle, method).remote(*args)

    def kill(self, name: str) -> None:
        if (handle := self._handles.pop(name, None)) is not None:
            with contextlib.suppress(RayError, ValueError):
                ray.kill(handle, no_restart=True)

    def ended(self) -> list[End]:
        with self._changed:
            ended, self._ended = self._ended, []
        for end in ended:
            self._handles.pop(end.name, None)
        return ended

    def pause(self, timeout_s: float) -> None:
        with self._changed:
            if not self._ended:
                self._changed.wait(timeout_s)


# --------------------------------------------------------------------------------------------------------- Ray tasks


class RayTask:
    """A function that was sent to run as a Ray task."""

    def __init__(
        self, function: Callable[..., object], arguments: Sequence[object], options: Mapping[str, Any]
    ) -> None:
        remote: Any = ray.remote(function)
        self._ref: Any = remote.options(**options).remote(*arguments)

    def when_ended(self, told: Callable[[Any, BaseException | None], None]) -> None:
        """Called once, from a thread of Ray's, with the result or why there is none."""

        def ended(future: Any) -> None:
            failure = future.exception()
            told(None if failure is not None else future.result(), failure)

        self._ref.future().add_done_callback(ended)

    def cancel(self, *, force: bool) -> None:
        """Waiting, it never begins; running, its function is interrupted, or by force its process is ended."""
        with contextlib.suppress(RayError, ValueError):
            ray.cancel(self._ref, force=force)


def node_resources() -> list[dict[str, float]]:
    """What each living node of the cluster has in all, in use or not."""
    return [dict(node.get("Resources", {})) for node in _ray.nodes() if node.get("Alive")]


def lost_on_the_way(failure: BaseException) -> bool:
    """What ran is gone, and nobody knows how far it came. A task that could not even begin is not meant."""
    gone = (WorkerCrashedError, NodeDiedError, OwnerDiedError, ObjectLostError, OutOfMemoryError, TaskCancelledError)
    return isinstance(failure, gone)


def strategy_of(wanted: object) -> Any:
    """Ray's scheduling strategy of a model's `scheduling`."""
    if isinstance(wanted, Mapping):
        return NodeAffinitySchedulingStrategy(node_id=str(wanted.get("node_id", "")), soft=bool(wanted.get("soft")))
    return wanted


class OwnActor:
    """An InstanceActor's handle of itself: what it shows of its work, and how it ends."""

    def __init__(self) -> None:
        self._handle: Any = ray.get_runtime_context().current_actor

    def show(self, instance_id: str) -> None:
        """A call of its own, named after the instance, runs while the instance is here: Ray's dashboard lists it."""
        self._handle.hosting.options(name=f"hosting {instance_id}").remote(instance_id)

    def leave(self) -> None:
        """End this actor once its running calls have returned; only a call, not a thread, can end a Ray actor."""
        self._handle.leave.remote()


def exit_this_actor() -> None:
    """Called inside an actor's method: it ends by its own will, and Ray does not restart it."""
    _ray.actor.exit_actor()


def cluster_address() -> str:
    """How another driver joins this cluster."""
    return str(ray.get_runtime_context().gcs_address)


def dashboard_url() -> str:
    """'' where no dashboard runs, or a Ray client cannot know."""
    try:
        shown = _ray._private.worker.get_dashboard_url()
    except (AttributeError, RayError):
        return ""
    return f"http://{shown}" if shown else ""


def this_node() -> str:
    return str(ray.get_runtime_context().get_node_id())


def this_actor() -> str:
    """The id of the actor that asks; the same after Ray restarted it."""
    return str(ray.get_runtime_context().get_actor_id())


def living_instance_actors(engine_id: str) -> Sequence[str]:
    """Ray's own list of this engine's InstanceActors, by name: what promise 7 is checked against."""
    prefix = f"gobpm:{engine_id}:InstanceActor-"
    named = ray.util.list_named_actors(all_namespaces=True)
    return sorted(
        actor["name"] for actor in named if actor["namespace"] == NAMESPACE and actor["name"].startswith(prefix)
    )


def kill_instance_actors(engine_id: str) -> int:
    """None of this engine's InstanceActors lives any more; how many had to be killed for that."""
    killed = 0
    for name in living_instance_actors(engine_id):
        with contextlib.suppress(ValueError, RayError):
            ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
            killed += 1
    return killed
