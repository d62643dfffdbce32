"""5. A deadline is computed once and stored. On a virtual clock a week takes milliseconds.

A boundary event guards a task: this one reminds daily without interrupting, and gives up after a week.
"""

from __future__ import annotations

from gobpm_ray import Engine, ProcessBuilder


def test_time_is_a_deadline(engine: Engine) -> None:
    request = ProcessBuilder("request")
    request.start().receive_task("answer", message="Answer", key="=ref").end("answered")
    request.boundary("answer", "daily", timer="R/P1D", interrupting=False).task("remind").end("reminded")
    request.boundary("answer", "week", timer="P7D").user_task("call").end("called")
    engine.deploy(request)
    instance_id = engine.start("request", {"ref": 7}).instance_id

    engine.advance("P3DT1H")
    assert engine.inspect(instance_id).trace.count("remind") == 3

    engine.advance("P30D")
    view = engine.inspect(instance_id)
    assert [token.node for token in view.tokens] == ["call"]
    assert view.trace.count("remind") in (6, 7)  # the seventh day's reminder and the end of the week race
