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
from gobpm_ray.core.program import Program, ProgramNode

SCRIPT = "script"
"""The operand of a script task that is one expression."""

Statements = Callable[[Mapping[str, object], int], dict[str, object]]


def storing(program: Program) -> Program:
    """The same program; mappings and scripts raise UnstorableValue for what has no durable form."""
    return replace(program, nodes=MappingProxyType({name: _node(node) for name, node in program.nodes.items()}))


def _node(node: ProgramNode) -> ProgramNode:
    script = node.operands.get(SCRIPT)
    if not (node.inputs or node.outputs or node.script or script):
        return node
    operands = node.operands if script is None else {**node.operands, SCRIPT: _operand(script, "result")}
    return replace(
        node,
        inputs=tuple(_binding(binding) for binding in node.inputs),
        outputs=tuple(_binding(binding) for binding in node.outputs),
        operands=MappingProxyType(dict(operands)),
        script=None if node.script is None else _statements(node.script),
    )


def _binding(binding: Binding) -> Binding:
    return replace(binding, source=_operand(binding.source, binding.target))


def _operand(operand: Operand, name: str) -> Operand:
    evaluate = operand.evaluate

    def checked(variables: Mapping[str, object], now_ms: int) -> object:
        value = evaluate(variables, now_ms)
        dump({name: value}, "variable")
        return value

    return replace(operand, evaluate=checked)


def _statements(run: Statements) -> Statements:
    def checked(variables: Mapping[str, object], now_ms: int) -> dict[str, object]:
        values = run(variables, now_ms)
        dump(values, "variable")
        return values

    return checked
