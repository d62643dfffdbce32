"""Expressions and scripts, behind one registry by language; it knows how text becomes a value, and nothing of BPMN.

`compile_expression(text, language)` gives something with `evaluate(variables, now_ms)`. Compiling is cached;
evaluating is pure and bounded: it reads no clock, and whatever loops or grows ends in an ExpressionError. Languages:
`feel` (the default), `python` (a sandboxed subset), `juel` (`${...}`), and `literal` (the text is the value).
"""

from gobpm_ray.expressions.registry import (
    Compiled,
    CompiledScript,
    CompiledTests,
    compile_expression,
    compile_script,
    compile_unary_tests,
    detect_language,
    register_language,
)

__all__ = [
    "Compiled",
    "CompiledScript",
    "CompiledTests",
    "compile_expression",
    "compile_script",
    "compile_unary_tests",
    "detect_language",
    "register_language",
]
