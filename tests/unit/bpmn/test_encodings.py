"""Prefixes, byte order marks and encodings (I86): the model is the same whatever the bytes look like."""

from __future__ import annotations

import pytest

from gobpm_ray.bpmn.reader import read_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Process

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def _text(prefix: str, encoding: str = "UTF-8") -> str:
    p = f"{prefix}:" if prefix else ""
    declaration = f"xmlns:{prefix}" if prefix else "xmlns"
    return (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<{p}definitions {declaration}="{BPMN}">'
        f'<{p}process id="p" name="Pr\u00fcfung \u00a3" isExecutable="true"><{p}startEvent id="s"/>'
        f'<{p}task id="t" name="\u00dcber"/>'
        f'<{p}endEvent id="e"/><{p}sequenceFlow id="f" sourceRef="s" targetRef="t"/>'
        f'<{p}sequenceFlow id="g" sourceRef="t" targetRef="e"/></{p}process></{p}definitions>'
    )


def _process(data: bytes) -> Process:
    definitions = read_bpmn(data)
    assert definitions.warnings == ()
    return definitions.processes[0]


EXPECTED = _process(_text("bpmn").encode())


def test_the_reference_model_is_what_the_text_says() -> None:
    assert EXPECTED.name == "Prüfung £"
    assert list(EXPECTED.nodes) == ["s", "t", "e"]
    assert EXPECTED.nodes["t"].name == "Über"
    assert (EXPECTED.nodes["t"].incoming, EXPECTED.nodes["t"].outgoing) == (("f",), ("g",))


@pytest.mark.parametrize("prefix", ["", "bpmn", "bpmn2", "semantic", "model", "ns0"])
def test_every_prefix_style_gives_the_same_model(prefix: str) -> None:
    """I86."""
    assert _process(_text(prefix).encode()) == EXPECTED


@pytest.mark.parametrize(
    ("declared", "codec"),
    [
        ("UTF-8", "utf-8-sig"),
        ("ISO-8859-1", "iso-8859-1"),
        ("windows-1252", "cp1252"),
        ("UTF-16", "utf-16"),
        ("iso-8859-15", "iso-8859-15"),
    ],
)
def test_every_encoding_gives_the_same_model(declared: str, codec: str) -> None:
    """I86."""
    text = _text("bpmn", declared)
    assert _process(text.encode(codec)) == EXPECTED


def test_bytes_that_contradict_the_declared_encoding_are_refused_with_the_line() -> None:
    """I86: a file that says UTF-8 and is Latin-1."""
    with pytest.raises(InvalidModel, match=r"^a\.bpmn:2: .*not in the encoding that it declares"):
        read_bpmn(_text("bpmn").encode("iso-8859-1"), "a.bpmn")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"PK\x03\x04 no xml", "cannot be read as XML"),
        (b"{}", "cannot be read as XML"),
        (b"<a><b></a>", "cannot be read as XML"),
        (_text("bpmn", "no-such-encoding").encode(), "cannot be read as XML"),
        (b"<html/>", "its root is 'html' without a namespace"),
        (b'<definitions xmlns="urn:other"/>', "its root is 'definitions' in namespace 'urn:other'"),
        (_text("bpmn").encode()[:-40], "cannot be read as XML"),
    ],
)
def test_what_is_not_bpmn_is_refused_in_one_line(data: bytes, reason: str) -> None:
    """I87: a clear error, never a traceback of the parser's."""
    with pytest.raises(InvalidModel) as refusal:
        read_bpmn(data, "a.bpmn")
    assert reason in str(refusal.value)
    assert str(refusal.value).startswith("a.bpmn")
    assert "\n" not in str(refusal.value)
    assert len(refusal.value.problems) == 1


def test_broken_namespace_declarations_are_read_with_a_warning() -> None:
    """I86: an address with a space, and a prefix that is bound to nothing, as real exports have them."""
    text = _text("bpmn").replace("<bpmn:definitions", '<bpmn:definitions xmlns:q="http://a/b c" v:x="1"')
    definitions = read_bpmn(text.encode())
    assert definitions.processes == (EXPECTED,)
    assert {warning.code for warning in definitions.warnings} == {"namespace"}
    assert any("not a valid URI" in warning.message for warning in definitions.warnings)
    assert any("prefix v" in warning.message for warning in definitions.warnings)
