"""Python's expressions as closures: a table of the syntax that is allowed, and everything else refused by name.

Nothing is ever given to Python's own compiler. A name is a variable or one of the sandbox's functions, an attribute is
a dict's key or one of the sandbox's methods, so there is no way to Python's objects at all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from gobpm_ray.expressions.budget import MAX_DEPTH, Refused, Run, check_length, join
from gobpm_ray.expressions.python.loops import Round, go, target
from gobpm_ray.expressions.python.operators import (
    BINARY,
    COMPARISONS,
    UNARY,
    Items,
    attribute,
    checked,
    formatted,
    items_of,
    name_of,
    plain_key,
    subscript,
    unique,
)
from gobpm_ray.expressions.python.syntax import SPOKEN, Dialect, Evaluate, Local, Names, at, refuse


class ExpressionCompiler:
    """One compilation. `simple` stays true while nothing was met that can loop, call or build."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.simple = True
        self.depth = 0
        self.methods: set[str] = {name for table in dialect.methods.values() for name in table}

    def visit(self, node: ast.expr) -> Evaluate:
        """The closure for an expression; Refused, with its place, for what the sandbox does not allow."""
        compiler = _COMPILERS.get(type(node))
        if compiler is None:
            raise refuse(node)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise refuse(node, f"operations are nested more than {MAX_DEPTH} deep")
        evaluate = compiler(self, node)
        self.depth -= 1
        return evaluate

    def spend(self) -> None:
        """What is being compiled needs a budget."""
        self.simple = False

    # --- leaves ---

    def constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        if value is not None and not isinstance(value, str | int | float):
            raise refuse(node, f"a {name_of(value)} is not allowed here")
        checked(value)
        return lambda names, run: value

    def name(self, node: ast.Name) -> Evaluate:
        name = node.id
        place = at(node)
        if name.startswith("__"):
            raise refuse(node, f"name {name[:40]!r} is not allowed")
        if name in self.dialect.refused_names:
            raise refuse(node, self.dialect.refused_names[name])

        def load(names: Names, run: Run) -> object:
            try:
                return names[name]
            except KeyError:
                raise Refused(f"variable {name[:60]!r} is missing", place) from None

        return load

    def joined(self, node: ast.JoinedStr) -> Evaluate:
        self.spend()
        parts = [self._field(part) for part in node.values]
        return lambda names, run: join(run, "", [part(names, run) for part in parts])

    def _field(self, node: ast.expr) -> Callable[[Names, Run], str]:
        if isinstance(node, ast.Constant):
            fixed = str(node.value)
            return lambda names, run: fixed
        if not isinstance(node, ast.FormattedValue):
            raise refuse(node)
        inner, conversion, spec = self.visit(node.value), node.conversion, ""
        if isinstance(node.format_spec, ast.JoinedStr):
            for part in node.format_spec.values:
                if not isinstance(part, ast.Constant):
                    raise refuse(part, "a computed format is not allowed here")
                spec += str(part.value)
        return lambda names, run: formatted(run, inner(names, run), conversion, spec)

    # --- operators ---

    def binary(self, node: ast.BinOp) -> Evaluate:
        operation = BINARY.get(type(node.op).__name__)
        if operation is None:
            raise Refused(f"{SPOKEN.get(type(node.op).__name__, '?')} is not allowed here", at(node))
        if isinstance(node.op, ast.Add | ast.Mult):
            self.spend()
        left, right = self.visit(node.left), self.visit(node.right)
        return lambda names, run: operation(run, left(names, run), right(names, run))

    def unary(self, node: ast.UnaryOp) -> Evaluate:
        inner = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda names, run: not inner(names, run)
        operation = UNARY.get(type(node.op).__name__)
        if operation is None:
            raise Refused("~ is not allowed here", at(node))
        return lambda names, run: operation(run, inner(names, run))

    def boolean(self, node: ast.BoolOp) -> Evaluate:
        parts = [self.visit(part) for part in node.values]
        stops_at_true = isinstance(node.op, ast.Or)

        def evaluate(names: Names, run: Run) -> object:
            value: object = None
            for part in parts:
                value = part(names, run)
                if bool(value) is stops_at_true:
                    return value
            return value

        return evaluate

    def compare(self, node: ast.Compare) -> Evaluate:
        first = self.visit(node.left)
        pairs = zip(node.ops, node.comparators, strict=True)
        rest = [(self._comparison(op, right), self.visit(right)) for op, right in pairs]
        if len(rest) == 1:
            operation, right = rest[0]
            return lambda names, run: operation(run, first(names, run), right(names, run))

        def chained(names: Names, run: Run) -> object:
            left = first(names, run)
            for operation, closure in rest:
                value = closure(names, run)
                if not operation(run, left, value):
                    return False
                left = value
            return True

        return chained

    def _comparison(self, op: ast.cmpop, right: ast.expr) -> Callable[[Run, object, object], object]:
        if isinstance(op, ast.Is | ast.IsNot):
            if not isinstance(right, ast.Constant) or not isinstance(right.value, bool | None):
                raise refuse(right, "`is` compares with None, True or False only")
            wanted = isinstance(op, ast.Is)
            return lambda run, one, two: (one is two) is wanted
        return COMPARISONS[type(op).__name__]

    def choice(self, node: ast.IfExp) -> Evaluate:
        asked, yes, no = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        return lambda names, run: yes(names, run) if asked(names, run) else no(names, run)

    # --- containers ---

    def sequence(self, node: ast.List | ast.Tuple | ast.Set) -> Evaluate:
        self.spend()
        parts = [
            (self.visit(part.value), True) if isinstance(part, ast.Starred) else (self.visit(part), False)
            for part in node.elts
        ]
        distinct = isinstance(node, ast.Set)

        def evaluate(names: Names, run: Run) -> object:
            made: Items = []
            for closure, starred in parts:
                value = closure(names, run)
                if starred:
                    made.extend(items_of(run, value))
                    check_length(len(made))
                else:
                    made.append(value)
            return unique(run, made) if distinct else made

        return evaluate

    def mapping(self, node: ast.Dict) -> Evaluate:
        self.spend()
        parts = [
            (None if key is None else self.visit(key), self.visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]

        def evaluate(names: Names, run: Run) -> object:
            made: dict[object, object] = {}
            for key, closure in parts:
                value = closure(names, run) if key is None else None
                if key is not None:
                    made[plain_key(key(names, run))] = closure(names, run)
                elif isinstance(value, dict):
                    run.charge_size(value)
                    made.update(value)
                else:
                    raise Refused(f"** takes a dict, not a {name_of(value)}")
            return made

        return evaluate

    def attribute(self, node: ast.Attribute) -> Evaluate:
        inner, name, place = self.visit(node.value), node.attr, at(node)
        if name.startswith("__"):
            raise refuse(node, f"attribute {name[:40]!r} is not allowed")

        def evaluate(names: Names, run: Run) -> object:
            value = inner(names, run)
            if type(value) is dict and name in value:
                return value[name]
            try:
                return attribute(value, name)
            except Refused as error:
                raise Refused(error.reason, place) from None

        return evaluate

    def subscript(self, node: ast.Subscript) -> Evaluate:
        inner = self.visit(node.value)
        key = self._slice(node.slice) if isinstance(node.slice, ast.Slice) else self.visit(node.slice)
        return lambda names, run: subscript(run, inner(names, run), key(names, run))

    def _slice(self, node: ast.Slice) -> Evaluate:
        self.spend()
        low, high, step = (None if part is None else self.visit(part) for part in (node.lower, node.upper, node.step))

        def evaluate(names: Names, run: Run) -> object:
            bounds = [None if part is None else part(names, run) for part in (low, high, step)]
            if not all(isinstance(bound, int | None) for bound in bounds):
                raise Refused("a slice's bounds must be whole numbers")
            return slice(*bounds)

        return evaluate

    # --- comprehensions ---

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Evaluate:
        self.spend()
        weight = 1 + sum(1 for _ in ast.walk(node)) // 4
        rounds = [self._round(generator) for generator in node.generators]
        if isinstance(node, ast.DictComp):
            key, value = self.visit(node.key), self.visit(node.value)

            def collect(names: Names, run: Run) -> object:
                made: dict[object, object] = {}

                def keep(inner: Names) -> None:
                    made[plain_key(key(inner, run))] = value(inner, run)

                go(rounds, Local(names), run, weight, keep)
                return made

            return collect
        element, distinct = self.visit(node.elt), isinstance(node, ast.SetComp)

        def gather(names: Names, run: Run) -> object:
            made: Items = []
            go(rounds, Local(names), run, weight, lambda inner: made.append(element(inner, run)))
            return unique(run, made) if distinct else made

        return gather

    def _round(self, node: ast.comprehension) -> Round:
        if node.is_async:
            raise refuse(node.iter, "async is not allowed here")
        return Round(target(node.target), self.visit(node.iter), [self.visit(test) for test in node.ifs])

    # --- calls ---

    def call(self, node: ast.Call) -> Evaluate:
        self.spend()
        if any(isinstance(part, ast.Starred) for part in node.args) or any(word.arg is None for word in node.keywords):
            raise refuse(node, "* and ** are not allowed in calls here")
        arguments = [self.visit(part) for part in node.args]
        words = [(word.arg or "", self.visit(word.value)) for word in node.keywords]
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, arguments, words)
        if not isinstance(node.func, ast.Name):
            raise refuse(node.func, "only functions and methods known by name can be called")
        function = self.dialect.functions.get(node.func.id)
        if function is None:
            raise refuse(node.func, f"unknown function {node.func.id[:60]!r}")
        known, place, name = function, at(node.func), node.func.id.removeprefix(self.dialect.prefix)

        def evaluate(names: Names, run: Run) -> object:
            run.charge(1)
            values = [argument(names, run) for argument in arguments]
            return _applied(name, place, known, [run, *values], {word: value(names, run) for word, value in words})

        return evaluate

    def _method(self, node: ast.Attribute, arguments: list[Evaluate], words: list[tuple[str, Evaluate]]) -> Evaluate:
        name, place = node.attr, at(node)
        inner, tables = self.visit(node.value), self.dialect.methods
        if name not in self.methods:
            raise refuse(node, f"method {name[:40]!r} is not allowed here")

        def evaluate(names: Names, run: Run) -> object:
            run.charge(1)
            value = inner(names, run)
            method = tables.get(type(value), {}).get(name)
            if method is None:
                raise Refused(f"a {name_of(value)} has no method {name!r} here", place)
            values = [argument(names, run) for argument in arguments]
            return _applied(name, place, method, [run, value, *values], {word: v(names, run) for word, v in words})

        return evaluate


def _applied(name: str, place: int, function: Callable[..., object], values: Items, words: dict[str, object]) -> object:
    try:
        return function(*values, **words)
    except Refused as error:
        raise Refused(f"{name}: {error.reason}", place) if error.position is None else error from None
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        text = str(error)
        # Python speaks of our own functions' names and first parameters; people know theirs only.
        misfit = "argument" in text or isinstance(error, AttributeError)
        raise Refused(f"{name}: {'it does not take these arguments' if misfit else text[:100]}", place) from None


_COMPILERS: Final[dict[type[ast.expr], Callable[..., Evaluate]]] = {
    ast.Attribute: ExpressionCompiler.attribute,
    ast.BinOp: ExpressionCompiler.binary,
    ast.BoolOp: ExpressionCompiler.boolean,
    ast.Call: ExpressionCompiler.call,
    ast.Compare: ExpressionCompiler.compare,
    ast.Constant: ExpressionCompiler.constant,
    ast.Dict: ExpressionCompiler.mapping,
    ast.DictComp: ExpressionCompiler.comprehension,
    ast.GeneratorExp: ExpressionCompiler.comprehension,
    ast.IfExp: ExpressionCompiler.choice,
    ast.JoinedStr: ExpressionCompiler.joined,
    ast.List: ExpressionCompiler.sequence,
    ast.ListComp: ExpressionCompiler.comprehension,
    ast.Name: ExpressionCompiler.name,
    ast.Set: ExpressionCompiler.sequence,
    ast.SetComp: ExpressionCompiler.comprehension,
    ast.Subscript: ExpressionCompiler.subscript,
    ast.Tuple: ExpressionCompiler.sequence,
    ast.UnaryOp: ExpressionCompiler.unary,
}
