"""FEEL's functions on lists, contexts and ranges, and those on values of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cmp_to_key
from typing import cast

from gobpm_ray.expressions.budget import Refused, Run, check_length
from gobpm_ray.expressions.feel.builtins import builtin, spread
from gobpm_ray.expressions.feel.values import FeelFunction, Interval, as_list, comparable, contains, same

Items = list[object]


@builtin("list contains(list: l, element: x)", deep=True)
def list_contains(run: Run, items: Items, element: object) -> object:
    return any(same(item, element) for item in items)


@builtin("count(list: l)")
def count(run: Run, items: Items) -> object:
    return len(items)


@builtin("is empty(list: l)")
def is_empty(run: Run, items: Items) -> object:
    return not items


@builtin("append(list: l, items: x*)")
def append(run: Run, items: Items, *more: object) -> object:
    check_length(len(items) + len(more))
    return [*items, *more]


@builtin("concatenate(lists: x*)")
def concatenate(run: Run, *lists: object) -> object:
    made: Items = []
    for value in lists:
        items = as_list(value)
        if items is None:
            return None
        check_length(len(made) + len(items))
        made += items
    return made


def _position(items: Items, position: int, extra: int = 0) -> int | None:
    """The index of FEEL's 1-based or negative position; None if it is none."""
    if not position or abs(position) > len(items) + extra:
        return None
    return position - 1 if position > 0 else len(items) + position


@builtin("insert before(list: l, position: i, newItem: x)")
def insert_before(run: Run, items: Items, position: int, element: object) -> object:
    index = _position(items, position)
    return None if index is None else [*items[:index], element, *items[index:]]


@builtin("remove(list: l, position: i)")
def remove(run: Run, items: Items, position: int) -> object:
    index = _position(items, position)
    return None if index is None else [*items[:index], *items[index + 1 :]]


@builtin("list replace(list: l, position: i, newItem: x)")
def list_replace(run: Run, items: Items, position: int, element: object) -> object:
    index = _position(items, position)
    return None if index is None else [*items[:index], element, *items[index + 1 :]]


@builtin("sublist(list: l, start position: i, length: i?)")
def sublist(run: Run, items: Items, start: int, length: int | None = None) -> object:
    index = _position(items, start)
    if index is None or (length is not None and length < 0):
        return None
    return items[index:] if length is None else items[index : index + length]


@builtin("reverse(list: l)")
def reverse(run: Run, items: Items) -> object:
    return items[::-1]


@builtin("index of(list: l, match: x)", deep=True)
def index_of(run: Run, items: Items, match: object) -> object:
    return [position for position, item in enumerate(items, 1) if same(item, match)]


def _distinct(run: Run, items: Iterable[object]) -> Items:
    # Equal things of different Python types (1 and 1.0) are one in FEEL, and lists do not hash: compare, and pay.
    plain: set[str] = set()
    others: Items = []
    made: Items = []
    for item in items:
        if isinstance(item, str):
            if item in plain:
                continue
            plain.add(item)
        else:
            run.charge(1 + (len(others) >> 2))
            if any(same(item, other) for other in others):
                continue
            others.append(item)
        made.append(item)
    return made


@builtin("distinct values(list: l)", deep=True)
def distinct_values(run: Run, items: Items) -> object:
    return _distinct(run, items)


@builtin("duplicate values(list: l)", deep=True)
def duplicate_values(run: Run, items: Items) -> object:
    run.charge(len(items) * len(items) >> 2)
    return [item for item in _distinct(run, items) if sum(same(item, other) for other in items) > 1]


@builtin("union(lists: x*)", deep=True)
def union(run: Run, *lists: object) -> object:
    joined = concatenate(run, *lists)
    return None if joined is None else _distinct(run, cast("Items", joined))


def _flat(run: Run, items: Items) -> Iterator[object]:
    for item in items:
        run.charge(1)
        if isinstance(item, list):
            yield from _flat(run, item)
        else:
            yield item


@builtin("flatten(list: l)", deep=True)
def flatten(run: Run, items: Items) -> object:
    return list(_flat(run, items))


@builtin("sort(list: l, precedes: f?)", deep=True)
def sort(run: Run, items: Items, precedes: FeelFunction | None = None) -> object:
    """By the natural order, or by a function that says whether its first argument comes first."""

    def order(left: object, right: object) -> int:
        run.charge(1)
        if precedes is not None:
            if precedes.call(run, left, right) is True:
                return -1
            return 1 if precedes.call(run, right, left) is True else 0
        pair = comparable(left, right)
        if pair is None:
            raise TypeError("no order")
        one, two = pair
        return -1 if one < two else int(one > two)  # type: ignore[operator]

    return sorted(items, key=cmp_to_key(order))


def _junction(values: tuple[object, ...], deciding: bool) -> object:
    items = spread(values)
    if items is None:
        return None
    if any(item is deciding for item in items):
        return deciding
    return not deciding if all(item is (not deciding) for item in items) else None


@builtin("all(list: x*)")
def conjunction(run: Run, *values: object) -> object:
    return _junction(values, deciding=False)


@builtin("any(list: x*)")
def disjunction(run: Run, *values: object) -> object:
    return _junction(values, deciding=True)


@builtin("partition(list: l, size: i)")
def partition(run: Run, items: Items, size: int) -> object:
    if size < 1:
        return None
    run.charge(len(items) // size)
    return [items[start : start + size] for start in range(0, len(items), size)]


# --- contexts ----------------------------------------------------------------------------------------------------

Context = dict[str, object]


@builtin("get value(context: c, key: x)")
def get_value(run: Run, context: Context, key: object) -> object:
    value: object = context
    for step in key if isinstance(key, list) else [key]:
        if not isinstance(value, Mapping) or not isinstance(step, str):
            return None
        value = value.get(step)
    return value


@builtin("get entries(context: c)")
def get_entries(run: Run, context: Context) -> object:
    run.charge(len(context))
    return [{"key": key, "value": value} for key, value in context.items()]


@builtin("context put(context: c, key: x, value: x)")
def context_put(run: Run, context: Context, key: object, value: object) -> object:
    if isinstance(key, str):
        return {**context, key: value}
    if not isinstance(key, list) or not key or not isinstance(key[0], str):
        return None
    if len(key) == 1:
        return {**context, key[0]: value}
    run.charge(1)
    below = context.get(key[0])
    inner = context_put(run, below if isinstance(below, dict) else {}, key[1:], value)
    return None if inner is None else {**context, key[0]: inner}


@builtin("context merge(contexts: x*)")
def context_merge(run: Run, *values: object) -> object:
    merged: Context = {}
    for context in spread(values) or []:
        if not isinstance(context, dict):
            return None
        run.charge_size(context)
        merged.update(context)
    return merged


@builtin("context(entries: l)")
def context_of(run: Run, entries: Items) -> object:
    made: Context = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str) or "value" not in entry:
            return None
        made[entry["key"]] = entry["value"]
    return made


# --- anything ----------------------------------------------------------------------------------------------------


@builtin("get or else(value: x, default: x)")
def get_or_else(run: Run, value: object, default: object) -> object:
    return default if value is None else value


@builtin("assert(value: x, condition: b, cause: s?)")
def assertion(run: Run, value: object, condition: bool, cause: str | None = None) -> object:
    if not condition:
        raise Refused(f"assertion failed{': ' + cause[:80] if cause else ''}")
    return value


@builtin("includes(range: x, value: x)")
def includes(run: Run, interval: object, value: object) -> object:
    return contains(interval, value) if isinstance(interval, Interval) else None
