"""Calls: an instance starts others and hears of their ends, all inside the commits of those who send."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import ArmRow, Claim, SendRow, Store
from tests.support.stores import (
    StoreBed,
    armed,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    inbox,
    message,
    payload,
    start,
    timer,
    values_of,
    waiting,
    woken,
)

RS = "\x1e"


def child_wait(wait: str = "w1", **more: object) -> ArmRow:
    return ArmRow(**({"wait": wait, "kind": "child", "node": "Call_1", "touch": ("t1",)} | more))  # type: ignore[arg-type]


def call(to: str, wait: str = "w1", process: str = "child", **more: object) -> SendRow:
    row = {"id": to, "kind": "start", "to": to, "wait": wait, "process": process, "payload": payload(n=1)}
    return SendRow(**(row | more))  # type: ignore[arg-type]


def end(child: str, to: str, wait: str = "w1", **more: object) -> SendRow:
    row = {"id": f"{child}:end", "kind": "child", "to": to, "wait": wait, "payload": payload(result=2)}
    return SendRow(**(row | more))  # type: ignore[arg-type]


def calling(store: Store, caller: str = "a", child: str = "b", **more: object) -> None:
    """`caller` waits, dehydrated, for `child`, which is ready."""
    for process in ("order", "child"):
        if store.definition(process) is None:
            deploy(store, process)
    start(store, caller)
    dehydrate(store, caller, child_wait(**more), sends=[call(child)], parts={"h": b"h", "s0": b"s", "t1": b"t"})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ starting


def test_a_called_instance_exists_with_the_commit_and_names_its_caller(store: Store) -> None:
    calling(store)
    record = store.instance("b")
    assert record is not None
    assert (record.process_id, record.process_version, record.status) == ("child", 1, "active")
    assert record.caller == f"a{RS}w1"
    claim = claimed(store, instance="b")
    assert claim.caller == f"a{RS}w1"
    assert [(t.kind, t.wait, values_of(t)) for t in claim.triggers] == [("start", "", {"n": 1})]
    assert armed(store, "a") == {"w1"}
    assert store.instance("a").caller == ""  # type: ignore[union-attr]


def test_a_called_instance_names_its_caller_also_to_who_claims_a_part_of_it(bed: StoreBed) -> None:
    store = bed.store(whole_parts=1)
    calling(store)
    dehydrate(store, "b", message("w9"), parts={"h": b"h", "s0": b"s", "t1": b"t", "t2": b"t"})
    store.deliver("b", "message", "w9", "d9", payload())
    claim = claimed(store, instance="b")
    assert (claim.complete, claim.caller) == (False, f"a{RS}w1")


def test_a_call_takes_the_version_that_it_names_else_the_newest(store: Store) -> None:
    deploy(store, "child", document=b"xml\n<one/>")
    deploy(store, "child", document=b"xml\n<two/>")
    deploy(store, "order")
    start(store, "a")
    calls = [call("old", version=1, business_key="K-1"), call("new", "w2")]
    dehydrate(store, "a", child_wait(), child_wait("w2"), sends=calls)
    old, new = store.instance("old"), store.instance("new")
    assert old is not None
    assert new is not None
    assert (old.process_version, old.business_key, new.process_version) == (1, "K-1", 2)


@pytest.mark.parametrize("version", [0, 1])
def test_a_call_of_what_is_not_deployed_fails_at_the_callers_own_wait(store: Store, version: int) -> None:
    deploy(store, "order")
    start(store, "a")
    claim = claimed(store, instance="a")
    arms = [child_wait(group="g"), timer("w2", 1 << 50, group="g")]
    answer = store.commit(commit_of(claim, arms=arms, sends=[call("b", process="nobody", version=version)]))
    assert answer.inbox == 1
    assert store.instance("b") is None
    assert armed(store, "a") == set()
    again = claimed(store, instance="a")
    [trigger] = again.triggers
    assert (trigger.kind, trigger.wait) == ("failed", "w1")
    assert "process 'nobody'" in json.loads(trigger.payload)["cause"]
    assert "is not deployed" in json.loads(trigger.payload)["cause"]


def test_a_call_that_fails_under_a_kept_lease_is_fetched_like_any_trigger(store: Store) -> None:
    deploy(store, "order")
    start(store, "a")
    claim = claimed(store, instance="a")
    changes = {"arms": [child_wait()], "sends": [call("b", process="nobody")], "residency": "keep"}
    answer = store.commit(commit_of(claim, **changes))
    assert (answer.kept, answer.inbox) == (True, 1)
    rows, _ = store.fetch("a", claim.token)
    assert [row.kind for row in rows] == ["failed"]


def test_calls_nest_down_to_the_limit_and_no_deeper(bed: StoreBed) -> None:
    """S83: a process that calls itself is stopped."""
    store = bed.store(max_call_depth=3)
    deploy(store, "order")
    start(store, "0")
    for level in range(3):
        dehydrate(store, str(level), child_wait(), sends=[call(str(level + 1), process="order")])
    dehydrate(store, "3", child_wait(), sends=[call("4", process="order")])
    assert store.instance("4") is None
    claim = claimed(store, instance="3")
    assert json.loads(claim.triggers[0].payload) == {"cause": "calls nest deeper than 3: process 'order' is not called"}


def test_an_id_that_is_taken_is_a_failed_call_and_leaves_the_other_alone(store: Store) -> None:
    deploy(store, "child")
    waiting(store, "b", message("w9"))
    start(store, "a")
    dehydrate(store, "a", child_wait(), sends=[call("b")])
    claim = claimed(store, instance="a")
    assert "exists already" in json.loads(claim.triggers[0].payload)["cause"]
    assert armed(store, "b") == {"w9"}


# -------------------------------------------------------------------------------------------------------- ending


def test_the_end_of_a_called_instance_meets_its_callers_wait_in_the_same_commit(store: Store) -> None:
    calling(store)
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert armed(store, "a") == set()
    claim = claimed(store, instance="a")
    assert [(t.id, t.kind, t.wait, values_of(t)) for t in claim.triggers] == [("b:end", "child", "w1", {"result": 2})]


def test_the_end_withdraws_the_race_group_of_the_callers_wait(store: Store) -> None:
    deploy(store, "child")
    deploy(store, "order")
    start(store, "a")
    arms = [child_wait(group="g"), timer("w2", 1 << 50, group="g"), message("w3")]
    dehydrate(store, "a", *arms, sends=[call("b")])
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert armed(store, "a") == {"w3"}


def test_an_escalation_leaves_the_wait_armed_and_the_end_still_comes(store: Store) -> None:
    calling(store)
    escalation = SendRow("b:1:x:2", "escalation", to="a", wait="w1", payload=b'{"code": "LATE"}')
    dehydrate(store, "b", message("w9"), sends=[escalation])
    assert armed(store, "a") == {"w1"}
    assert inbox(store, "a") == ["b:1:x:2"]
    dehydrate(store, "a")
    store.deliver("b", "message", "w9", "d9", payload())
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert woken(store) == {"a": ["b:end"]}


def test_an_end_that_comes_too_late_changes_nothing(store: Store) -> None:
    """The caller was interrupted, or has ended, or was never there."""
    calling(store)
    dehydrate(store, "b", message("w9"))
    store.deliver("a", "set", "", "d1", payload())
    dehydrate(store, "a", message("w3"), withdrawals=["w1"])
    store.deliver("b", "message", "w9", "d2", payload())
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a"), end("b", "nobody", id="x")])
    assert inbox(store, "a") == []
    assert woken(store) == {}


def test_a_caller_that_ended_is_not_woken(store: Store) -> None:
    calling(store)
    dehydrate(store, "b", message("w9"))
    store.deliver("a", "cancel", "", "d1", payload())
    dehydrate(store, "a", outcome="terminated")
    store.deliver("b", "message", "w9", "d2", payload())
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert inbox(store, "a") == []
    assert store.quiet().quiet


def test_a_resident_caller_hears_its_bell(store: Store) -> None:
    deploy(store, "child")
    deploy(store, "order")
    start(store, "a")
    claim = claimed(store, instance="a")
    store.commit(commit_of(claim, arms=[child_wait()], sends=[call("b")], residency="keep"))
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert store.wait_instance_bell("a", 0.5)
    rows, _ = store.fetch("a", claim.token)
    assert [row.id for row in rows] == ["b:end"]


def test_a_cancelled_caller_cancels_what_it_called(store: Store) -> None:
    """S83: whatever the called instance waits for, an incident included."""
    calling(store)
    dehydrate(store, "b", ArmRow("w8", "incident", "Task_1"))
    store.deliver("a", "cancel", "", "d1", payload())
    cancel = SendRow("b:cancel", "cancel", to="b")
    dehydrate(store, "a", outcome="terminated", sends=[cancel, SendRow("c:cancel", "cancel", to="c")])
    claim = claimed(store, instance="b")
    assert [(t.kind, t.wait) for t in claim.triggers] == [("cancel", "")]


def test_a_suspended_caller_keeps_the_end_until_it_is_resumed(store: Store) -> None:
    calling(store)
    store.suspend("a", True)
    dehydrate(store, "b", outcome="completed", sends=[end("b", "a")])
    assert woken(store) == {}
    store.suspend("a", False)
    assert woken(store) == {"a": ["b:end"]}


def test_a_refused_commit_starts_and_tells_nobody(store: Store) -> None:
    deploy(store, "child")
    waiting(store, "c", child_wait())
    start(store, "a")
    claim = claimed(store, instance="a")
    wrong = commit_of(claim, consumed=["nothing"], arms=[child_wait()], sends=[call("b"), end("a", "c")])
    with pytest.raises(Exception, match="triggers that are not there"):
        store.commit(wrong)
    assert store.instance("b") is None
    assert (armed(store, "c"), inbox(store, "c")) == ({"w1"}, [])


def test_a_commit_that_is_asked_for_again_calls_once(store: Store) -> None:
    deploy(store, "child")
    deploy(store, "order")
    start(store, "a")
    claim = claimed(store, instance="a")
    commit = commit_of(claim, arms=[child_wait()], sends=[call("b")])
    first, again = store.commit(commit), store.commit(commit)
    assert replace(again, now=first.now) == first
    assert [instance for _, instance in store.instances()] == ["a", "b"]
    assert len(inbox(store, "b")) == 1


def test_a_freed_actor_may_claim_what_it_has_just_called(store: Store) -> None:
    deploy(store, "child")
    deploy(store, "order")
    start(store, "a")
    answer = dehydrate(store, "a", child_wait(), sends=[call("b")], next_token="t:2")
    assert answer.next is not None
    assert (answer.next.instance_id, answer.next.caller) == ("b", f"a{RS}w1")


# ----------------------------------------------------------------------------------------------------------- fan-out


def test_each_of_a_thousand_ends_touches_its_own_wait_and_hands_out_its_own_parts(bed: StoreBed) -> None:
    """The cost of an end does not grow with what else its caller waits for."""
    store = bed.store(history_limit=10)
    deploy(store, "child")
    deploy(store, "order")
    start(store, "a")
    many = range(1_000)
    parts = {"h": b"h", "s0": b"s"} | {f"t{n}": b"t" for n in many}
    arms = [child_wait(f"w{n}", touch=(f"t{n}", "s0"), group=f"g{n}") for n in many]
    dehydrate(store, "a", *arms, sends=[call(f"b{n}", f"w{n}") for n in many], parts=parts)
    before = store.instance("a")
    assert before is not None
    assert len(before.waits) == 1_000

    ending = {"b0", "b500", "b999"}
    held: list[Claim] = []
    for claim in iter(lambda: store.claim(f"c:{len(held)}"), None):
        if claim.instance_id in ending:
            held.append(claim)
        else:
            store.commit(commit_of(claim, arms=[child_wait("w")]))
    for claim in held:
        wait = claim.caller.partition(RS)[2]
        store.commit(commit_of(claim, outcome="completed", sends=[end(claim.instance_id, "a", wait)]))
    claim = claimed(store, instance="a")
    assert not claim.complete
    assert set(claim.parts) == {"h", "s0", "t0", "t500", "t999"}
    after = store.instance("a")
    assert after is not None
    ended = {t.wait for t in claim.triggers}
    assert after.waits == {wait: row for wait, row in before.waits.items() if wait not in ended}


def test_an_end_costs_the_server_as_much_beside_a_thousand_waits_as_alone(bed: StoreBed) -> None:
    """Counted in the commands that the server runs for the commit of one called instance."""
    store = bed.store()
    if isinstance(store, MemoryStore):
        pytest.skip("a memory store runs no commands")

    def commands(caller: str, width: int) -> int:
        deploy(store, "child")
        deploy(store, "order")
        start(store, caller)
        arms = [child_wait(f"w{n}", touch=(f"t{n}",)) for n in range(width)]
        dehydrate(store, caller, *arms, sends=[call(f"{caller}-b", "w0")])
        claim = claimed(store, instance=f"{caller}-b")
        client = store._client  # type: ignore[attr-defined]
        client.config_resetstat()
        store.commit(commit_of(claim, outcome="completed", sends=[end(claim.instance_id, caller, "w0")]))
        counts = {name: row["calls"] for name, row in client.info("commandstats").items()}
        woken(store)
        return sum(calls for name, calls in counts.items() if not name.startswith(("cmdstat_config", "cmdstat_info")))

    assert commands("narrow", 1) == commands("wide", 1_000)


def test_a_cancel_that_a_held_instance_sends_to_itself_ends_its_hold(store: Store) -> None:
    """D21: an operator held it while its step ran; the commit that releases it finds the hold gone, and it is ready."""
    deploy(store)
    start(store, "a")
    claim = claimed(store)
    assert store.suspend("a", True)
    assert store.quiet().quiet is False

    release = commit_of(claim, sends=[SendRow("a:cancel", "cancel", to="a")])
    assert not store.commit(release).kept

    again = claimed(store, instance="a")
    assert [trigger.kind for trigger in again.triggers] == ["cancel"]
    store.commit(commit_of(again, outcome="terminated"))
