"""Which language a text is written in, and who compiles it; it knows names of languages, never their grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from gobpm_ray.errors import ExpressionError

if TYPE_CHECKING:
    from gobpm_ray.expressions.budget import Run


class Compiled(Protocol):
    """A compiled expression: evaluate it as often as needed, from any thread."""

    def evaluate(self, variables: Mapping[str, object], now_ms: int) -> object:
        """The value; ExpressionError names the expression, the reason and, where there is one, the position."""
        ...


class CompiledScript(Protocol):
    """A compiled script of statements."""

    def run(self, variables: Mapping[str, object], now_ms: int) -> dict[str, object]:
        """The variables that the script assigned or changed; `variables` and what they hold stay untouched."""
        ...


class CompiledTests(Protocol):
    """Compiled unary tests of one input."""

    @property
    def always(self) -> bool:
        """It holds for every input."""
        ...

    def holds(self, value: object, variables: Mapping[str, object], now_ms: int) -> bool:
        """Whether the input passes; ExpressionError names the tests and the reason."""
        ...

    def holds_within(self, value: object, variables: Mapping[str, object], run: Run) -> bool:
        """The same as a part of something larger, on its budget."""
        ...


Compiler = Callable[[str], Compiled]
TestsCompiler = Callable[[str, frozenset[str]], CompiledTests]
ScriptCompiler = Callable[[str], CompiledScript]

# A language's module is imported when its first text is compiled: lark alone would cost every import 50 ms.
_EXPRESSIONS: dict[str, Compiler | str] = {
    "feel": "gobpm_ray.expressions.feel.compiled:compile_feel",
    "python": "gobpm_ray.expressions.python.compiled:compile_python",
    "juel": "gobpm_ray.expressions.juel.compiled:compile_juel",
    "literal": "gobpm_ray.expressions.literal:compile_literal",
}
_SCRIPTS: dict[str, ScriptCompiler | str] = {"python": "gobpm_ray.expressions.python.compiled:compile_python_script"}

_ALIASES = {
    "uel": "juel",
    "el": "juel",
    "expression": "juel",
    "py": "python",
    "python3": "python",
    "jython": "python",
}
_REFUSED = ("javascript", "ecmascript", "groovy", "ruby", "mvel", "jexl", "kotlin", "jsonata", "typescript", "graaljs")
_UNDECLARED = ("xpath", "xhtml", "xmlschema", "uml")
"""Tools write these into every file without meaning them (XPath is the default of BPMN's schema): ours applies."""


def register_language(name: str, compiler: Compiler, script: ScriptCompiler | None = None) -> None:
    """Make `name` a language, or replace one; `script` compiles its statements, if it has any."""
    _EXPRESSIONS[name] = compiler
    if script is not None:
        _SCRIPTS[name] = script
    compile_expression.cache_clear()
    compile_script.cache_clear()


@lru_cache(maxsize=8_192)
def compile_expression(text: str, language: str) -> Compiled:
    """The expression, ready to evaluate; ExpressionError names text, position and reason in one line."""
    compiler = _EXPRESSIONS.get(language)
    if compiler is None:
        raise _unknown(text, language, _EXPRESSIONS)
    if isinstance(compiler, str):
        compiler = cast("Compiler", _load(compiler))
    return compiler(text)


@lru_cache(maxsize=1_024)
def compile_script(text: str, language: str) -> CompiledScript:
    """The script, ready to run; only languages with statements have scripts, others are an ExpressionError."""
    compiler = _SCRIPTS.get(language)
    if compiler is None:
        raise _unknown(text, language, _SCRIPTS)
    if isinstance(compiler, str):
        compiler = cast("ScriptCompiler", _load(compiler))
    return compiler(text)


@lru_cache(maxsize=8_192)
def compile_unary_tests(text: str, functions: frozenset[str] = frozenset()) -> CompiledTests:
    """FEEL's unary tests (a cell of a decision table), ready to ask; ExpressionError as for expressions. `functions`
    are names that the variables will bind to functions."""
    compiler = cast("TestsCompiler", _load("gobpm_ray.expressions.feel.unary:compile_unary_tests"))
    return compiler(text, functions)


def detect_language(text: str, declared: str | None, default: str = "feel") -> tuple[str, str]:
    """(language, text without its mark) of an expression as a file gives it.

    In this order: Zeebe's `= ...` is FEEL; a declared language that we know is that one; `${...}` or `#{...}` is JUEL;
    anything else is `default`. A declared language that only others run, such as JavaScript, is an ExpressionError.
    """
    stripped = text.strip()
    if stripped.startswith("=") and not stripped.startswith("=="):
        return "feel", stripped[1:].strip()
    language = _declared(text, declared)
    # Modelers declare FEEL once for the whole file and still write ${...}, which is no FEEL at all.
    if language in (None, "feel", "juel") and ("${" in stripped or "#{" in stripped) and not _in_string(stripped):
        return "juel", stripped
    return language or default, stripped


def _declared(text: str, declared: str | None) -> str | None:
    name = (declared or "").strip().lower()
    if not name:
        return None
    name = _ALIASES.get(name, name)
    if name in _EXPRESSIONS:
        return name
    words = set(re.split(r"[^a-z0-9]+", name))
    if "feel" in words:
        return "feel"
    if "python" in words:
        return "python"
    if "juel" in words or "uel" in words:
        return "juel"
    if words & set(_UNDECLARED):
        return None
    for refused in _REFUSED:
        if refused in words:
            raise ExpressionError(
                f"expression {shorten(text)!r}: language {refused} is not executed here; write FEEL, python or ${{...}}"
            )
    if "java" in words or name.startswith(("http:", "https:", "urn:")):
        # A type system's or a vendor's address names no expression language.
        return None
    raise _unknown(text, name, _EXPRESSIONS)


def _in_string(text: str) -> bool:
    """The only `${` stand inside a FEEL string literal."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    return text.startswith('"') and "${" not in bare and "#{" not in bare


def shorten(text: str, limit: int = 80) -> str:
    """The text on one line, cut in the middle of nowhere with an ellipsis."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit and len(text) <= limit * 4 else line[: limit - 1] + "…"


def _load(target: str) -> object:
    module, _, name = target.partition(":")
    loaded: object = getattr(import_module(module), name)
    return loaded


def _unknown(text: str, language: str, table: Mapping[str, object]) -> ExpressionError:
    known = ", ".join(sorted(name for name in table if name != "literal"))
    kind = "scripts" if table is _SCRIPTS else "expressions"
    return ExpressionError(
        f"expression {shorten(text)!r}: {kind} in language {language[:40]!r} are unknown; known: {known}"
    )
