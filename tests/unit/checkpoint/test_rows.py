"""Rows between core and store: what goes out comes back, and facts hold names and counts."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.step import HistoryEntry, TaskRow, Trigger
from gobpm_ray.errors import CorruptCheckpoint, InvalidPayload, UnstorableValue

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)


def test_a_payload_comes_back_as_the_trigger_that_it_was_made_for() -> None:
    values: dict[str, object] = {"price": Decimal("1.50"), "day": date(2026, 1, 2)}
    data = rows.payload(values, cause="printer on fire", code="E1")
    assert rows.trigger("d1", "child", "2:work:7", 9, data) == Trigger(
        "d1", "child", "2:work:7", 9, values, code="E1", cause="printer on fire"
    )


def test_nothing_to_say_is_the_empty_object() -> None:
    assert rows.payload({}) == b"{}"
    assert rows.trigger("d1", "timer", "2:wait:0:7", 9, b"{}") == Trigger("d1", "timer", "2:wait:0:7", 9)


def test_a_start_names_its_start_event_in_the_rows_wait() -> None:
    assert rows.trigger("d1", "start", "order received", 9, b"{}") == Trigger(
        "d1", "start", node="order received", seq=9
    )
    assert rows.trigger("d1", "start", "", 9, rows.payload({}, node="tick")).node == "tick"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"values":[]}', b'{"node":5}', b'{"values":{"a":{"$?":1}}}', b"\xff"])
def test_a_payload_that_says_nothing_is_refused_by_its_trigger(data: bytes) -> None:
    with pytest.raises(InvalidPayload, match="trigger 'd1'"):
        rows.trigger("d1", "message", "w", 1, data)


def test_an_unknown_kind_of_trigger_is_refused() -> None:
    with pytest.raises(InvalidPayload, match="'telepathy'"):
        rows.trigger("d1", "telepathy", "w", 1, b"{}")


def test_a_value_that_cannot_be_stored_is_refused_where_it_is_accepted() -> None:
    with pytest.raises(UnstorableValue, match=r"start of p 'a\.b'"):
        rows.payload({"a": {"b": object()}}, where="start of p")


@given(
    st.builds(
        TaskRow,
        node=TEXT,
        name=TEXT,
        assignee=TEXT,
        users=TEXTS,
        groups=TEXTS,
        required=TEXTS,
        due=st.none() | st.integers(0),
        follow_up=st.none() | st.integers(0),
        priority=st.integers(),
        form=TEXT,
        topic=TEXT,
        inputs=st.dictionaries(TEXT, st.dates() | st.integers() | TEXT, max_size=2),
    )
)
def test_a_tasks_row_survives(row: TaskRow) -> None:
    assert rows.read_task_row(rows.task_row(row)) == row


def test_a_tasks_row_is_the_json_that_the_accepting_script_reads() -> None:
    row = TaskRow("approve", users=("ann",), groups=("chiefs", "board"), required=("verdict",))
    assert json.loads(rows.task_row(row)) == {
        "node": "approve",
        "users": ["ann"],
        "groups": ["chiefs", "board"],
        "required": ["verdict"],
    }


def test_a_damaged_task_row_is_refused() -> None:
    with pytest.raises(CorruptCheckpoint, match="task i/w"):
        rows.read_task_row(b'{"name":"no node"}', "task i/w")


def test_a_start_timers_row_survives() -> None:
    assert rows.read_start_timer(rows.start_timer_row("R3/PT1H", 5, 2)) == ("R3/PT1H", 5, 2)
    assert rows.read_start_timer(b"") == ("", 0, 0)
    with pytest.raises(CorruptCheckpoint):
        rows.read_start_timer(b'{"cycle":"R","anchor":"noon"}')


@pytest.mark.parametrize("entry", [HistoryEntry("node", 5, "a", "b"), HistoryEntry("started", 0)])
def test_history_survives(entry: HistoryEntry) -> None:
    assert rows.read_history_entry(rows.history_entry(entry)) == entry


def test_a_cause_that_quotes_unwritable_text_is_still_written() -> None:
    entry = HistoryEntry("incident", 5, "a", "cannot store '\ud800'")
    assert rows.read_history_entry(rows.history_entry(entry)).detail == "cannot store '?'"


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"5", b'{"e":"node"}'])
def test_a_damaged_history_entry_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        rows.read_history_entry(data)


def test_a_fact_names_and_counts() -> None:
    fact = rows.fact("Dehydrated", "i", "p", 7, kinds=["timer"], waits=1)
    assert rows.read_fact(fact) == {
        "fact": "Dehydrated",
        "instance": "i",
        "process": "p",
        "at": 7,
        "kinds": ["timer"],
        "waits": 1,
    }


@pytest.mark.parametrize("name", ["$dt", "$$dt", "$", "plain"])
def test_a_single_variable_whose_name_looks_like_a_tag_survives(name: str) -> None:
    """The top level of the values is never a tag, wherever it is written."""
    assert rows.read_payload(rows.payload({name: 5}))[0] == {name: 5}
    assert rows.read_payload(rows.payload({name: {name: 5}}))[0] == {name: {name: 5}}
    assert rows.read_task_row(rows.task_row(TaskRow("n", inputs={name: 5}))).inputs == {name: 5}
