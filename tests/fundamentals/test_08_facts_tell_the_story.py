"""8. The stream of facts tells what happened in the whole engine: names and counts, never a payload."""

from __future__ import annotations

from gobpm_ray import Engine, ProcessBuilder


def test_facts_tell_the_story(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().user_task("ship").end()
    engine.deploy(order)
    engine.start("order", {"card": "4711"})
    engine.complete("ship")

    facts = engine.facts()
    assert [fact.fact for fact in facts] == ["Started", "Completed"]
    assert "4711" not in str(facts)
    assert engine.facts(after=facts[-1].id) == []
