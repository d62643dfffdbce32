"""Types of values: what the simple types of XML Schema take, what a JSON schema says, and how a refusal reads."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gobpm_ray.calendar.durations import parse_duration
from gobpm_ray.errors import InvalidModel
from gobpm_ray.items import compiled, known
from gobpm_ray.model.data import ItemType, item_type

ACCEPTED = [
    *[("string", "text"), ("token", ""), ("anyURI", "urn:x"), ("boolean", True), ("boolean", False)],
    *[("decimal", Decimal("1.5")), ("decimal", 3), ("decimal", 2.5), ("double", float("inf")), ("float", 1)],
    *[("int", 2**31 - 1), ("int", Decimal("7")), ("int", 7.0), ("long", -(2**63)), ("integer", 10**30)],
    *[("byte", -128), ("unsignedByte", 255), ("positiveInteger", 1), ("nonPositiveInteger", 0)],
    *[("date", "2026-03-01"), ("date", date(2026, 3, 1)), ("dateTime", "2026-03-01T09:30:00Z")],
    *[("dateTime", datetime(2026, 3, 1, tzinfo=UTC)), ("time", "09:30:00"), ("time", time(9, 30))],
    *[("duration", "P2DT12H"), ("duration", "-P1D"), ("duration", timedelta(1)), ("duration", parse_duration("P1M"))],
    *[("anyType", object()), ("string", None), ("int", None)],
]
REFUSED = [
    *[("string", 1), ("string", []), ("boolean", "true"), ("boolean", 1), ("decimal", "1.5"), ("decimal", True)],
    *[("decimal", float("nan")), ("int", 2**31), ("int", 1.5), ("int", True), ("int", "7"), ("unsignedInt", -1)],
    *[("positiveInteger", 0), ("date", "2026-13-01"), ("date", "tomorrow"), ("date", datetime(2026, 3, 1, tzinfo=UTC))],
    *[("dateTime", "2026-03-01"), ("dateTime", date(2026, 3, 1)), ("time", "25:00"), ("duration", "2 days")],
    *[("duration", 5), ("string", {}), ("int", float("inf"))],
]


@pytest.mark.parametrize(("simple", "value"), ACCEPTED)
def test_a_simple_type_takes_its_values_as_the_engine_and_as_json_have_them(simple: str, value: object) -> None:
    assert compiled(simple, "", False)(value) == ""


@pytest.mark.parametrize(("simple", "value"), REFUSED)
def test_a_simple_type_refuses_others_and_says_what_it_expected(simple: str, value: object) -> None:
    wrong = compiled(simple, "", False)(value)
    assert wrong.startswith(": expected ")
    assert wrong.endswith(f"(xsd:{simple})")


def test_of_a_collection_each_item_is_checked_and_the_first_wrong_one_is_named() -> None:
    check = compiled("int", "", True)
    assert check([1, 2, 3]) == check([]) == check(None) == ""
    assert check([1, "x"]) == "[1]: expected a whole number of 32 bits (xsd:int)"
    assert check("12") == ": expected a list"
    assert compiled("", "", True)("12") == ": expected a list"


def _schema(**schema: object) -> str:
    return json.dumps(schema)


def test_a_json_schema_names_the_path_and_what_it_expected() -> None:
    item = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer", "minimum": 1}}}
    check = compiled("", _schema(type="object", properties={"items": {"type": "array", "items": item}}), False)
    assert check({"items": [{"amount": 2}]}) == ""
    assert check({"items": [{"amount": 2}, {"amount": "x"}]}) == ".items[1].amount: expected integer"
    assert check({"items": [{}]}) == ".items[0]: expected 'amount', which is missing"
    assert check({"items": [{"amount": 0}]}) == ".items[0].amount: expected minimum 1"
    assert check(7) == ": expected object"


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"enum": ["a", "b"]}, "c", 'one of ["a", "b"]'),
        ({"type": ["string", "null"]}, 1, "string or null"),
        ({"additionalProperties": False}, {"x": 1}, "no other names than the schema has"),
        (
            {"additionalProperties": False, "patternProperties": {"^a": {}}},
            {"ab": 1, "b": 1},
            "no other names than the schema has",
        ),
        (
            {"not": {"patternProperties": {"^a": {"type": "integer"}}}},
            {"a": 1},
            'not {"patternProperties": {"^a": {"type": "integer"}}}',
        ),
        ({"pattern": "^A"}, "B", 'pattern "^A"'),
        ({"format": "date"}, "never", 'format "date"'),
        ({"format": "date-time"}, "2026-03-01", 'format "date-time"'),
        (False, 1, "nothing at all"),
    ],
)
def test_every_kind_of_expectation_reads_well(schema: object, value: object, expected: str) -> None:
    assert compiled("", json.dumps(schema), False)(value) == f": expected {expected}"


def test_dates_numbers_and_tuples_are_seen_as_json_has_them() -> None:
    check = compiled("", _schema(properties={"at": {"format": "date-time"}, "n": {"type": "integer"}}), False)
    assert check({"at": datetime(2026, 3, 1, tzinfo=UTC), "n": Decimal("3")}) == ""
    assert compiled("", _schema(type="array"), False)((1, 2)) == ""


def test_a_refusal_never_quotes_the_value() -> None:
    """What is wrong may be a secret."""
    secret = "hunter2-hunter2"
    for schema in ({"type": "integer"}, {"enum": ["a"]}, {"maxLength": 3}, {"const": 5}, {"pattern": "^x$"}):
        assert secret not in compiled("", json.dumps(schema), False)(secret)
    assert secret not in compiled("int", "", False)(secret)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"type": "strange"}', "at type"),
        ('{"pattern": "(?=x)"}', "pattern .* cannot be read"),
        ('{"patternProperties": {"(?=x)": {}}}', "pattern .* cannot be read"),
        ('{"$ref": "http://example.org/x.json"}', "everything in the schema itself"),
        ('{"properties": {"a": {"$ref": "other.json#/x"}}}', "everything in the schema itself"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused_where_it_is_compiled(schema: str, why: str) -> None:
    with pytest.raises(InvalidModel, match=why):
        compiled("", schema, False)


def test_the_wrong_text_for_a_pattern_costs_no_more_than_the_right_one() -> None:
    begun = perf_counter()
    check = compiled(
        "", json.dumps({"pattern": "^(a+)+$", "properties": {"x": {}}, "patternProperties": {"(a+)+$": {}}}), False
    )
    assert check("a" * 40 + "!") == ': expected pattern "^(a+)+$"'
    assert check({"a" * 40 + "!": 1}) == ""
    assert perf_counter() - begun < 5


def test_names_by_pattern_and_other_names_have_schemas_of_their_own() -> None:
    schema = {
        "properties": {"id": {}},
        "patternProperties": {"^n_": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    check = compiled("", json.dumps(schema), False)
    assert check({"id": 5, "n_a": 1, "other": "x"}) == ""
    assert check({"n_a": "x"}) == ".n_a: expected integer"
    assert check({"other": 1}) == ".other: expected string"


def test_references_inside_the_schema_are_followed() -> None:
    check = compiled("", json.dumps({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), False)
    assert (check(1), check("x")) == ("", ": expected integer")


class Line(BaseModel):
    item: str
    amount: int = 1


class Order(BaseModel):
    lines: list[Line]


def test_python_types_and_pydantic_models_become_plain_types() -> None:
    assert item_type(int) == item_type("xsd:integer") == ItemType("integer")
    assert item_type(Decimal, collection=True) == ItemType("decimal", collection=True)
    assert item_type(None) is None
    order = item_type(Order)
    assert order is not None
    assert json.loads(order.schema)["properties"]["lines"]["type"] == "array"
    assert compiled("", order.schema, False)({"lines": [{"item": "a"}]}) == ""
    assert compiled("", order.schema, False)({"lines": [{}]}) == ".lines[0]: expected 'item', which is missing"
    assert item_type(list[int]) == ItemType(schema='{"items": {"type": "integer"}, "type": "array"}')


def test_a_type_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(InvalidModel, match=r"'java\.lang\.String'.*expected a simple type"):
        item_type("java.lang.String")
    assert not known("java.lang.String")


def test_simple_types_cost_no_schema_library() -> None:
    program = "import sys, gobpm_ray.items as i; i.compiled('int','',False)(1); print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(simple=st.sampled_from(["int", "string", "date", "duration", "boolean", "double", "time"]), value=_JSON)
def test_no_value_breaks_a_check(simple: str, value: object) -> None:
    assert isinstance(compiled(simple, "", False)(value), str)
    assert isinstance(compiled(simple, "", True)(value), str)
