"""Callables by reference and by value: what may be stored, what may be loaded, and what is never unpickled."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from base64 import b64encode
from pathlib import Path
from types import ModuleType

import pytest

from gobpm_ray.errors import InvalidSetting, UnregisteredCallable
from gobpm_ray.runtime import callables
from gobpm_ray.runtime.callables import (
    Callables,
    callable_row,
    is_async,
    load_row,
    reference_row,
    takes_context,
    value_row,
)

KEY = b"k" * 32


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module in a deploying job's working directory, with another one beside it that it needs."""
    (tmp_path / "job_rates.py").write_text("RATE = 3\ndef rate():\n    return RATE\n")
    (tmp_path / "job_work.py").write_text(
        "import job_rates\n\ndef price(inputs):\n    return {'price': inputs['n'] * job_rates.rate()}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("job_work", "job_rates"):
        sys.modules.pop(name, None)
    return importlib.import_module("job_work")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on another node: the job's modules are not there."""
    for name in ("job_work", "job_rates"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not Path(path).joinpath("job_work.py").exists()])


def test_a_job_modules_function_runs_where_its_modules_are_missing(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 9: modules under the working directory are pickled by value, those they need included."""
    row = callable_row(job.price, KEY)
    forget(monkeypatch)
    assert load_row(row, KEY)({"n": 7}) == {"price": 21}


def test_an_installed_modules_function_is_stored_by_reference() -> None:
    row = callable_row(json.dumps, KEY)
    assert json.loads(row) == {"ref": "json:dumps"}
    assert load_row(row, None) is json.dumps
    assert json.loads(callable_row("json:dumps", None)) == {"ref": "json:dumps"}


def test_the_engines_own_modules_are_installed_wherever_the_engine_is() -> None:
    """Also when the working directory is the engine's repository."""
    assert json.loads(callable_row(load_row, KEY)) == {"ref": "gobpm_ray.runtime.callables:load_row"}


def test_code_by_value_needs_a_key(job: ModuleType) -> None:
    with pytest.raises(InvalidSetting, match="GOBPM_SIGNING_KEY"):
        callable_row(job.price, None)


@pytest.mark.parametrize("spoiled", ["key", "mac", "pickle"])
def test_nothing_with_a_wrong_signature_is_unpickled(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch, spoiled: str
) -> None:
    row = json.loads(value_row(job.price, KEY))
    key = KEY
    if spoiled == "key":
        key = b"x" * 32
    elif spoiled == "mac":
        row["mac"] = "0" * 64
    else:
        row["pickle"] = b64encode(pickle.dumps(print)).decode()
    monkeypatch.setattr("gobpm_ray.runtime.callables.pickle.loads", lambda _data: pytest.fail("it was unpickled"))
    with pytest.raises(UnregisteredCallable, match="topic 'billing': the signature"):
        load_row(json.dumps(row).encode(), key, "billing")


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (b"{", "topic 'billing': its stored row is damaged"),
        (b"{}", "topic 'billing': its stored row is damaged"),
        (b'{"pickle":"*","mac":""}', "topic 'billing': its stored row is damaged"),
        (b'{"ref":"no colon"}', "topic 'billing': 'no colon' is not of the form module:function"),
        (b'{"ref":"no_such_module:f"}', "topic 'billing': module no_such_module cannot be imported here"),
        (b'{"ref":"json:no_such"}', "topic 'billing': module json has no no_such"),
        (b'{"ref":"json:__name__"}', "topic 'billing': json:__name__ cannot be called"),
    ],
)
def test_a_row_that_cannot_be_loaded_names_topic_and_module(row: bytes, line: str) -> None:
    with pytest.raises(UnregisteredCallable) as refused:
        load_row(row, KEY, "billing")
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_a_value_row_is_refused_by_a_node_without_the_key(job: ModuleType) -> None:
    with pytest.raises(UnregisteredCallable, match="no signing key"):
        load_row(value_row(job.price, KEY), None, "billing")


def test_what_no_other_node_could_import_is_refused_by_reference() -> None:
    with pytest.raises(UnregisteredCallable, match="cannot be imported on another node"):
        reference_row(lambda inputs: None)


def test_what_cannot_be_pickled_is_refused_by_name(job: ModuleType) -> None:
    import threading

    lock = threading.Lock()

    def locked(inputs: object) -> object:
        return lock

    with pytest.raises(UnregisteredCallable, match="cannot be pickled"):
        value_row(locked, KEY)


def test_a_redeployed_callable_is_noticed_and_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"t": reference_row(json.dumps)}
    asked: list[str] = []

    def loader(topic: str) -> bytes | None:
        asked.append(topic)
        return rows.get(topic)

    clock = [100.0]
    monkeypatch.setattr("gobpm_ray.runtime.callables.time.monotonic", lambda: clock[0])
    found = Callables(loader, key=KEY)
    assert [found.resolve("t") for _ in range(5)] == [json.dumps] * 5
    assert asked == ["t"]
    assert found.resolve("other") is None
    rows["t"] = reference_row(json.loads)
    clock[0] += callables.KEPT_S
    assert found.resolve("t") is json.loads


def test_how_a_callable_wants_to_be_called() -> None:
    async def coroutine(inputs: object, context: object) -> None: ...

    class Work:
        async def __call__(self, inputs: object) -> None: ...

    assert (is_async(coroutine), takes_context(coroutine)) == (True, True)
    assert (is_async(Work()), takes_context(Work())) == (True, False)
    assert not takes_context(lambda inputs, other: None)
    assert not is_async(print)
