"""FEEL's functions on strings. Patterns run on RE2, which answers in linear time whatever the pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, cast

from gobpm_ray.expressions.budget import Refused, Run, check_length, join
from gobpm_ray.expressions.feel.builtins import builtin, spread
from gobpm_ray.expressions.feel.values import to_text

_LONGEST_PATTERN = 1_000


@builtin("string(from: x)", deep=True)
def string(run: Run, value: object) -> object:
    return to_text(value)


@builtin("substring(string: s, start position: i, length: i?)")
def substring(run: Run, text: str, start: int, length: int | None = None) -> object:
    if start == 0 or abs(start) > len(text) or (length is not None and length < 0):
        return "" if start else None
    first = start - 1 if start > 0 else len(text) + start
    return text[first:] if length is None else text[first : first + length]


@builtin("string length(string: s)")
def string_length(run: Run, text: str) -> object:
    return len(text)


@builtin("upper case(string: s)")
def upper_case(run: Run, text: str) -> object:
    return text.upper()


@builtin("lower case(string: s)")
def lower_case(run: Run, text: str) -> object:
    return text.lower()


@builtin("trim(string: s)")
def trim(run: Run, text: str) -> object:
    return text.strip()


@builtin("substring before(string: s, match: s)")
def substring_before(run: Run, text: str, match: str) -> object:
    before, found, _ = text.partition(match) if match else ("", "", "")
    return before if found else ""


@builtin("substring after(string: s, match: s)")
def substring_after(run: Run, text: str, match: str) -> object:
    return text.partition(match)[2] if match else text


@builtin("contains(string: s, match: s)")
def contains(run: Run, text: str, match: str) -> object:
    return match in text


@builtin("starts with(string: s, match: s)")
def starts_with(run: Run, text: str, match: str) -> object:
    return text.startswith(match)


@builtin("ends with(string: s, match: s)")
def ends_with(run: Run, text: str, match: str) -> object:
    return text.endswith(match)


@builtin("string join(list: l, delimiter: s?)")
def string_join(run: Run, items: list[object], delimiter: str | None = None) -> object:
    parts = [item for item in items if item is not None]
    if not all(isinstance(part, str) for part in parts):
        return None
    return join(run, delimiter or "", cast("list[str]", parts))


@builtin("concat(strings: x*)")
def concat(run: Run, *values: object) -> object:
    return string_join(run, spread(values) or [])


class _Match(Protocol):
    def start(self, group: int = 0) -> int: ...

    def end(self, group: int = 0) -> int: ...

    def group(self, group: int = 0) -> str | None: ...


class _Matches(Protocol):
    def __iter__(self) -> _Matches: ...

    def __next__(self) -> _Match: ...


class _Pattern(Protocol):
    groups: int

    def search(self, text: str) -> _Match | None: ...

    def finditer(self, text: str) -> _Matches: ...


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, flags: str) -> _Pattern:
    """A pattern for RE2; what it does not know (look-around, back references) is refused by name."""
    import re2  # type: ignore[import-untyped]

    if len(pattern) > _LONGEST_PATTERN:
        raise Refused(f"a pattern has more than {_LONGEST_PATTERN:,} characters")
    unknown = set(flags) - set("ismx")
    if unknown:
        raise Refused(f"unknown flag {min(unknown)!r} of a pattern; known: i, s, m, x")
    if "x" in flags:
        pattern = "".join(pattern.split())
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    inline = "".join(sorted(set(flags) & set("ism")))
    try:
        return cast("_Pattern", re2.compile(f"(?{inline}){pattern}" if inline else pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise Refused(f"pattern {pattern[:40]!r}: {text[:80]}") from error


def _scan(run: Run, text: str, pattern: str) -> None:
    # RE2 walks the text once, but a complex pattern makes each character dearer.
    run.charge(5 + (len(text) * (1 + len(pattern) // 16) >> 4))


@builtin("matches(input: s, pattern: s, flags: s?)")
def matches(run: Run, text: str, pattern: str, flags: str | None = None) -> object:
    _scan(run, text, pattern)
    return compile_pattern(pattern, flags or "").search(text) is not None


def _template(replacement: str) -> list[str | int]:
    """`$1` as group numbers among plain texts; a backslash keeps a dollar or backslash as it is."""
    parts: list[str | int] = [""]
    position = 0
    while position < len(replacement):
        char, following = replacement[position], replacement[position + 1 : position + 2]
        if char == "$" and following.isascii() and following.isdigit():
            parts += [int(following), ""]
            position += 1
        elif char == "\\" and following in ("$", "\\"):
            parts[-1] = f"{parts[-1]}{following}"
            position += 1
        else:
            parts[-1] = f"{parts[-1]}{char}"
        position += 1
    return parts


@builtin("replace(input: s, pattern: s, replacement: s, flags: s?)")
def replace(run: Run, text: str, pattern: str, replacement: str, flags: str | None = None) -> object:
    _scan(run, text, pattern)
    compiled, template = compile_pattern(pattern, flags or ""), _template(replacement)
    parts: list[str] = []
    last = length = 0
    for match in compiled.finditer(text):
        run.charge(len(template))
        new = [text[last : match.start()]]
        for part in template:
            if isinstance(part, str):
                new.append(part)
            elif part <= compiled.groups:
                new.append(match.group(part) or "")
        last = match.end()
        length += sum(map(len, new))
        check_length(length)
        parts += new
    return join(run, "", [*parts, text[last:]])


@builtin("split(string: s, delimiter: s)")
def split(run: Run, text: str, delimiter: str) -> object:
    _scan(run, text, delimiter)
    pieces: list[object] = []
    last = 0
    for match in compile_pattern(delimiter, "").finditer(text):
        if match.end() == match.start():
            continue
        run.charge(1)
        pieces.append(text[last : match.start()])
        last = match.end()
    return [*pieces, text[last:]]


@builtin("extract(input: s, pattern: s)")
def extract(run: Run, text: str, pattern: str) -> object:
    _scan(run, text, pattern)
    found: list[object] = []
    for match in compile_pattern(pattern, "").finditer(text):
        run.charge(1)
        found.append(match.group())
    return found
