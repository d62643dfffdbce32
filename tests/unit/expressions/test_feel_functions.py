"""FEEL's built-in functions (issue 4 item 4)."""

import timeit
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest

from gobpm_ray.calendar.durations import YearsMonths
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import compile_expression
from gobpm_ray.expressions.feel.builtins import BUILTINS

NOW = 1_700_000_000_000
VARIABLES = {"xs": [3, 1, 2], "text": "foobar", "context": {"a": 1, "b": {"c": 2}}, "void": None}

CASES = [
    # strings
    ("substring(text, 3)", "obar"),
    ("substring(text, 3, 2)", "ob"),
    ("substring(text, -3, 2)", "ba"),
    ("substring(string: text, start position: 3)", "obar"),
    ("substring(text, 10)", ""),
    ('string length("tés")', 3),
    ("upper case(text)", "FOOBAR"),
    ('lower case("ABC")', "abc"),
    ('trim("  a ")', "a"),
    ('substring before(text, "bar")', "foo"),
    ('substring before(text, "x")', ""),
    ('substring after(text, "foo")', "bar"),
    ('substring after(text, "x")', ""),
    ('contains(text, "oba")', True),
    ('starts with(text, "foo")', True),
    ('ends with(text, "foo")', False),
    ('matches(text, "^fo*b")', True),
    ('matches("A\\nb", "a.B", "is")', True),
    ('matches("été", "^.t.$")', True),
    ('replace(text, "[oa]", "0")', "f00b0r"),
    ('replace("été 12", "(\\d)(\\d)", "$2$1")', "été 21"),
    ('replace("abc", "b", "[$0]")', "a[b]c"),
    ('replace("abc", "b", "\\\\$1")', "a$1c"),
    ('split("John Doe", "\\s")', ["John", "Doe"]),
    ('split("a;b;;c", ";")', ["a", "b", "", "c"]),
    ('extract("a1b22", "[0-9]+")', ["1", "22"]),
    ('string join(["a", null, "b"], "-")', "a-b"),
    ('string join(["a", "b"])', "ab"),
    ('string join([1], ",")', None),
    ("string(1.0)", "1"),
    ("string(1.25)", "1.25"),
    ("string(true)", "true"),
    ("string(null)", None),
    ('string([1, "a", null])', '[1, "a", null]'),
    ("string({a: 1})", "{a:1}"),
    ('string(@"P1DT2H3.5S")', "P1DT2H3.5S"),
    ('string(@"PT1H0.5S")', "PT1H0.5S"),
    ('string(date and time("2024-01-01T10:00:00@Europe/Berlin"))', "2024-01-01T10:00:00@Europe/Berlin"),
    ('string(time("10:00:00+02:00"))', "10:00:00+02:00"),
    ('string(@"P14M")', "P1Y2M"),
    ("upper case(1)", None),
    ("upper case(null)", None),
    # numbers
    ('number("1500.5")', 1500.5),
    ('number("1 500,5", " ", ",")', 1500.5),
    ('number("abc")', None),
    ('number("1_0")', None),
    ("decimal(1/3, 2)", 0.33),
    ("decimal(1.5, 0)", 2),
    ("decimal(2.5, 0)", 2),
    ("floor(-1.5)", -2),
    ("floor(1.56, 1)", 1.5),
    ("ceiling(1.5)", 2),
    ("round up(5.5, 0)", 6),
    ("round down(-5.5, 0)", -5),
    ("round half up(2.5, 0)", 3),
    ("round half up(1.005, 2)", 1.01),
    ("round half up(1250, -2)", 1300),
    ("round half down(2.5, 0)", 2),
    ("abs(-10)", 10),
    ('abs(@"-PT5H")', timedelta(hours=5)),
    ("modulo(12, 5)", 2),
    ("modulo(-12, 5)", 3),
    ("modulo(12, -5)", -3),
    ("modulo(10.5, 3)", 1.5),
    ("modulo(1, 0)", None),
    ("sqrt(16)", 4),
    ("sqrt(-1)", None),
    ("exp(0)", 1),
    ("log(1)", 0),
    ("odd(5)", True),
    ("odd(-5)", True),
    ("even(5)", False),
    ("min(xs)", 1),
    ("min(1, 2)", 1),
    ('max(["a", "c", "b"])', "c"),
    ('max([1, "a"])', None),
    ("max([])", None),
    ("sum(xs)", 6),
    ("sum(0.1, 0.2)", 0.3),
    ("sum([])", None),
    ('sum([1, "a"])', None),
    ('sum([@"PT1H", @"PT2H"])', timedelta(hours=3)),
    ("mean(xs)", 2),
    ("median([8, 2, 5, 3, 4])", 4),
    ("median([6, 1, 2, 3])", 2.5),
    ("stddev([2, 4, 7, 5])", 2.0816659994661326),
    ("mode([6, 3, 9, 6, 6])", [6]),
    ("product([2, 3, 4])", 24),
    ("count(xs)", 3),
    ("count([])", 0),
    ("count(void)", None),
    # lists
    ("list contains(xs, 2)", True),
    ("list contains([1, null], null)", True),
    ("append(xs, 4, 5)", [3, 1, 2, 4, 5]),
    ("concatenate([1], [2, 3], [4])", [1, 2, 3, 4]),
    ("insert before(xs, 1, 0)", [0, 3, 1, 2]),
    ("insert before(xs, 9, 0)", None),
    ("remove(xs, 2)", [3, 2]),
    ("remove(xs, -1)", [3, 1]),
    ("list replace(xs, 2, 9)", [3, 9, 2]),
    ("reverse(xs)", [2, 1, 3]),
    ("index of([1, 2, 3, 2], 2)", [2, 4]),
    ("union([1, 2], [2, 3])", [1, 2, 3]),
    ('distinct values([1, 2, 1.0, "a", "a", [1], [1]])', [1, 2, "a", [1]]),
    ("duplicate values([1, 2, 1])", [1]),
    ("flatten([[1, [2]], [[[3]]], 4])", [1, 2, 3, 4]),
    ("sort(xs)", [1, 2, 3]),
    ("sort(list: xs, precedes: function(x, y) x > y)", [3, 2, 1]),
    ('sort([1, "a"])', None),
    ("sublist(xs, 2)", [1, 2]),
    ("sublist(xs, 1, 2)", [3, 1]),
    ("sublist(xs, -1)", [2]),
    ("partition([1, 2, 3, 4, 5], 2)", [[1, 2], [3, 4], [5]]),
    ("is empty([])", True),
    ("is empty(xs)", False),
    ("all([true, true])", True),
    ("all([true, null])", None),
    ("all([false, null])", False),
    ("any([false, true])", True),
    ("any([])", False),
    ('concat("a", "b")', "ab"),
    # contexts
    ('get value(context, "a")', 1),
    ('get value(context, ["b", "c"])', 2),
    ('get value(context, "x")', None),
    ("get entries({a: 1})", [{"key": "a", "value": 1}]),
    ('context put(context, "a", 9)', {"a": 9, "b": {"c": 2}}),
    ('context put(context, ["b", "d"], 3)', {"a": 1, "b": {"c": 2, "d": 3}}),
    ("context merge([{a: 1}, {b: 2}])", {"a": 1, "b": 2}),
    ('context([{key: "a", value: 1}])', {"a": 1}),
    # any
    ("is defined(missing)", False),
    ("is defined(void)", True),
    ("is defined(context.a)", True),
    ("is defined(context.x)", False),
    ("is defined(1)", True),
    ("get or else(missing, 3)", 3),
    ("get or else(1, 3)", 1),
    ("assert(xs, true)", [3, 1, 2]),
    ("includes([1..5], 3)", True),
    # temporal
    ('date("2024-02-29")', date(2024, 2, 29)),
    ("date(2024, 2, 29)", date(2024, 2, 29)),
    ("date(2023, 2, 29)", None),
    ('date("2023-02-29")', None),
    ('date(date and time("2024-02-29T10:00:00Z"))', date(2024, 2, 29)),
    ('time("10:30:00")', time(10, 30)),
    ("time(10, 30, 15)", time(10, 30, 15)),
    ('time(10, 30, 0, @"PT2H")', time(10, 30, tzinfo=timezone(timedelta(hours=2)))),
    ('date and time("2024-02-29T10:30:00")', datetime(2024, 2, 29, 10, 30, tzinfo=UTC)),
    ('date and time(date("2024-02-29"), time("10:30:00"))', datetime(2024, 2, 29, 10, 30, tzinfo=UTC)),
    ('date and time(now(), "Europe/Berlin").hour', 23),
    ('date and time("soon")', None),
    ('duration("P1Y2M")', YearsMonths(14)),
    ('duration("-PT30M")', timedelta(minutes=-30)),
    ('duration("P1M1D")', None),
    ('duration("soon")', None),
    ('years and months duration(date("2011-12-22"), date("2013-08-24"))', YearsMonths(20)),
    ('years and months duration(date("2013-08-24"), date("2011-12-22"))', YearsMonths(-20)),
    ('day of week(date("2024-02-29"))', "Thursday"),
    ('day of year(date("2024-02-29"))', 60),
    ('week of year(date("2024-02-29"))', 9),
    ('month of year(date("2024-02-29"))', "February"),
    ('last day of month(date("2024-02-01"))', 29),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_built_in_functions(text, expected):
    answer = compile_expression(text, "feel").evaluate(VARIABLES, NOW)
    assert answer == expected
    assert type(answer) is type(expected)


def test_every_built_in_function_is_tested():
    untested = {name for name in BUILTINS if not any(f"{name}(" in text for text, _ in CASES)}
    assert untested <= {"now", "today"}


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "(a{1,10}){1,10}$"])
def test_a_pattern_that_explodes_elsewhere_answers_at_once(pattern):
    text = "a" * 20_000 + "c"
    started = timeit.default_timer()
    assert compile_expression(f'matches(t, "{pattern}")', "feel").evaluate({"t": text}, 0) is False
    assert timeit.default_timer() - started < 1


def test_a_pattern_of_absurd_length_is_refused():
    with pytest.raises(ExpressionError, match="characters"):
        compile_expression("matches(t, t)", "feel").evaluate({"t": "a" * 2_000}, 0)
