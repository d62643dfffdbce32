"""4. A message wakes the instance that waits for its name and key, and no other.

One that nobody waits for yet is kept until its time to live is over. The same delivery id counts once.
"""

from __future__ import annotations

from gobpm_ray import Engine, ProcessBuilder


def test_a_message_finds_its_conversation(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().receive_task("paid", message="Payment", key="=order_id").end()
    engine.deploy(order)
    one, two = (engine.start("order", {"order_id": number}).instance_id for number in (1, 2))

    engine.publish("Payment", key=2, payload={"by": "card"}, id="bank-4711")
    engine.publish("Payment", key=2, payload={"by": "card"}, id="bank-4711")

    assert engine.inspect(one).state == "waiting"
    assert engine.inspect(two).variables == {"order_id": 2, "by": "card"}
