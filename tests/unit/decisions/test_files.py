"""DMN files: every version's namespace, requirements between decisions, and refusals that name decision and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray.bpmn.check import check_file
from gobpm_ray.bpmn.dmn import NAMESPACES, is_dmn, read_decisions, read_dmn, read_dmn_file
from gobpm_ray.decisions.elements import DecisionTable
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Expression
from tests.unit.bpmn.documents import document
from tests.unit.decisions.documents import decision, dmn, table, text

LITERAL = text("literalExpression", "amount * 2")
ENTRY = f"<contextEntry>{LITERAL}</contextEntry>"


@pytest.mark.parametrize("space", sorted(NAMESPACES))
def test_every_version_from_1_1_to_1_5_is_read(space: str) -> None:
    data = dmn(decision(LITERAL), space=space)
    assert is_dmn(data)
    assert read_decisions(data).evaluate("d", {"amount": 4}, 0) == 8


def test_a_prefix_and_another_encoding_change_nothing() -> None:
    data = dmn(decision(LITERAL)).replace(b"<", b"<d:").replace(b"<d:/", b"</d:").replace(b"<d:?", b"<?")
    data = data.replace(b"xmlns=", b"xmlns:d=")
    assert read_decisions(data).evaluate("d", {"amount": 4}, 0) == 8
    wide = data.decode().replace("UTF-8", "UTF-16").encode("utf-16")
    assert is_dmn(wide)
    assert read_decisions(wide).evaluate("d", {"amount": 4}, 0) == 8


def test_a_bpmn_file_that_imports_decisions_is_no_dmn() -> None:
    importing = document("", beside=f'<bpmn:import importType="{next(iter(NAMESPACES))}" location="x.dmn"/>')
    assert not is_dmn(importing)
    with pytest.raises(InvalidModel, match=r"^<bytes>: is not DMN 1\.1 to 1\.5: its root is 'definitions' in "):
        read_dmn(importing)


def test_a_comment_in_a_cell_and_a_cdata_section_are_read_as_one_text() -> None:
    body = table(["amount"], ["rate"], [(["-"], ["1"])]).replace("<text>1<", "<text>1 <!-- and --><![CDATA[+ 1]]><")
    assert read_decisions(dmn(decision(body))).evaluate("d", {}, 0) == 2


def test_what_a_table_says_is_kept_with_its_lines() -> None:
    file = read_dmn(dmn(decision(table(["amount"], ["rate"], [(["< 3"], ["1"])], policy="FIRST"), name="Big rate")))
    found = file.decisions["d"]
    assert (found.name, found.line) == ("Big rate", 3)
    assert isinstance(found.body, DecisionTable)
    assert found.body.hit_policy == "FIRST"
    assert found.body.inputs[0].expression == Expression("amount")
    assert found.body.rules[0].tests == ("< 3",)


# --- requirements ------------------------------------------------------------------------------------------------


def test_required_decisions_come_first_and_are_seen_under_variable_name_and_id() -> None:
    file = dmn(
        decision(text("literalExpression", "amount / 2"), "half", variable="the half")
        + decision(text("literalExpression", "half + 1"), "more", requires=["half"], name="More")
        + decision(text("literalExpression", "the half + More + more"), requires=["half", "more"])
    )
    assert read_decisions(file).evaluate("d", {"amount": 10}, 0) == 5 + 6 + 6


def test_a_required_tables_outputs_are_seen_under_their_own_names_unless_a_variable_has_them() -> None:
    rated = table(["amount"], ["rate"], [(["-"], ["7"])])
    file = read_decisions(
        dmn(decision(rated, "rating") + decision(text("literalExpression", "rate"), requires=["rating"]))
    )
    assert file.evaluate("d", {"amount": 1}, 0) == 7
    assert file.evaluate("d", {"amount": 1, "rate": 3}, 0) == 3


def test_a_diamond_evaluates_what_it_shares_and_leaves_the_given_variables_alone() -> None:
    file = read_decisions(
        dmn(
            decision(text("literalExpression", "x + 1"), "a")
            + decision(text("literalExpression", "a * 2"), "b", requires=["a"])
            + decision(text("literalExpression", "a * 3"), "c", requires=["a"])
            + decision(text("literalExpression", "b + c"), requires=["b", "c"])
        )
    )
    variables: dict[str, object] = {"x": 1}
    assert file.evaluate("d", variables, 0) == 10
    assert variables == {"x": 1}


def test_a_long_chain_of_requirements_is_no_recursion() -> None:
    links = [decision(text("literalExpression", "0"), "d0")]
    links += [
        decision(text("literalExpression", f"d{n - 1} + 1"), f"d{n}", requires=[f"d{n - 1}"]) for n in range(1, 1_500)
    ]
    assert read_decisions(dmn("".join(links))).evaluate("d1499", {}, 0) == 1499


def test_decisions_that_require_each_other_are_refused_by_name() -> None:
    circle = decision(LITERAL, "a", requires=["b"]) + decision(LITERAL, "b", requires=["a"])
    with pytest.raises(InvalidModel, match="decision 'a' requires itself, through 'b'"):
        read_decisions(dmn(circle))


def test_an_unknown_decision_is_named_with_its_file() -> None:
    with pytest.raises(DecisionFailed, match=r"^decision 'gone' does not exist in rates\.dmn$"):
        read_decisions(dmn(decision(LITERAL)), "rates.dmn").evaluate("gone", {}, 0)


# --- refused -----------------------------------------------------------------------------------------------------

REFUSED = {
    "no decision": ("", "no_decision", "there is no decision in this file"),
    "no id": ('<decision name="x">' + LITERAL + "</decision>", "missing_id", "a decision has no id (line 3)"),
    "an id twice": (decision(LITERAL) * 2, "duplicate_id", "decision 'd' is there twice"),
    "no body": (decision(""), "missing_body", "decision 'd' has neither a table nor an expression (line 3)"),
    "a function of another engine": (
        decision('<functionDefinition kind="Java"><context/></functionDefinition>'), "unsupported", "in JAVA, which"),
    "a knowledge model that is not there": (
        decision('<knowledgeRequirement><requiredKnowledge href="#k"/></knowledgeRequirement>' + LITERAL),
        "unknown_reference", "decision 'd' requires 'k', which is not in this file"),
    "a knowledge model without logic": (
        decision(LITERAL) + '<businessKnowledgeModel id="k"/>', "missing_body", "knowledge model 'k' has no logic"),
    "a service without output": (
        decision(LITERAL) + '<decisionService id="s"/>', "missing_output", "'s' has no output decision"),
    "a service of an unknown decision": (
        decision(LITERAL) + '<decisionService id="s"><outputDecision href="#x"/></decisionService>',
        "unknown_reference", "decision service 's' names the decision 'x'"),
    "a service and a decision of one id": (
        decision(LITERAL) + '<decisionService id="d"><outputDecision href="#d"/></decisionService>',
        "duplicate_id", "'d' is the id of a decision and of a service"),
    "a context with two results": (
        decision(f"<context>{ENTRY * 2}</context>"), "several_results", "several entries without a name"),
    "an entry behind the result": (
        decision(f'<context>{ENTRY}<contextEntry><variable name="x"/>{LITERAL}</contextEntry></context>'),
        "entry_order", "entry 'x' stands behind the result"),
    "a relation with a cell too many": (
        decision(f'<relation><column name="a"/><row>{LITERAL * 2}</row></relation>'),
        "rule_cells", "row 1 has 2 cells for 1 columns"),
    "a relation without names": (
        decision("<relation><column/></relation>"), "missing_output", "columns have not each a name"),
    "an invocation of nothing": (
        decision("<invocation/>"), "missing_expression", "an invocation says no function"),
    "an argument without a name": (
        decision(f"<invocation>{text('literalExpression', 'sum')}<binding>{LITERAL}</binding></invocation>"),
        "missing_parameter", "a binding of 'sum' names no parameter"),
    "a condition without an else": (
        decision(f"<conditional><if>{LITERAL}</if><then>{LITERAL}</then></conditional>"),
        "missing_body", "decision 'd' has no 'else'"),
    "a loop without a variable": (
        decision(f"<for><in>{LITERAL}</in><return>{LITERAL}</return></for>"),
        "missing_parameter", "'for' names no variable"),
    "expressions in expressions without end": (
        decision("<list>" * 60 + "</list>" * 60), "too_deep", "boxed more than 50 deep"),
    "an empty expression": (decision(text("literalExpression", " ")), "missing_expression", "is empty"),
    "another language": (
        decision(text("literalExpression", "1", ' expressionLanguage="javascript"')), "expression", "javascript"),
    "an unknown hit policy": (
        decision(table(["a"], ["b"], [(["-"], ["1"])], policy="BEST")), "hit_policy", "the hit policy BEST"),
    "an aggregation of unique rules": (
        decision(table(["a"], ["b"], [(["-"], ["1"])], aggregation="SUM")), "hit_policy", "with the hit policy UNIQUE"),
    "an aggregation of two outputs": (
        decision(table(["a"], ["b", "c"], [(["-"], ["1", "2"])], policy="COLLECT", aggregation="SUM")),
        "hit_policy", "several outputs"),
    "priorities without an order": (
        decision(table(["a"], ["b"], [(["-"], ["1"])], policy="PRIORITY")), "hit_policy", "no allowed output values"),
    "outputs of one name": (
        decision(table(["a"], ["b", "b"], [(["-"], ["1", "2"])])), "missing_output", "not each a name of its own"),
    "a rule with a cell too many": (
        decision(table(["a"], ["b"], [(["-", "-"], ["1"])])), "rule_cells", "rule 1 has 2 and 1 cells for 1 inputs"),
    "a decision that is not there": (
        decision(LITERAL, requires=["gone"]), "unknown_reference", "requires 'gone', which is not in this file"),
    "a decision of another file": (
        decision(LITERAL, requires=["x"]).replace("#x", "other.dmn#x"), "unsupported", "'other.dmn#x' of another file"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_cannot_be_decided_is_refused_by_decision_and_reason(what: str) -> None:
    body, code, words = REFUSED[what]
    with pytest.raises(InvalidModel) as refusal:
        read_dmn(dmn(body), "rates.dmn")
    assert [problem.code for problem in refusal.value.problems] == [code]  # type: ignore[attr-defined]
    assert str(refusal.value).startswith("rates.dmn: ")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            decision(text("literalExpression", "Rate(1)")),
            "decision 'd': FEEL expression 'Rate(1)' at column 1: unknown function 'Rate'",
        ),
        (
            decision(f"<context><contextEntry>{text('literalExpression', '1 +')}</contextEntry></context>"),
            "decision 'd', result: FEEL expression '1 +' at column 4: it ends too early",
        ),
        (
            decision(LITERAL)
            + '<businessKnowledgeModel id="k" name="sum"><encapsulatedLogic>'
            + f"{LITERAL}</encapsulatedLogic></businessKnowledgeModel>",
            "knowledge model 'k': 'sum' is a function of FEEL itself; give this one another name",
        ),
    ],
)
def test_what_does_not_compile_is_named_with_its_place(body: str, words: str) -> None:
    with pytest.raises(InvalidModel) as refusal:
        read_decisions(dmn(body), "rates.dmn")
    assert str(refusal.value) == f"rates.dmn: {words}"


def test_entities_are_refused_as_in_bpmn() -> None:
    bomb = dmn(decision(LITERAL)).replace(b"<definitions", b'<!DOCTYPE x [<!ENTITY a "b">]><definitions')
    with pytest.raises(InvalidModel, match="document type declaration"):
        read_dmn(bomb)


def test_check_judges_decision_files_too(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.dmn", tmp_path / "bad.dmn"
    good.write_bytes(dmn(decision(LITERAL)))
    bad.write_bytes(dmn(decision(text("literalExpression", "a +"))))
    assert check_file(good)["ok"]
    assert read_dmn_file(good).decisions.keys() == {"d"}
    answer = check_file(bad)
    assert [(error["code"], error["element"], error["line"]) for error in answer["errors"]] == [("expression", "d", 3)]
