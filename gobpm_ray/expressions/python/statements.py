"""Python's statements as closures: assignments, `if`, `for`, `while` and calls; for script tasks.

A script works on copies: a list or dict that it reads from the variables is copied when it is first touched, and is
part of the result only if it was changed. What a loop's variable holds at the end is no result, nor is anything whose
name begins with an underscore.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final, cast

from gobpm_ray.expressions.budget import Refused, Run, check_length
from gobpm_ray.expressions.python.compiler import ExpressionCompiler
from gobpm_ray.expressions.python.loops import target, unpacked
from gobpm_ray.expressions.python.operators import BINARY, name_of, plain_key
from gobpm_ray.expressions.python.syntax import at, refuse

BREAK: Final = "break"
CONTINUE: Final = "continue"


class Workspace(dict[str, object]):
    """The names of one run: its own assignments in front of copies of the variables."""

    __slots__ = ("assigned", "copied", "run", "variables")

    def __init__(self, variables: Mapping[str, object], run: Run) -> None:
        super().__init__()
        self.variables = variables
        self.run = run
        self.assigned: set[str] = set()
        self.copied: dict[str, object] = {}
        """Name -> the variable's untouched value, for those whose copy stands in this dict."""

    def __missing__(self, name: str) -> object:
        value = self.variables[name]
        if isinstance(value, list | tuple | dict):
            self.run.charge_deep(value)
            self[name] = copy = copied(value)
            self.copied[name] = value
            return copy
        return value

    def assign(self, name: str, value: object) -> None:
        self[name] = value
        self.assigned.add(name)

    def results(self) -> dict[str, object]:
        """What was assigned, and what was changed in place."""
        made: dict[str, object] = {}
        for name, value in self.items():
            if name.startswith("_"):
                continue
            if name in self.assigned or (name in self.copied and not _identical(value, self.copied[name])):
                made[name] = value
        return made


def copied(value: object) -> object:
    """A copy of lists and dicts, all the way down; the caller has paid and measured."""
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def _identical(left: object, right: object) -> bool:
    """Equal, and of the same types throughout: 1 in place of True is a change."""
    if isinstance(left, list) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_identical, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_identical(item, right[key]) for key, item in left.items())
    return type(left) is type(right) and left == right


Execute = Callable[[Workspace, Run], str | None]
Assign = Callable[[Workspace, Run, object], None]


class StatementCompiler(ExpressionCompiler):
    """One compilation of a script."""

    loops = 0

    def block(self, statements: list[ast.stmt]) -> Execute:
        """The statements in order; its answer is BREAK or CONTINUE where one of them ended the round."""
        closures = [self.statement(statement) for statement in statements]
        if len(closures) == 1:
            return closures[0]

        def execute(names: Workspace, run: Run) -> str | None:
            for closure in closures:
                signal = closure(names, run)
                if signal is not None:
                    return signal
            return None

        return execute

    def statement(self, node: ast.stmt) -> Execute:
        match node:
            case ast.Assign():
                return self._assignment([self.assignable(part) for part in node.targets], node.value)
            case ast.AnnAssign() if node.value is not None:
                return self._assignment([self.assignable(node.target)], node.value)
            case ast.AugAssign():
                return self._augmented(node)
            case ast.Expr():
                return self._expression(node.value)
            case ast.If():
                return self._branch(node)
            case ast.For():
                return self._for(node)
            case ast.While():
                return self._while(node)
            case ast.Pass():
                return lambda names, run: None
            case ast.Break() | ast.Continue() if self.loops:
                signal = BREAK if isinstance(node, ast.Break) else CONTINUE
                return lambda names, run: signal
        raise refuse(node)

    def _expression(self, node: ast.expr) -> Execute:
        closure = self.visit(node)

        def execute(names: Workspace, run: Run) -> None:
            closure(names, run)

        return execute

    def _assignment(self, targets: list[Assign], value: ast.expr) -> Execute:
        closure = self.visit(value)

        def execute(names: Workspace, run: Run) -> None:
            made = closure(names, run)
            for assign in targets:
                assign(names, run, made)

        return execute

    def assignable(self, node: ast.expr) -> Assign:
        """How a value is put where the target says."""
        match node:
            case ast.Name():
                name = node.id
                if name.startswith("__"):
                    raise refuse(node, f"{name[:40]!r} cannot be a variable's name here")
                return lambda names, run, value: names.assign(name, value)
            case ast.Tuple() | ast.List():
                parts = [self.assignable(part) for part in node.elts]

                def unpack(names: Workspace, run: Run, value: object) -> None:
                    for part, item in zip(parts, unpacked(run, value, len(parts)), strict=True):
                        part(names, run, item)

                return unpack
            case ast.Attribute():
                if node.attr.startswith("__"):
                    raise refuse(node, f"attribute {node.attr[:40]!r} is not allowed")
                key = ast.copy_location(ast.Constant(node.attr), node)
                return self._into(node.value, key, only_dicts=True)
            case ast.Subscript() if not isinstance(node.slice, ast.Slice):
                return self._into(node.value, node.slice)
        raise refuse(node, "this cannot be assigned to")

    def _into(self, container: ast.expr, key: ast.expr, only_dicts: bool = False) -> Assign:
        inner, index, place = self.visit(container), self.visit(key), at(container)

        def assign(names: Workspace, run: Run, value: object) -> None:
            run.charge(1)
            into, position = inner(names, run), index(names, run)
            if isinstance(into, dict):
                into[plain_key(position)] = value
                check_length(len(into))
            elif isinstance(into, list) and not only_dicts and position in range(-len(into), len(into)):
                into[cast("int", position)] = value
            else:
                raise Refused(f"a {name_of(into)} has no place {str(position)[:40]!r} to assign to", place)

        return assign

    def _augmented(self, node: ast.AugAssign) -> Execute:
        operation = BINARY.get(type(node.op).__name__)
        if operation is None:
            raise refuse(node, "this operator is not allowed here")
        assign = self.assignable(node.target)
        known = operation
        current, closure = self.visit(node.target), self.visit(node.value)

        def execute(names: Workspace, run: Run) -> None:
            assign(names, run, known(run, current(names, run), closure(names, run)))

        return execute

    def _branch(self, node: ast.If) -> Execute:
        asked, then = self.visit(node.test), self.block(node.body)
        otherwise = self.block(node.orelse) if node.orelse else None

        def execute(names: Workspace, run: Run) -> str | None:
            if asked(names, run):
                return then(names, run)
            return None if otherwise is None else otherwise(names, run)

        return execute

    def _loop_body(self, node: ast.For | ast.While) -> tuple[Execute, Execute | None, int]:
        self.loops += 1
        body = self.block(node.body)
        self.loops -= 1
        weight = 1 + sum(1 for part in node.body for _ in ast.walk(part)) // 4
        return body, self.block(node.orelse) if node.orelse else None, weight

    def _for(self, node: ast.For) -> Execute:
        assign, domain = target(node.target), self.visit(node.iter)
        body, otherwise, weight = self._loop_body(node)

        def execute(names: Workspace, run: Run) -> str | None:
            over = domain(names, run)
            if not isinstance(over, list | str | dict | tuple):
                raise Refused(f"a {name_of(over)} is nothing to go over", at(node.iter))
            for item in over:
                run.charge(weight)
                assign(cast("dict[str, object]", names), run, item)
                signal = body(names, run)
                if signal == BREAK:
                    return None
            return None if otherwise is None else otherwise(names, run)

        return execute

    def _while(self, node: ast.While) -> Execute:
        asked = self.visit(node.test)
        body, otherwise, weight = self._loop_body(node)

        def execute(names: Workspace, run: Run) -> str | None:
            while asked(names, run):
                run.charge(weight)
                if body(names, run) == BREAK:
                    return None
            return None if otherwise is None else otherwise(names, run)

        return execute
