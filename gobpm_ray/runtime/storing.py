"""A program whose computed values can all be stored: what an expression makes of variables is checked where it is made.

Found later, in the commit, such a value would fail the whole wake, again and again; found here it is an incident of the
one element that computed it. It knows which results become variables, and nothing else about a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gobpm_ray.checkpoint.codec import dump
from gobpm_ray.core.operands import Binding, Operand
from gobpm_ray.core.program import Decider, DecisionSource, Program, ProgramNode
from gobpm_ray.errors import LimitReached

STORED = ("script", "collection", "output_item")
"""Operands whose values become variables: a script task's one expression, the items and outputs of an iteration."""

_SHOWN = {"script": "result", "collection": "item", "output_item": "output"}

Statements = Callable[[Mapping[str, object], int], dict[str, object]]


def storing(program: Program, most: int = 0) -> Program:
    """The same program; mappings, scripts and decisions raise UnstorableValue for what has no durable form, and the
    first two LimitReached for what has more bytes than `most` (0: any number)."""
    nodes = {name: _node(node, most) for name, node in program.nodes.items()}
    return replace(program, nodes=MappingProxyType(nodes), decisions=_source(program.decisions))


class _Checked:
    """Decisions whose values can be stored."""

    def __init__(self, decisions: Decider) -> None:
        self._decisions = decisions

    def __contains__(self, decision_id: object) -> bool:
        return decision_id in self._decisions

    def evaluate(self, decision_id: str, variables: Mapping[str, object], now_ms: int) -> object:
        value = self._decisions.evaluate(decision_id, variables, now_ms)
        dump({decision_id: value}, "decision")
        return value

    def result_name(self, decision_id: str) -> str:
        return self._decisions.result_name(decision_id)


def _source(find: DecisionSource) -> DecisionSource:
    def checked(decision_id: str, binding: str, version: int) -> Decider | None:
        found = find(decision_id, binding, version)
        return None if found is None else _Checked(found)

    return checked


def _node(node: ProgramNode, most: int) -> ProgramNode:
    stored = {name: _operand(node.operands[name], _SHOWN[name], most) for name in STORED if name in node.operands}
    if not (node.inputs or node.outputs or node.script or stored or node.body):
        return node
    operands = {**node.operands, **stored} if stored else node.operands
    return replace(
        node,
        inputs=tuple(_binding(binding, most) for binding in node.inputs),
        outputs=tuple(_binding(binding, most) for binding in node.outputs),
        operands=MappingProxyType(dict(operands)),
        script=None if node.script is None else _statements(node.script, most),
        body=None if node.body is None else _node(node.body, most),
    )


def _binding(binding: Binding, most: int) -> Binding:
    where = "variable" if binding.store is None else "data store"
    return replace(binding, source=_operand(binding.source, binding.target, most, where))


def _operand(operand: Operand, name: str, most: int, where: str = "variable") -> Operand:
    evaluate = operand.evaluate

    def checked(variables: Mapping[str, object], now_ms: int) -> object:
        value = evaluate(variables, now_ms)
        _check({name: value}, name, most, where)
        return value

    return replace(operand, evaluate=checked)


def _statements(run: Statements, most: int) -> Statements:
    def checked(variables: Mapping[str, object], now_ms: int) -> dict[str, object]:
        values = run(variables, now_ms)
        _check(values, "script", most)
        return values

    return checked


def _check(values: Mapping[str, object], name: str, most: int, where: str = "variable") -> None:
    size = len(dump(dict(values), where))
    if 0 < most < size:
        raise LimitReached(
            f"{where} '{name}': it has {size} bytes, the limit is {most} (max_variable); keep it elsewhere and its "
            "address here"
        )
