"""FEEL's syntax and semantics (issue 2 item 4, issue 4 item 4)."""

import timeit
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.calendar.durations import YearsMonths
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import compile_expression
from gobpm_ray.expressions.budget import FREE, MAX_STEPS

NOW = 1_700_000_000_000  # 2023-11-14T22:13:20Z
VARIABLES = {
    "amount": 150,
    "price": 0.1,
    "rate": Decimal("0.2"),
    "approved": True,
    "rejected": False,
    "nothing": None,
    "name": "Ada",
    "Vacation Approval": "Approved",
    "ready and waiting": 7,
    "numbers": [1, 2, 3, 4],
    "riskLevels": ["red", "yellow"],
    "order": {"id": "A-1", "customer": {"name": "Bo"}, "lines": [{"sku": "x", "n": 2}, {"sku": "y", "n": 5}]},
    "day": date(2024, 2, 29),
    "moment": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "naive": datetime(2024, 2, 29, 12),
    "item count": 3,
}


def feel(text, variables=VARIABLES):
    return compile_expression(text, "feel").evaluate(variables, NOW)


def check(cases):
    return pytest.mark.parametrize(("text", "expected"), cases)


@check(
    [
        ("1", 1),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("-3", -3),
        ('"a\\n\\t\\"\\\\\\u00e9"', 'a\n\t"\\é'),
        ('"\\d+"', "\\d+"),
        ("true", True),
        ("null", None),
        ("[]", []),
        ('[1, "a", [true]]', [1, "a", [True]]),
        ("{}", {}),
        ('{a: 1, "b c": 2, d e: a + 1}', {"a": 1, "b c": 2, "d e": 2}),
        ("// a comment\n1 /* another */ + 1", 2),
        ('@"2024-02-29"', date(2024, 2, 29)),
        ('@"PT1H30M"', timedelta(hours=1, minutes=30)),
        ('@"-P1Y2M"', YearsMonths(-14)),
        ('@"10:30:00"', time(10, 30)),
        ('@"2024-02-29T10:00:00Z"', datetime(2024, 2, 29, 10, tzinfo=UTC)),
    ],
)
def test_literals(text, expected):
    assert feel(text) == expected
    assert type(feel(text)) is type(expected)


@check(
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("2 ** 3 ** 2", 64),
        ("-2 ** 2", 4),
        ("2 ** -1", 0.5),
        ("10 / 4", 2.5),
        ("10 / 5", 2),
        ("1 / 0", None),
        ("0.1 + 0.2", 0.3),
        ("price + 0.2 = 0.3", True),
        ("1.1 * 1.1", 1.21),
        ("rate + 0.1", Decimal("0.3")),
        ("rate > price", True),
        ("9007199254740993 + 1", 9007199254740994),
        ('"a" + "b" + "c"', "abc"),
        ('"a" + 1', None),
        ("1 + null", None),
        ("true + 1", None),
        ("-name", None),
        ("- -amount", 150),
    ],
)
def test_arithmetic_is_decimal_and_null_where_it_has_no_answer(text, expected):
    assert feel(text) == expected
    assert type(feel(text)) is type(expected)


@check(
    [
        ("amount > 100", True),
        ("amount >= 150 and amount <= 150", True),
        ("amount != 150", False),
        ('name = "Ada"', True),
        ("approved = true", True),
        ("approved = 1", None),
        ("amount = true", None),
        ('amount = "150"', None),
        ('amount > "1"', None),
        ("true > false", None),
        ("nothing = null", True),
        ("amount = null", False),
        ("amount != null", True),
        ("missing = null", True),
        ("missing > 1", None),
        ("1 = 1.0", True),
        ("[1, 2] = [1.0, 2]", True),
        ("[1] = [true]", False),
        ("{a: 1} = {a: 1}", True),
        ("{a: 1} = {a: 2}", False),
        ("amount between 100 and 200", True),
        ("amount between 1 and 2 or approved", True),
        ('date("2024-03-01") > day', True),
        ("naive = moment", True),
        ("day = moment", None),
    ],
)
def test_comparisons_are_null_between_different_kinds(text, expected):
    assert feel(text) is expected


@check(
    [
        (f"{left} {operator} {right}", answer)
        for operator, table in {
            "and": {("true", "true"): True, ("true", "false"): False, ("true", "null"): None, ("null", "false"): False},
            "or": {("false", "false"): False, ("true", "false"): True, ("true", "null"): True, ("null", "false"): None},
        }.items()
        for (one, two), answer in table.items()
        for left, right in ((one, two), (two, one))
    ]
    + [
        ("null and null", None),
        ("not(null)", None),
        ("not(true)", False),
        ("not(1)", None),
        ("true and true and null and false", False),
        ("false or null or true", True),
        ("1 and true", None),
    ],
)
def test_logic_has_three_values(text, expected):
    assert feel(text) is expected


@check(
    [
        ("amount in [100..200]", True),
        ("amount in (150..200]", False),
        ("amount in [100..150)", False),
        ("amount in (100..200)", True),
        ("amount in (<5, >100)", True),
        ("amount in < 5", False),
        ("amount in (5)", False),
        ("amount in (150, 160)", True),
        ("amount in [1, 150]", True),
        ("amount in ([1..5], 150)", True),
        ('"b" in ["a".."c"]', True),
        ("missing in [1..2]", None),
        ('day in [date("2024-01-01")..date("2024-12-31")]', True),
        ("[1] in [[1], [2]]", True),
        ('name in ("Bo", "Ada")', True),
    ],
)
def test_in_takes_ranges_lists_and_tests(text, expected):
    assert feel(text) is expected


@check(
    [
        ("order.customer.name", "Bo"),
        ("order.missing.name", None),
        ("missing.a.b", None),
        ("amount.a", None),
        ("order.lines.sku", ["x", "y"]),
        ('Vacation Approval = "Approved"', True),
        ("Vacation   Approval", "Approved"),
        ("`ready and waiting` + 1", 8),
        ("item count + 1", 4),
        ("{in: 1, if: 2}", {"in": 1, "if": 2}),
        ("numbers[1]", 1),
        ("numbers[-1]", 4),
        ("numbers[0]", None),
        ("numbers[9]", None),
        ("numbers[item > 2]", [3, 4]),
        ("numbers[item > 2][1]", 3),
        ("numbers[amount - 149]", 1),
        ("numbers[even(item)]", [2, 4]),
        ("order.lines[n > 2].sku", ["y"]),
        ('order.lines[sku = "x"][1].n', 2),
        ("order.lines[item.n > 2 and amount > 1].n", [5]),
        ("order[1].id", "A-1"),
        ("missing[1]", None),
        ("numbers[null]", []),
    ],
)
def test_paths_and_filters(text, expected):
    assert feel(text) == expected


@check(
    [
        ('if amount > 100 then "high" else "low"', "high"),
        ('if missing then "high" else "low"', "low"),
        ("for x in numbers return x * 2", [2, 4, 6, 8]),
        ("for x in 1..3, y in x..3 return x * 10 + y", [11, 12, 13, 22, 23, 33]),
        ("for i in 3..1 return i", [3, 2, 1]),
        ("for i in [1..3] return i", [1, 2, 3]),
        ("for x in missing return x", None),
        ("for x in 5 return x", [5]),
        ("for line in order.lines return line.n", [2, 5]),
        ('some risk in riskLevels satisfies risk = "red"', True),
        ('every risk in riskLevels satisfies risk = "yellow"', False),
        ("some x in [] satisfies x > 1", False),
        ("every x in [] satisfies x > 1", True),
        ("some x in [1, null] satisfies x > 1", None),
        ("every x in [5, null] satisfies x > 1", None),
        ("some x in numbers, y in numbers satisfies x + y = 8", True),
        ("sort(numbers, function(a, b) a > b)", [4, 3, 2, 1]),
        ("{double: function(x) x * 2, out: 4}.out", 4),
        ("amount instance of number", True),
        ("approved instance of number", False),
        ("nothing instance of Any", False),
        ("moment instance of date and time", True),
        ("day instance of date", True),
        ('@"P1D" instance of days and time duration', True),
        ("numbers instance of list and true", True),
    ],
)
def test_control_and_iteration(text, expected):
    assert feel(text) == expected


@check(
    [
        ('day + @"P1D"', date(2024, 3, 1)),
        ('@"P1M" + date("2024-01-31")', date(2024, 2, 29)),
        ('day - @"P1Y"', date(2023, 2, 28)),
        ('day - date("2024-02-01")', timedelta(days=28)),
        ('moment + @"PT36H"', datetime(2024, 3, 2, tzinfo=UTC)),
        ('moment - date and time("2024-02-29T10:00:00Z")', timedelta(hours=2)),
        ('time("23:30:00") + @"PT1H"', time(0, 30)),
        ('time("10:00:00") - time("08:30:00")', timedelta(hours=1, minutes=30)),
        ('@"PT1H" * 2', timedelta(hours=2)),
        ('@"PT1H" / 2', timedelta(minutes=30)),
        ('@"PT3H" / @"PT2H"', 1.5),
        ('@"P1Y" + @"P2M"', YearsMonths(14)),
        ('-@"PT1H"', timedelta(hours=-1)),
        ("now()", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("today()", date(2023, 11, 14)),
        ('now() + @"PT1H" > now()', True),
        ("moment.year", 2024),
        ("day.weekday", 4),
        ('@"P1DT2H".hours', 2),
        ('@"-PT90M".minutes', -30),
        ('@"P1Y2M".months', 2),
        ('date and time("2024-07-01T10:00:00@Europe/Berlin").time offset', timedelta(hours=2)),
        ('date and time("2024-03-30T10:00:00@Europe/Berlin") + @"P1D" = @"2024-03-31T09:00:00Z"', True),
        ('date("9999-12-31") + @"P1D"', None),
        ("day + 1", None),
    ],
)
def test_dates_and_durations_compute(text, expected):
    assert feel(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("amount >", "column 9: it ends too early"),
        ("amount == 3", "FEEL writes ="),
        ("a && b", "FEEL writes and"),
        ("!a", "FEEL writes not"),
        ("'a'", "double quotes"),
        ("not approved", 'write "not'),
        ("1 2", "column 3: unexpected '2'"),
        ("a if b", "unexpected 'if'"),
        ("foo bar(1)", "unknown function 'foo bar'"),
        ("{y: f(1), f: function(x) x}", "unknown function 'f'"),
        ("[{f: function(x) x}, f(1)]", "column 22: unknown function 'f'"),
        ("{sum: function(x) x}", "column 2: 'sum' is a function of FEEL itself"),
        ("{f: 3, y: f(1)}", "column 11: 'f' is no function"),
        ("{f: function(x) x, y: f(1, 2)}", "function 'f' takes 1 arguments and is given 2"),
        ("{f: function(x) x, y: f(z: 2)}", "function 'f' has no parameter 'z'"),
        ("{f: function(n) if n = 0 then 0 else f(n - 1) + f(n - 1), y: f(40)}.y", "takes more than 100,000 steps"),
        ("count(1, 2)", "does not take these arguments"),
        ("substring(text: 1)", "does not take these arguments"),
        ("substring(string: 1, string: 2)", "does not take these arguments"),
        ('@"tomorrow"', "ISO 8601"),
        ("a instance of b", "unknown type"),
        ("[1..3]", "no value that a variable can hold"),
        ("function(x) x", "no value that a variable can hold"),
        ("a\n+\n* 2", "line 3, column 1"),
        ('matches("a", "(?=x)")', "invalid"),
        ('assert(1, false, "no luck")', "no luck"),
        ("9" * 2_000, "too many digits"),
        ("1e9999", "too large"),
    ],
)
def test_an_error_names_expression_position_and_reason_in_one_line(text, reason):
    with pytest.raises(ExpressionError) as error:
        feel(text)
    assert reason in str(error.value)
    assert " ".join(text[:20].split())[:10] in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "for i in 1..1000000000 return i",
        "for i in 1..1000, j in 1..1000 return 1",
        "some i in 1..1000000000 satisfies i < 0",
        "for i in 1..400 return for j in 1..400 return for k in 1..400 return 1",
        "99999999 ** 99999999",
        "9 ** (9 ** 9)",
        "not(" * 5_000 + "true" + ")" * 5_000,
        "[" * 5_000 + "]" * 5_000,
        "if true then " * 300 + "1" + " else 2" * 300,
        "{a: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "
        + ", ".join(f"{b}: [{', '.join([a] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + "}",
        "string({a: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "
        + ", ".join(f"{b}: [{', '.join([a] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + "})",
        'replace("' + "a" * 2_000 + '", "", "' + "b" * 2_000 + '")',
        'count(for i in 1..20000 return replace("aaaaaaaaaaaaaaaa", "a", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"))',
        "duplicate values(for i in 1..20000 return i)",
    ],
)
def test_what_would_not_end_ends_in_an_error(text):
    started = timeit.default_timer()
    with pytest.raises(ExpressionError, match=r"steps|bits|nested|parts|elements"):
        feel(text)
    assert timeit.default_timer() - started < 2


def test_deep_parentheses_and_long_chains_are_no_problem():
    assert feel("(" * 5_000 + "1" + ")" * 5_000) == 1
    assert feel(" + ".join(["1"] * 5_000)) == 5_000
    assert feel(" and ".join(["true"] * 5_000)) is True


def test_evaluation_changes_no_variable():
    variables = {"xs": [3, 1, 2], "c": {"a": 1}}
    feel('[sort(xs), append(xs, 4), context put(c, "b", 2), reverse(xs)]', variables)
    assert variables == {"xs": [3, 1, 2], "c": {"a": 1}}


def test_a_constant_list_is_new_each_time():
    first = feel("[1, 2]")
    first.append(3)
    assert feel("[1, 2]") == [1, 2]


def test_the_shared_budget_of_simple_expressions_is_never_used_up():
    for _ in range(3):
        assert feel("[1] = [1] and numbers = numbers") is True
    assert FREE.left == MAX_STEPS


def test_a_simple_condition_takes_less_than_two_microseconds():
    compiled = compile_expression("amount > 100", "feel")
    best = min(timeit.repeat(lambda: compiled.evaluate(VARIABLES, NOW), number=10_000, repeat=5)) / 10_000
    assert best < 2e-6


cents = st.integers(-(10**9), 10**9)


@given(cents, cents, st.sampled_from("+-*"))
def test_sums_and_products_of_decimals_are_exact(one, two, operator):
    left, right = Decimal(one) / 100, Decimal(two) / 100
    expected = {"+": left + right, "-": left - right, "*": left * right}[operator]
    answer = feel(f"a {operator} b", {"a": float(left), "b": float(right)})
    assert answer == float(expected)


@given(st.integers(), st.integers(), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_orders_of_whole_numbers_are_pythons(left, right, operator):
    python = {"=": "==", "!=": "!="}.get(operator, operator)
    assert feel(f"a {operator} b", {"a": left, "b": right}) is eval(f"left {python} right")


def complaint(text, variables):
    """The error's text, or nothing; any other exception is a failure of the test."""
    try:
        feel(text, variables)
    except ExpressionError as error:
        return str(error)
    return ""


SPACE = " "
ROW = (
    'a 1 "x" + - * / ** ( ) [ ] { } , : .. . and or if then else for in return some satisfies not null '
    "count = < between item function @"
)
values = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers()), st.booleans())


@given(st.lists(st.sampled_from(ROW.split(SPACE)), max_size=12), values)
def test_any_row_of_words_is_a_value_or_an_expression_error(row, value):
    assert "\n" not in complaint(" ".join(row), {"a": value})


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_expression_error(text):
    assert "\n" not in complaint(text, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{twice: function(x) x * 2, y: twice(a)}.y", 6),
        ("{less: function(x, y) x - y, z: less(y: 1, x: a)}.z", 2),
        ("{f: function(n) if n < 2 then 1 else n * f(n - 1), y: f(20)}.y", 2432902008176640000),
        ("{my rate: function(x) x / 2, y: [my rate(2), my rate(a)]}.y", [1, 1.5]),
        ("{apply: function(g, x) g(x), y: apply(function(z) z + a, 1)}.y", 4),
        ("for f in [function(x) x + 1, function(x) x * 10] return f(a)", [4, 30]),
        ('{date: 1, y: date("2026-01-01").year}.y', 2026),
    ],
)
def test_functions_that_a_text_binds_are_called_by_name(text: str, value: object) -> None:
    """DMN 1.4, 10.3.2.13: of a context's entries those before it, of a function its parameters and itself."""
    assert compile_expression(text, "feel").evaluate({"a": 3}, 0) == value
