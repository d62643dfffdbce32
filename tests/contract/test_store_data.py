"""Data stores of the engine: written with a step or not at all, once, and only on what the step read (BPMN 10.4.1)."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from gobpm_ray import Operations, ProcessBuilder, Stored
from gobpm_ray.errors import DataStoreChanged, LeaseLost, LimitReached
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.ports import DataUse, Store
from gobpm_ray.runtime.programs import Programs
from tests.support.stores import StoreBed, claimed, commit_of, human, inbox, payload, waiting


def _woken(store: Store, instance: str = "i1") -> None:
    """An instance with one trigger in its inbox."""
    waiting(store, instance, human("w1"))
    store.deliver(instance, "task", "w1", f"d-{instance}", payload())


def _value(store: Store, name: str = "Stock") -> bytes | None:
    row = store.read_data([name]).get(name)
    return None if row is None else row.value


def test_a_data_store_that_nobody_has_written_is_not_there(store: Store) -> None:
    assert store.read_data(["Stock", "Orders"]) == {}
    assert store.all_data() == []


def test_a_commit_writes_data_stores_with_the_rest_of_its_step(store: Store) -> None:
    _woken(store)
    claim = claimed(store, instance="i1")
    uses = [DataUse("Stock", value=b'{"value": 7}'), DataUse("Orders", value=b'{"value": []}', secret=True)]
    store.commit(commit_of(claim, data=uses, parts={"h": b"2"}))
    stock, orders = (store.read_data(["Stock", "Orders"])[name] for name in ("Stock", "Orders"))
    assert (stock.value, stock.by, stock.secret, stock.at) == (b'{"value": 7}', "i1", False, stock.at)
    assert stock.at > 0
    assert orders.secret
    assert orders.version > stock.version > 0
    assert [row.name for row in store.all_data()] == ["Orders", "Stock"]
    record = store.instance("i1")
    assert record is not None
    assert record.parts["h"] == b"2"


def test_names_and_values_are_any_text_and_bytes(store: Store) -> None:
    """Separators of the store's own rows included."""
    awkward = bytes(range(256))
    store.write_data("a \x1e größe\x1f", awkward)
    assert store.read_data(["a \x1e größe\x1f"])["a \x1e größe\x1f"].value == awkward


def test_a_step_that_read_what_is_there_no_longer_leaves_no_trace(store: Store) -> None:
    """The lost update: two steps read 10, each takes 3, and 4 are left."""
    first = store.write_data("Stock", b"10")
    _woken(store)
    claim = claimed(store, instance="i1")
    other = store.write_data("Stock", b"7")
    stale = commit_of(claim, data=[DataUse("Stock", first, b"7")], parts={"h": b"2"}, history=[b'{"e":"x","t":1}'])
    with pytest.raises(DataStoreChanged, match="Stock"):
        store.commit(stale)
    record = store.instance("i1")
    assert record is not None
    assert (record.version, record.parts["h"], record.history) == (1, b"head", ())
    assert inbox(store, "i1") == ["d-i1"]
    assert (_value(store), store.read_data(["Stock"])["Stock"].version) == (b"7", other)
    # Made again on what is there by now, under the same lease.
    store.commit(replace(stale, commit_id="again", data=[DataUse("Stock", other, b"4")]))
    assert _value(store) == b"4"
    assert inbox(store, "i1") == []


def test_nothing_was_there_is_something_that_was_read(store: Store) -> None:
    _woken(store)
    claim = claimed(store, instance="i1")
    store.write_data("Stock", b"1")
    with pytest.raises(DataStoreChanged):
        store.commit(commit_of(claim, data=[DataUse("Stock", 0, b"1")]))
    store.drop_data("Stock")
    store.commit(commit_of(claim, data=[DataUse("Stock", 0, b"2")]))
    assert _value(store) == b"2"


def test_one_that_is_only_read_is_checked_too_beside_one_that_is_written(store: Store) -> None:
    price = store.write_data("Price", b"5")
    _woken(store)
    claim = claimed(store, instance="i1")
    store.write_data("Price", b"6")
    uses = [DataUse("Price", price), DataUse("Bill", value=b"50")]
    with pytest.raises(DataStoreChanged, match="Price"):
        store.commit(commit_of(claim, data=uses))
    assert _value(store, "Bill") is None
    assert _value(store, "Price") == b"6"


def test_a_version_is_never_the_same_again_also_after_a_drop(store: Store) -> None:
    """Else a step that read before the drop would be taken for one that read after it."""
    first = store.write_data("Stock", b"1")
    assert store.drop_data("Stock")
    assert not store.drop_data("Stock")
    assert store.write_data("Stock", b"1") > first


def test_a_commit_that_is_sent_again_after_a_lost_answer_writes_once(store: Store) -> None:
    """R20."""
    _woken(store)
    claim = claimed(store, instance="i1")
    commit = commit_of(claim, data=[DataUse("Stock", 0, b"1")])
    store.commit(commit)
    row = store.read_data(["Stock"])["Stock"]
    store.commit(commit)  # what it read has changed by its own write: still the answer of the first time
    assert store.read_data(["Stock"])["Stock"] == row


def test_a_host_that_lost_its_lease_writes_no_data_store(bed: StoreBed) -> None:
    """N8, C66."""
    store = bed.store(lease_ttl_ms=50, lease_renew_ms=20)
    _woken(store)
    claim = claimed(store, instance="i1")
    bed.elapse(60)
    with pytest.raises(LeaseLost):
        store.commit(commit_of(claim, data=[DataUse("Stock", value=b"1")]))
    assert store.all_data() == []


def test_an_instance_that_ends_leaves_what_it_wrote(store: Store) -> None:
    _woken(store, "instance-1")
    claim = claimed(store, instance="instance-1")
    store.commit(commit_of(claim, outcome="completed", data=[DataUse("Stock", value=b"1")]))
    assert store.read_data(["Stock"])["Stock"].by == "instance-1"


def test_an_operator_writes_only_on_the_version_that_is_expected(store: Store) -> None:
    first = store.write_data("Stock", b"1", 0)
    with pytest.raises(DataStoreChanged, match="Stock"):
        store.write_data("Stock", b"2", 0)
    second = store.write_data("Stock", b"2", first)
    assert (_value(store), second > first) == (b"2", True)
    assert store.read_data(["Stock"])["Stock"].by == ""
    assert not store.read_data(["Stock"])["Stock"].secret
    store.write_data("Stock", b"3", second, secret=True)
    assert store.read_data(["Stock"])["Stock"].secret


def test_a_value_beyond_the_limit_is_refused_by_name(bed: StoreBed) -> None:
    store = bed.store(max_variable=10)
    with pytest.raises(LimitReached, match=r"'Stock'.*11 bytes.*max_variable"):
        store.write_data("Stock", b"x" * 11)
    assert store.all_data() == []


def test_a_store_is_stamped_with_the_business_clock(store: Store) -> None:
    store.manual_clock(1_767_225_600_000)
    store.write_data("Stock", b"1")
    assert store.read_data(["Stock"])["Stock"].at == 1_767_225_600_000


def test_forty_instances_on_four_hosts_lose_no_update(store: Store) -> None:
    """Each reads the count, adds one and writes it: whoever was overtaken does it again on what is there by then."""
    counting = ProcessBuilder("counting")
    counting.start().script_task("count", outputs={Stored("Count"): "=Count + 1", "mine": Stored("Count")}).end()
    operations = Operations(store)
    operations.deploy(counting)
    operations.set_data_store("Count", 0)
    started = [answer.instance_id for answer in operations.start_many("counting", [{}] * 40)]
    hosts = [
        Host(store, store.settings, Programs(store), Callables(lambda _topic: None), f"a{number}")  # type: ignore[attr-defined]
        for number in range(4)
    ]
    threads = [threading.Thread(target=_serve, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert operations.data_store("Count").value == 40
    assert {operations.inspect(instance).variables["mine"] for instance in started} == set(range(1, 41))
    for host in hosts:
        host.close()


def _serve(host: Host) -> None:
    while host.serve_once():
        pass
