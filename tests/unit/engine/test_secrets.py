"""`Secret`: a value marked by whoever hands it in; its instance shows it to nobody (issue 6, secrets)."""

from __future__ import annotations

import json
import logging
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest

from gobpm_ray import BpmnError, Engine, ProcessBuilder, Secret, Settings
from gobpm_ray.checkpoint.codec import dump, load
from gobpm_ray.engine.views import plain
from gobpm_ray.errors import InputError
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.secret import revealed

WORD = "opensesame"


def opened(**callables: Any) -> Engine:
    return Engine.open(store=None, clock="virtual", settings=Settings(), callables=callables)


def test_a_secret_does_not_say_what_it_is() -> None:
    secret = Secret(WORD)
    for text in (repr(secret), str(secret), f"{secret}", f"{secret:>20}", repr({"password": secret})):
        assert WORD not in text
    with pytest.raises(TypeError):
        json.dumps({"password": secret})
    assert secret.reveal() == WORD
    assert Secret(secret) == secret
    assert Secret("other") != secret != WORD
    assert len({secret, Secret(WORD)}) == 1


def test_a_secret_travels_as_its_value_and_the_mark() -> None:
    for dumps in (pickle.dumps, cloudpickle.dumps):
        again = pickle.loads(dumps({"a": [Secret({"b": WORD})]}))
        assert again["a"][0] == Secret({"b": WORD})
    again = load(dump({"a": [Secret({"b": WORD, "c": (1, 2)})], "d": {"$s": "no mark"}}))
    assert again == {"a": [Secret({"b": WORD, "c": [1, 2]})], "d": {"$s": "no mark"}}
    assert revealed(again) == ({"a": [{"b": WORD, "c": [1, 2]}], "d": {"$s": "no mark"}}, ("a",))


def life() -> ProcessBuilder:
    """By hand, by worker and by a callable; through a call, a message, a failure and an incident."""
    built = ProcessBuilder("p")
    built.start().user_task("ask", inputs={"note": '="use " + password'}).service_task(
        "work", topic="work", retries="R1/PT1M", outputs={"token": "=answer.token"}
    ).service_task("hand", topic="by hand").call("call", process="inner", inputs={"pin": "=token"}).end("done")
    return built


def inner() -> ProcessBuilder:
    built = ProcessBuilder("inner")
    built.start().service_task("fail", topic="fail", inputs={"given": "=pin"}).end("done")
    return built


def test_nothing_that_an_engine_shows_says_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    """Through a whole life with failures: views, lists, incidents, facts, histories and logs; the work gets it."""
    caplog.set_level(logging.DEBUG)
    seen: list[Mapping[str, object]] = []

    def work(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.append(inputs)
        if context.attempt == 1:
            raise ConnectionError(f"refused {inputs['password']}")
        return {"answer": {"token": Secret("open-token")}}

    def fail(inputs: dict[str, Any]) -> None:
        seen.append(inputs)
        raise BpmnError("E", f"no {inputs['given']}")

    shown: list[str] = []
    with opened(work=work, fail=fail) as engine:
        engine.deploy(life(), inner())
        started = engine.start("p", {"password": Secret(WORD), "user": "ann", "copy": f"<{WORD}>"})

        def look() -> None:
            store = engine.store
            everything = [engine.inspect(name) for _, name in store.instances()]
            listed = (engine.tasks(), engine.jobs(), engine.incidents(), engine.facts(), engine.dead(), engine.top())
            records = [
                (record.history, record.waits) for _, name in store.instances() if (record := store.instance(name))
            ]
            shown.append(repr((everything, listed, records)))

        look()
        (task,) = engine.tasks()
        assert task.inputs == {"note": "***"}
        view = engine.inspect(started.instance_id)
        assert view.variables == {"password": "***", "user": "ann", "copy": "***"}
        engine.complete(task.id, {"pin": Secret(1234567), "open": 1})
        look()
        engine.advance("PT1M")
        look()
        (job,) = engine.fetch_and_lock("by hand")
        assert (job.inputs["password"], job.inputs["pin"], job.inputs["token"]) == (WORD, 1234567, "open-token")
        shown.append(repr(job))
        engine.fail_job(job, f"could not use {job.inputs['token']} or {job.inputs['pin']}", retries=1)
        look()
        (job,) = engine.fetch_and_lock("by hand")
        assert job.cause == "could not use *** or ***"
        engine.fail_job(job, f"never {job.inputs['password']}", retries=0, stack=f"at {job.inputs['password']}")
        look()
        (incident,) = engine.incidents()
        assert (incident.cause, incident.stack) == ("never ***", "at ***")
        engine.resolve(started.instance_id)
        look()
        (called,) = [name for _, name in engine.store.instances() if name != started.instance_id]
        assert engine.inspect(called).variables["pin"] == "***"
        engine.set(started.instance_id, {"password": "a new " + WORD, "user": Secret("ann-secret")})
        look()
        assert plain(engine.inspect(started.instance_id).variables)["user"] == "***"  # type: ignore[index]
        engine.publish("Nobody", "K", {"password": Secret(WORD), "n": 1}, ttl="PT1M")
        engine.advance("PT2M")
        (letter,) = engine.dead()
        assert json.loads(letter.payload) == {"values": {"password": "***", "n": 1}}
        look()
        engine.cancel(started.instance_id)
        look()
    assert [values.get("password") for values in seen[:2]] == [WORD, WORD]
    assert seen[2]["given"] == "open-token"
    for word in (WORD, "open-token", "1234567", "ann-secret"):
        assert word not in "".join(shown)
        assert word not in caplog.text


def test_a_secret_that_is_copied_is_one_when_the_first_is_gone() -> None:
    built = ProcessBuilder("p")
    built.start().script_task("copy", "password", result="kept", language="feel").script_task(
        "forget", "null", result="password", language="feel"
    ).user_task("wait").end()
    with opened() as engine:
        engine.deploy(built)
        started = engine.start("p", {"password": Secret(WORD)})
        assert engine.inspect(started.instance_id).variables == {"password": "***", "kept": "***"}
        assert isinstance(engine.store, MemoryStore)


def test_a_message_hands_a_secret_on_as_one() -> None:
    """A throw of one instance to another: the receiver's instance knows the mark."""
    sender = ProcessBuilder("sender")
    sender.start().throw("tell", message="Tell").end()
    receiver = ProcessBuilder("receiver")
    receiver.start(message="Tell").user_task("wait").end()
    with opened() as engine:
        engine.deploy(sender, receiver)
        engine.start("sender", {"password": Secret(WORD), "n": 1})
        (view,) = [engine.inspect(name) for _, name in engine.store.instances() if name.startswith("receiver")]
        assert "password" not in view.variables or view.variables["password"] == "***"
        assert WORD not in repr(view)


def test_one_instances_mark_is_not_anothers() -> None:
    built = ProcessBuilder("p")
    built.start().user_task("wait").end()
    with opened() as engine:
        engine.deploy(built)
        first = engine.start("p", {"password": Secret(WORD)}).instance_id
        second = engine.start("p", {"password": "open"}).instance_id
        assert engine.inspect(first).variables == {"password": "***"}
        assert engine.inspect(second).variables == {"password": "open"}


def test_a_deployment_names_secrets_that_its_model_does_not(tmp_path: Path) -> None:
    """They stay it in a later version that is deployed without the option."""
    built = ProcessBuilder("p", secrets=["pin"])
    built.start().user_task("wait").end()
    with opened() as engine:
        engine.deploy(built, secrets=["password"])
        view = engine.inspect(engine.start("p", {"password": WORD, "pin": 1234, "user": "ann"}).instance_id)
        assert view.variables == {"password": "***", "pin": "***", "user": "ann"}
        later = ProcessBuilder("p")
        later.start().user_task("later").end()
        engine.deploy(later, secrets=["user"])
        view = engine.inspect(engine.start("p", {"password": WORD, "pin": 1234, "user": "ann"}).instance_id)
        assert view.variables == {"password": "***", "pin": 1234, "user": "***"}
        with pytest.raises(InputError, match="several names"):
            engine.deploy(later, secrets="password")


def test_the_example_of_the_page_on_security_says_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(snippet, "security.md", "exec"), {"__name__": "security"})
    assert capsys.readouterr().out == "{'user': 'ann', 'password': '***'}\n"
