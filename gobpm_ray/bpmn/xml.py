"""Bytes to an element tree, safely; what text, line and local name an element has.

It knows XML and its traps (entities, floods, wrong encodings, broken namespaces) and nothing of BPMN beyond the name of
its namespace. The parser never opens a file or a socket, never expands an entity, and is bounded before it starts, by
counting markup in the raw bytes: a tree costs ten to twenty times its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Problem

MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_PREFIX = f"{{{MODEL}}}"

MAX_BYTES = 32 * 1024 * 1024
MAX_MARKUP = 1_000_000
"""Most tags, and most attributes, of one document; a diagram of ten thousand nodes has about 150,000 of each."""

_DOCTYPE = re.compile(rb"(?>\s+|<\?.*?\?>|<!--.*?-->|\xef\xbb\xbf|\xff\xfe|\xfe\xff)*+<!DOCTYPE", re.DOTALL)


def parse(data: bytes, name: str) -> tuple[etree._Element, tuple[Problem, ...]]:
    """The root of the document, and what was odd about it but readable. Raises `InvalidModel`: one line with `name`."""
    _refuse_floods(data, name)
    warnings: tuple[Problem, ...] = ()
    parser = _parser(recover=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as broken:
        # The parser's own log: the exception's may hold what other parsers of this thread met before.
        if not _only_namespaces(parser):
            raise _not_xml(name, broken) from None
        root, warnings = _despite_namespaces(data, name, broken)
    _refuse_entities(root, name)
    return root, warnings


def refused(name: str, code: str, reason: str, line: int = 0) -> InvalidModel:
    """The exception for a document that is wrong as a whole."""
    place = f"{name}:{line}" if line else name
    return InvalidModel(f"{place}: {reason}", (Problem(code, "", reason, line),))


def _parser(*, recover: bool) -> etree.XMLParser:
    # Comments and processing instructions go, so that a condition with a comment inside is one text again.
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
        collect_ids=False,
        recover=recover,
    )


def _refuse_floods(data: bytes, name: str) -> None:
    if not data.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe"):
        raise refused(name, "not_xml", "cannot be read as XML: it is empty")
    if len(data) > MAX_BYTES:
        raise refused(name, "too_large", f"has {len(data)} bytes; at most {MAX_BYTES} are read")
    if data.count(b"<") > MAX_MARKUP or data.count(b"=") > MAX_MARKUP:
        raise refused(name, "too_large", f"has more than {MAX_MARKUP} tags or attributes")
    # UTF-16 and UTF-32 show their ASCII once the zero bytes are out; stranger encodings meet the check after parsing.
    plain = data.replace(b"\0", b"") if b"\0" in data[:64] else data
    if _DOCTYPE.match(plain):
        raise _entities(name)


def _refuse_entities(root: etree._Element, name: str) -> None:
    # Whatever the bytes looked like: without a document type there are no entities but XML's own five.
    if root.getroottree().docinfo.internalDTD is not None:
        raise _entities(name)


def _entities(name: str) -> InvalidModel:
    return refused(name, "entities", "has a document type declaration: entities and external files are never read")


def _despite_namespaces(
    data: bytes, name: str, broken: etree.XMLSyntaxError
) -> tuple[etree._Element, tuple[Problem, ...]]:
    """Read again where only namespaces are at fault: real exports have addresses with spaces and unbound prefixes."""
    parser = _parser(recover=True)
    root: etree._Element | None = etree.fromstring(data, parser)
    if root is None or not _only_namespaces(parser):
        raise _not_xml(name, broken)
    seen = {(entry.line, entry.message): None for entry in parser.error_log}
    return root, tuple(Problem("namespace", "", _one_line(message), line) for line, message in seen)


def _only_namespaces(parser: etree.XMLParser) -> bool:
    log = list(parser.error_log)
    return bool(log) and all(entry.domain == etree.ErrorDomains.NAMESPACE for entry in log)


def _not_xml(name: str, broken: etree.XMLSyntaxError) -> InvalidModel:
    reason = _one_line(re.sub(r", line \d+, column \d+( \(.*\))?$", "", str(broken.msg or broken)))
    if "Excessive depth" in reason:
        return refused(name, "too_large", "is nested too deeply: at most 256 levels are read", broken.lineno or 0)
    if "encoding" in reason.lower():
        reason += "; its bytes are not in the encoding that it declares (without a declaration, UTF-8)"
    return refused(name, "not_xml", f"cannot be read as XML: {reason}", broken.lineno or 0)


def _one_line(message: str) -> str:
    return " ".join(message.split())


# --- elements ----------------------------------------------------------------------------------------------------


def local(element: etree._Element) -> str:
    """The name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def namespace(element: etree._Element) -> str:
    tag = str(element.tag)
    return tag[1:].partition("}")[0] if tag.startswith("{") else ""


def is_bpmn(element: etree._Element) -> bool:
    return str(element.tag).startswith(_PREFIX)


def line(element: etree._Element) -> int:
    return element.sourceline or 0


def text(element: etree._Element) -> str:
    """All the text inside, CDATA and text around comments joined, stripped at both ends."""
    return "".join(str(part) for part in element.itertext()).strip()


def attribute(element: etree._Element, name: str) -> str:
    """The attribute's value, stripped; '' where it is missing. `name` is plain or `{namespace}name`."""
    return str(element.get(name) or "").strip()


def flag(element: etree._Element, name: str, *, default: bool = False) -> bool:
    value = attribute(element, name).lower()
    return default if not value else value in ("true", "1")


def bpmn_children(element: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """The children in BPMN's own namespace, with their local names, in document order."""
    for child in element:
        if is_bpmn(child):
            yield str(child.tag)[len(_PREFIX) :], child


def child(element: etree._Element, name: str) -> etree._Element | None:
    """The first BPMN child called `name`."""
    return element.find(_PREFIX + name)


def texts(element: etree._Element, name: str) -> tuple[str, ...]:
    """The texts of every BPMN child called `name`."""
    return tuple(text(found) for found in element.findall(_PREFIX + name))


def extension_elements(element: etree._Element) -> Iterator[tuple[str, str, etree._Element]]:
    """(namespace, local name, element) of everything in the element's `extensionElements`."""
    for holder in element.findall(f"{_PREFIX}extensionElements"):
        for found in holder:
            yield namespace(found), local(found), found
