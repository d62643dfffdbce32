"""What surrounds a host and a supervisor where there is no Ray and nobody looks: the parts that every such world
shares."""

from __future__ import annotations

from collections import deque
from queue import Empty

from actors.life import Life
from actors.supervisor import End
from gobpm_ray.runtime.leasing import Event


class Stage:
    def show(self, instance_id: str) -> None:
        """Nobody looks."""


class QuietLife(Life):
    def _show_residents(self) -> None:
        """Nobody looks."""


class NoRay:
    """The half of `actors.supervisor.Actors` that asks nothing of anybody; who is made and found is the world's."""

    def __init__(self) -> None:
        self._ended: list[End] = []

    def cores(self) -> int:
        return 1

    def spare(self, name: str, kept: bool) -> None: ...
    def stop(self, name: str, grace_ms: int) -> None: ...
    def kill(self, name: str) -> None: ...
    def pause(self, timeout_s: float) -> None: ...

    def ended(self) -> list[End]:
        ended, self._ended = self._ended, []
        return ended


class OneThread:
    """The queue of a hosting whose world runs in one thread; how it sleeps is the world's (`get`)."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def put(self, event: Event) -> None:
        self._events.append(event)

    def empty(self) -> bool:
        return not self._events

    def get_nowait(self) -> Event:
        if not self._events:
            raise Empty
        return self._events.popleft()
