"""What JUEL's operators and methods answer (Jakarta Expression Language, chapter 1): lenient about texts and nulls.

Beans and the engine's own objects (`execution`, `task`) do not exist here and are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, cast

from gobpm_ray.expressions.budget import Refused, Run, join
from gobpm_ray.expressions.feel.operators import arithmetic, prop
from gobpm_ray.expressions.feel.values import comparable, is_number, number, same, to_text
from gobpm_ray.expressions.python.functions import FUNCTIONS
from gobpm_ray.expressions.python.methods import Method
from gobpm_ray.expressions.python.operators import name_of
from gobpm_ray.expressions.python.syntax import Dialect

PREFIX: Final = "juel "
"""Operators are called as functions whose names nobody can write."""


def _numeric(value: object) -> object:
    """Null counts as 0 and a text as the number that it spells; anything else is itself."""
    if value is None:
        return 0
    if isinstance(value, str) and len(value) <= 100:
        try:
            return int(value) if value.lstrip("-").isdigit() else number(Decimal(value))
        except (InvalidOperation, ValueError):
            return value
    return value


def _calculate(symbol: str) -> Callable[..., object]:
    def calculate(run: Run, left: object, right: object) -> object:
        one, two = _numeric(left), _numeric(right)
        if symbol == "+" and (isinstance(one, str) or isinstance(two, str)):
            return join(run, "", [text_of(run, left), text_of(run, right)])
        value = arithmetic(symbol, one, two)
        if value is None:
            raise Refused(f"{name_of(left)} {symbol} {name_of(right)} has no answer")
        return value

    return calculate


def _modulo(run: Run, left: object, right: object) -> object:
    one, two = _numeric(left), _numeric(right)
    if not is_number(one) or not is_number(two) or not two:
        raise Refused(f"{name_of(left)} % {name_of(right)} has no answer")
    return abs(one) % abs(two) * (-1 if one < 0 else 1)  # type: ignore[operator]


def _negate(run: Run, value: object) -> object:
    return _calculate("-")(run, 0, value)


def _equal(run: Run, left: object, right: object) -> bool:
    run.charge_deep(left)
    run.charge_deep(right)
    if is_number(left) or is_number(right):
        left, right = (_numeric(side) if isinstance(side, str) else side for side in (left, right))
    elif isinstance(left, bool) or isinstance(right, bool):
        left, right = (_TRUTH.get(side, side) if isinstance(side, str) else side for side in (left, right))
    return same(left, right)


def _unequal(run: Run, left: object, right: object) -> bool:
    return not _equal(run, left, right)


def _order(symbol: str) -> Callable[..., bool]:
    def compare(run: Run, left: object, right: object) -> bool:
        if left is None or right is None:
            return left is right and symbol in ("<=", ">=")
        if is_number(left) or is_number(right):
            left, right = _numeric(left), _numeric(right)
        pair = comparable(left, right)
        if pair is None:
            raise Refused(f"{name_of(left)} {symbol} {name_of(right)} has no answer")
        one, two = cast("tuple[int, int]", pair)
        return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[symbol]

    return compare


_TRUTH: Final = {"true": True, "false": False, "": False}


def _truth(run: Run, value: object) -> bool:
    if value is None or isinstance(value, bool):
        return value is True
    if isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    raise Refused(f"a {name_of(value)} is neither true nor false")


def _empty(run: Run, value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _get(run: Run, value: object, key: object) -> object:
    if value is None:
        return None
    if isinstance(value, list | tuple | str) and isinstance(key, int):
        return value[key] if 0 <= key < len(value) else None
    if isinstance(value, Mapping):
        return value.get(key) if isinstance(key, str | int) else None
    if isinstance(value, list | str):
        raise Refused(f"a {name_of(value)} has no property {str(key)[:40]!r}")
    return prop(value, str(key), run)


def text_of(run: Run, value: object) -> str:
    run.charge_deep(value)
    return to_text(value) or ""


_OPERATORS: Final[dict[str, Callable[..., object]]] = {
    "+": _calculate("+"),
    "-": _calculate("-"),
    "*": _calculate("*"),
    "/": _calculate("/"),
    "%": _modulo,
    "==": _equal,
    "!=": _unequal,
    "<": _order("<"),
    "<=": _order("<="),
    ">": _order(">"),
    ">=": _order(">="),
    "negate": _negate,
    "truth": _truth,
    "empty": _empty,
    "get": _get,
}


def _plain(method: Callable[..., object]) -> Method:
    def call(run: Run, value: object, *arguments: object) -> object:
        run.charge_deep(value)
        for argument in arguments:
            run.charge_deep(argument)
        return method(value, *arguments)

    return call


_SHARED: Final[dict[str, Method]] = {
    "equals": _plain(same),
    "isEmpty": _plain(lambda value: not value),
    "size": _plain(lambda value: len(value)),
    "contains": _plain(lambda value, item: item in value),
    "toString": _plain(to_text),
}
_METHODS: Final[dict[type, dict[str, Method]]] = {
    str: {
        **_SHARED,
        "length": _plain(len),
        "startsWith": _plain(str.startswith),
        "endsWith": _plain(str.endswith),
        "equalsIgnoreCase": _plain(lambda value, other: value.lower() == str(other).lower()),
        "toUpperCase": _plain(str.upper),
        "toLowerCase": _plain(str.lower),
        "trim": _plain(str.strip),
        "indexOf": _plain(str.find),
        "substring": _plain(lambda value, start, end=None: value[start:end]),
    },
    list: {**_SHARED, "get": _plain(lambda value, index: value[index])},
    dict: {
        **_SHARED,
        "get": _plain(lambda value, key: value.get(key)),
        "containsKey": _plain(lambda value, key: key in value),
    },
}
_ENGINE: Final = (
    *("execution", "task", "caseExecution", "caseInstance", "delegateTask", "delegateExecution"),
    *("authenticatedUserId", "connector", "spring"),
)
DIALECT: Final = Dialect(
    label="JUEL",
    functions={**{f"{PREFIX}{symbol}": body for symbol, body in _OPERATORS.items()}, "now": FUNCTIONS["now"]},
    methods=_METHODS,
    prefix=PREFIX,
    refused_names={
        name: f"{name!r} is an object of another engine and does not exist here; use variables" for name in _ENGINE
    },
)
