"""Which language a text is in, and what compiling promises (issue 2 item 4)."""

import subprocess
import sys

import pytest

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import compile_expression, compile_script, detect_language, register_language
from gobpm_ray.expressions import registry as registry_module

FEEL = "https://www.omg.org/spec/DMN/20191111/FEEL/"
XPATH = "http://www.w3.org/1999/XPath"


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        ("= amount > 1", None, ("feel", "amount > 1")),
        ('= "${x}"', None, ("feel", '"${x}"')),
        ("=approved", XPATH, ("feel", "approved")),
        ("${approved}", None, ("juel", "${approved}")),
        ("#{approved}", None, ("juel", "#{approved}")),
        ("Hello ${name}", None, ("juel", "Hello ${name}")),
        ("${approved}", FEEL, ("juel", "${approved}")),
        ('"${x}"', None, ("feel", '"${x}"')),
        ("  approved  ", None, ("feel", "approved")),
        ("approved", FEEL, ("feel", "approved")),
        ("approved", "feel", ("feel", "approved")),
        ("approved", "FEEL", ("feel", "approved")),
        ("approved", XPATH, ("feel", "approved")),
        ("approved", "http://www.java.com/javaTypes", ("feel", "approved")),
        ("approved", "python", ("python", "approved")),
        ("approved", "text/x-python", ("python", "approved")),
        ('f"${x}"', "python", ("python", 'f"${x}"')),
        ("approved", "juel", ("juel", "approved")),
    ],
)
def test_a_text_is_read_in_the_language_that_it_means(text, declared, expected):
    assert detect_language(text, declared) == expected


def test_the_default_language_is_the_callers():
    assert detect_language("P7D", None, default="literal") == ("literal", "P7D")


@pytest.mark.parametrize("declared", ["javascript", "http://groovy.codehaus.org/", "text/javascript", "Klingon"])
def test_a_language_that_others_run_is_refused_by_name(declared):
    with pytest.raises(ExpressionError, match=r"javascript|groovy|klingon") as error:
        detect_language("approved", declared)
    assert "\n" not in str(error.value)


def test_a_literal_is_its_own_value():
    assert compile_expression("P7D", "literal").evaluate({}, 0) == "P7D"


def test_compiling_again_gives_the_same_object():
    assert compile_expression("a + 1", "feel") is compile_expression("a + 1", "feel")


def test_an_unknown_language_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ExpressionError, match="feel, juel, python"):
        compile_expression("1", "cobol")
    with pytest.raises(ExpressionError, match="known: python"):
        compile_script("1", "feel")


def test_a_language_can_be_added(monkeypatch):
    monkeypatch.setattr(registry_module, "_EXPRESSIONS", dict(registry_module._EXPRESSIONS))

    class Shout:
        def __init__(self, text):
            self.text = text

        def evaluate(self, variables, now_ms):
            return self.text.upper()

    register_language("shout", Shout)
    assert compile_expression("hello", "shout").evaluate({}, 0) == "HELLO"
    assert detect_language("hello", "shout") == ("shout", "hello")
    compile_expression.cache_clear()


def test_importing_the_registry_does_not_import_a_parser():
    code = "import sys, gobpm_ray.expressions; print('lark' in sys.modules or 're2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("language", ["feel", "python", "juel"])
def test_a_text_that_is_too_long_is_refused(language):
    with pytest.raises(ExpressionError, match="longer than"):
        compile_expression("${" + "a" * 70_000 + "}", language)


@pytest.mark.parametrize("language", ["feel", "python"])
def test_an_empty_text_is_refused(language):
    with pytest.raises(ExpressionError, match="empty"):
        compile_expression("  ", language)
