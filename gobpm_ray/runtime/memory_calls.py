"""What instances hand on to each other in memory: called instances begin, their ends and escalations reach the caller.

Everything here happens inside the commit of the instance that sends it. It knows who calls whom, and never why.
"""

from __future__ import annotations

import json

from gobpm_ray.runtime.memory_routing import MemoryRouting
from gobpm_ray.runtime.memory_state import Instance
from gobpm_ray.runtime.ports import Definition, SendRow, TriggerRow


class MemoryCalls(MemoryRouting):
    def _hand_on(self, sender: Instance, send: SendRow) -> None:
        """Delivered now, or, when whoever it is for is gone, never."""
        if send.kind == "start":
            why = self._call(sender, send)
            if why:
                cause = json.dumps({"cause": why}, separators=(",", ":"), ensure_ascii=False)
                self._hand(sender, "failed", send, cause.encode())
        else:
            self._hand(self._instances.get(send.to), send.kind, send, send.payload)

    def _call(self, caller: Instance, send: SendRow) -> str:
        """The called instance exists; else why it does not."""
        definition = self.definition(send.process, send.version)
        if caller.level >= self.settings.max_call_depth:
            return f"calls nest deeper than {self.settings.max_call_depth}: process '{send.process}' is not called"
        if definition is None:
            version = f" version {send.version}" if send.version else ""
            return f"process '{send.process}'{version} is not deployed; deploy it and retry"
        if send.to in self._instances:
            return f"instance '{send.to}' exists already"
        trigger = TriggerRow(send.id, "start", "", self._next_seq(), payload=send.payload)
        called = self._new_instance(send.process, definition.version, send.to, send.business_key, trigger)
        called.caller = f"{caller.id}\x1e{send.wait}"
        called.level = caller.level + 1
        return ""

    def _hand(self, receiver: Instance | None, kind: str, send: SendRow, payload: bytes) -> None:
        trigger = TriggerRow(send.id, kind, send.wait, self._next_seq(), payload=payload)
        if receiver is None or receiver.ended:
            return
        wait = receiver.waits.get(send.wait) if send.wait else None
        if send.wait and wait is None:
            return
        self._deliver(receiver, wait, trigger, stay=kind == "escalation")

    def definition(self, process_id: str, version: int = 0) -> Definition | None:
        raise NotImplementedError
