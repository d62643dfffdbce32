"""Which language a text is in, what is a constant, and that the text survives comments and CDATA."""

from __future__ import annotations

import pytest

from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.model.elements import CatchEvent, Expression, TimerDefinition, literal
from tests.unit.bpmn.documents import around, document


def _conditional(condition: str, attributes: str = "") -> bytes:
    return document(
        '<bpmn:startEvent id="s"/><bpmn:exclusiveGateway id="g" default="f2"/><bpmn:endEvent id="e"/>'
        '<bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="g"/>'
        f'<bpmn:sequenceFlow id="f1" sourceRef="g" targetRef="e">{condition}</bpmn:sequenceFlow>'
        '<bpmn:sequenceFlow id="f2" sourceRef="g" targetRef="e"/>',
        attributes=attributes,
    )


@pytest.mark.parametrize(
    "text",
    [
        "a &gt; 1",
        "<![CDATA[a > 1]]>",
        "a <!-- why --> &gt; 1",
        "<![CDATA[a ]]>&gt;<!-- x --><![CDATA[ 1]]>",
        "\n   a &gt; 1\n  ",
        "= a &gt; 1",
    ],
)
def test_a_condition_is_its_whole_text_whatever_it_is_made_of(text: str) -> None:
    condition = f'<bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">{text}</bpmn:conditionExpression>'
    found = read_bpmn(_conditional(condition)).processes[0].flows["f1"].condition
    assert found is not None
    assert (" ".join(found.text.split()), found.language) == ("a > 1", "feel")


@pytest.mark.parametrize(
    "language", ["http://www.w3.org/1999/XPath", "https://www.omg.org/spec/DMN/20191111/FEEL/", ""]
)
def test_a_declared_language_of_the_document_that_means_feel_or_nothing_is_feel(language: str) -> None:
    condition = "<bpmn:conditionExpression>a = 1</bpmn:conditionExpression>"
    data = _conditional(condition, attributes=f' expressionLanguage="{language}"')
    assert read_bpmn(data).processes[0].flows["f1"].condition == Expression("a = 1", "feel")


def test_the_elements_own_language_comes_before_the_documents() -> None:
    condition = '<bpmn:conditionExpression language="feel">a = 1</bpmn:conditionExpression>'
    data = _conditional(condition, attributes=' expressionLanguage="python"')
    assert read_bpmn(data).processes[0].flows["f1"].condition == Expression("a = 1", "feel")


def test_a_language_of_another_engine_is_refused_where_it_is_used() -> None:
    condition = '<bpmn:conditionExpression language="javascript">a === 1</bpmn:conditionExpression>'
    errors = examine(_conditional(condition)).errors
    assert [(error.code, error.element, error.line) for error in errors] == [("expression", "f1", 4)]
    assert "javascript" in errors[0].message


def _timer(inside: str) -> TimerDefinition:
    body = (
        f"<bpmn:intermediateCatchEvent id='x'><bpmn:timerEventDefinition>{inside}</bpmn:timerEventDefinition>"
        "</bpmn:intermediateCatchEvent>"
    )
    node = read_bpmn(around(body)).processes[0].nodes["x"]
    assert isinstance(node, CatchEvent)
    definition = node.definitions[0]
    assert isinstance(definition, TimerDefinition)
    return definition


@pytest.mark.parametrize(
    ("inside", "kind", "value"),
    [
        ("<bpmn:timeDuration>P7D</bpmn:timeDuration>", "duration", literal("P7D")),
        ("<bpmn:timeCycle>R6/P1D</bpmn:timeCycle>", "cycle", literal("R6/P1D")),
        ("<bpmn:timeCycle>0 9 * * MON-FRI</bpmn:timeCycle>", "cycle", literal("0 9 * * MON-FRI")),
        ("<bpmn:timeDate>2026-01-01T00:00:00Z</bpmn:timeDate>", "date", literal("2026-01-01T00:00:00Z")),
        ("<bpmn:timeDuration>= wait</bpmn:timeDuration>", "duration", Expression("wait")),
        (
            '<bpmn:timeDuration language="http://www.w3.org/1999/XPath">PT2H</bpmn:timeDuration>',
            "duration",
            literal("PT2H"),
        ),
        ('<bpmn:timeDuration language="feel">PT2H</bpmn:timeDuration>', "duration", literal("PT2H")),
        ('<bpmn:timeDuration language="feel">wait</bpmn:timeDuration>', "duration", Expression("wait")),
    ],
)
def test_a_timers_text_is_a_constant_unless_it_is_marked_or_declared(inside: str, kind: str, value: Expression) -> None:
    timer = _timer(inside)
    assert (timer.kind, timer.value) == (kind, value)


def test_a_timers_text_is_an_expression_where_the_document_declares_a_language_and_it_is_no_time() -> None:
    body = (
        "<bpmn:intermediateCatchEvent id='x'><bpmn:timerEventDefinition><bpmn:timeDuration>{}</bpmn:timeDuration>"
        "</bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>"
    )
    feel = ' expressionLanguage="https://www.omg.org/spec/DMN/20191111/FEEL/"'
    for text, value in (("P7D", literal("P7D")), ("a.wait", Expression("a.wait"))):
        node = read_bpmn(document(body.format(text), attributes=feel)).processes[0].nodes["x"]
        assert getattr(node, "definitions", None) == (TimerDefinition(kind="duration", value=value),)
    assert [error.code for error in examine(document(body.format("a.wait"))).errors] == ["invalid_timer"]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("bpmn:getDataObject('approved')", "approved"),
        ("not(bpmn:getDataObject('approved'))", "not(approved)"),
        ("bpmn:getDataObject('clarified') = 'no' or false()", 'clarified = "no" or false'),
        ("getDataObject('p', 'my order')/total/net div 2 &gt; 3", "`my order`.total.net / 2 > 3"),
        ("getProcessProperty('p', 'limit') &lt; getDataInput('n')", "limit < n"),
        ("""getDataOutput("a") = 'say "hi"'""", 'a = "say \\"hi\\""'),
    ],
)
def test_the_data_functions_of_bpmns_own_xpath_are_variables(written: str, text: str) -> None:
    """BPMN 10.4.3."""
    language = ' language="http://www.w3.org/1999/XPath"'
    for attributes in ("", language):
        body = (
            '<bpmn:startEvent id="s"/><bpmn:exclusiveGateway id="g"/><bpmn:endEvent id="e"/>'
            '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="g"/>'
            '<bpmn:sequenceFlow id="h" sourceRef="g" targetRef="e">'
            f"<bpmn:conditionExpression{attributes}>{written}</bpmn:conditionExpression></bpmn:sequenceFlow>"
        )
        [process] = read_bpmn(document(body)).processes
        assert process.flows["h"].condition == Expression(text)


def test_a_data_function_in_a_language_of_ours_is_a_function_of_that_language() -> None:
    body = (
        '<bpmn:startEvent id="s"/><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="e">'
        '<bpmn:conditionExpression language="python">getDataObject("a")</bpmn:conditionExpression></bpmn:sequenceFlow>'
    )
    [error] = examine(document(body)).errors
    assert "unknown function 'getDataObject'" in error.message


def test_two_times_in_one_timer_are_refused() -> None:
    body = (
        "<bpmn:intermediateCatchEvent id='x'><bpmn:timerEventDefinition><bpmn:timeDuration>P1D</bpmn:timeDuration>"
        "<bpmn:timeCycle>R/P1D</bpmn:timeCycle></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>"
    )
    assert [(error.code, error.element) for error in examine(around(body)).errors] == [("several_timers", "x")]


@pytest.mark.parametrize(
    ("attributes", "text", "language"),
    [
        ("", "1 + 1", "feel"),
        (' scriptFormat="feel"', "1 + 1", "feel"),
        (' scriptFormat="text/x-feel"', "1 + 1", "feel"),
    ],
)
def test_a_scripts_format_is_its_language(attributes: str, text: str, language: str) -> None:
    body = f'<bpmn:scriptTask id="x"{attributes}><bpmn:script><![CDATA[{text}]]></bpmn:script></bpmn:scriptTask>'
    node = read_bpmn(around(body)).processes[0].nodes["x"]
    assert getattr(node, "script", None) == Expression(text, language)
