"""JUEL, as files of other engines use it (issue 2 item 4)."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import compile_expression

VARIABLES = {
    "amount": 150,
    "price": 0.1,
    "xs": [1, 2, 3],
    "none": [],
    "order": {"total": 5, "items": [{"p": 1}, {"p": 2}]},
    "s": "abc",
    "x": None,
    "approved": False,
    "yes": "true",
    "clarified": "yes",
    "name": "Bo",
    "day": date(2024, 2, 29),
}


def juel(text, variables=VARIABLES):
    return compile_expression(text, "juel").evaluate(variables, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${clarified == 'yes'}", True),
        ('${clarified == "no"}', False),
        ("${!approved}", True),
        ("#{not approved}", True),
        ("${approved}", False),
        ("${amount > 100 && !approved}", True),
        ("${amount gt 100 and amount le 150}", True),
        ("${amount < 100 || amount >= 150}", True),
        ("${yes && true}", True),
        ("${yes == true}", True),
        ("${not empty xs}", True),
        ("${empty none and empty x and empty ''}", True),
        ("${order.total + 1}", 6),
        ("${order['total'] eq 5}", True),
        ("${order.items[0].p}", 1),
        ("${order.items.size() == 2}", True),
        ("${order.nope}", None),
        ("${order.nope == null}", True),
        ("${x.y.z}", None),
        ("${xs[9]}", None),
        ("${xs.contains(2)}", True),
        ("${xs.get(0)}", 1),
        ("${order.containsKey('total')}", True),
        ("${s.startsWith('a') && s.toUpperCase() == 'ABC'}", True),
        ("${s.length()}", 3),
        ("${s.substring(1)}", "bc"),
        ("${s.equals('abc') and s.equalsIgnoreCase('ABC')}", True),
        ("${amount > 100 ? 'big' : 'small'}", "big"),
        ("${amount > 200 ? 'big' : amount > 100 ? 'medium' : 'small'}", "medium"),
        ("${1 + 2 * 3}", 7),
        ("${(1 + 2) * 3}", 9),
        ("${10 / 4}", 2.5),
        ("${10 div 5}", 2),
        ("${amount % 7}", 3),
        ("${-7 mod 3}", -1),
        ("${price + 0.2 == 0.3}", True),
        ("${-amount}", -150),
        ("${'1' == 1}", True),
        ("${'1' + '2'}", 3),
        ("${'a' + 1}", "a1"),
        ("${amount >= '100'}", True),
        ("${x < 1}", False),
        ("${true or false and false}", True),
        ("${'}'}", "}"),
        (r"${'it\'s'}", "it's"),
        ("${1.5e2}", 150),
        ("${xs}", [1, 2, 3]),
        ("${day.year}", 2024),
        ("${now().year}", 2023),
        ("Hello ${name}", "Hello Bo"),
        ("${name} owes ${amount}${x}!", "Bo owes 150!"),
        ("${approved}-${order.total}", "false-5"),
        (r"\${name} is ${name}", "${name} is Bo"),
        ("plain", "plain"),
    ],
)
def test_expressions(text, expected):
    answer = juel(text)
    assert answer == expected
    assert isinstance(answer, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${missing}", "column 3: variable 'missing' is missing"),
        ("Hello ${missing.name}", "column 9: variable 'missing' is missing"),
        ("${execution.getVariable('x')}", "'execution' is an object of another engine"),
        ("${task.assignee}", "'task' is an object of another engine"),
        ("${name.getClass()}", "method 'getClass'"),
        ("${''.getClass().forName('java.lang.Runtime')}", "method"),
        ("${name.class}", "no property 'class'"),
        ("${name.__class__}", "no property '__class__'"),
        ("${xs.__class__}", "no property '__class__'"),
        ("${__import__('os')}", "unknown function"),
        ("${dateTime().plusDays(3)}", "unknown function 'dateTime'"),
        ("${name.toUpperCase}", "no property"),
        ("${1 / 0}", "no answer"),
        ("${amount % 0}", "no answer"),
        ("${amount && true}", "neither true nor false"),
        ("${xs > 1}", "no answer"),
        ("${amount", "it ends too early"),
        ("${}", "it ends too early"),
        ("${amount >}", "it ends too early"),
        ("${1 2}", "column 5: unexpected '2'"),
        ("${a ${b}}", "unexpected '$'"),
        ("${f(1,}", "it ends too early"),
        ("${'a}", "unexpected"),
        ("${(1)(2)}", "known by name"),
        ("${" + "(" * 3_000 + "1" + ")" * 3_000 + "}", "nested"),
        ("${" + "!" * 3_000 + "true}", "nested"),
        ("${" + "1+" * 3_000 + "1}", "nested"),
        ("${" + "true?" * 3_000 + "1}", "nested"),
        ("${" + "9" * 2_000 + "}", "digits"),
        ("${'" + "a" * 1_000 + "'" + ".toUpperCase()" * 90 + "", "early"),
    ],
)
def test_an_error_names_expression_position_and_reason_in_one_line(text, reason):
    with pytest.raises(ExpressionError) as error:
        juel(text)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    assert "juel " not in str(error.value)


def complaint(text):
    """The error's text, or nothing; any other exception is a failure of the test."""
    try:
        juel(text, {"a": [1], "b": None})
    except ExpressionError as error:
        return str(error)
    return ""


SPACE = " "
ROW = "${ } a b 1 'x' + - * / % ( ) [ ] , . ? : ! && || == < empty not size true null #{"


@given(st.lists(st.sampled_from(ROW.split(SPACE)), max_size=12))
def test_any_row_of_words_is_a_value_or_an_expression_error(row):
    assert "\n" not in complaint("${" + " ".join(row) + "}")
