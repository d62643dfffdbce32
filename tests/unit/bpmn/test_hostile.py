"""Documents made to hurt (I88): refused or loaded, within two seconds and 300 MB."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.reader import read_bpmn
from gobpm_ray.errors import InvalidModel
from tests.unit.bpmn.documents import HEAD, document

BOMB = (
    b'<?xml version="1.0"?><!-- a --><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 10) for i in range(9))
    + b"]><x>&a8;</x>"
)
EXTERNAL = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'
PARAMETER = b'<!DOCTYPE x [<!ENTITY % p SYSTEM "http://localhost:1/x.dtd"> %p;]><x/>'


@pytest.mark.parametrize(
    "data", [BOMB, EXTERNAL, PARAMETER, b"\xef\xbb\xbf" + EXTERNAL, EXTERNAL.decode().encode("utf-16")]
)
def test_a_document_with_entities_is_refused_before_any_is_expanded(data: bytes) -> None:
    """I88: entity bomb, external entity, parameter entity, behind a byte order mark or in UTF-16."""
    began = time.process_time()
    with pytest.raises(InvalidModel, match="entities"):
        read_bpmn(data, "bomb.bpmn")
    assert time.process_time() - began < 0.5


def test_an_entity_in_an_encoding_that_hides_it_is_refused_all_the_same() -> None:
    """I88: in UTF-7 no byte of the declaration reads as such."""
    hidden = b'<?xml version="1.0" encoding="UTF-7"?>' + EXTERNAL.replace(b"<", b"+ADw-")
    with pytest.raises(InvalidModel):
        read_bpmn(hidden)


def test_an_external_document_type_is_never_fetched_and_its_entities_are_refused(tmp_path: Path) -> None:
    """I88: the file named by the declaration exists and would define the entity."""
    (tmp_path / "x.dtd").write_text('<!ENTITY name "from outside">')
    head, _, rest = document('<bpmn:startEvent id="s" name="&name;"/>').decode().partition("?>")
    with pytest.raises(InvalidModel):
        read_bpmn(f'{head}?><!DOCTYPE x SYSTEM "{tmp_path}/x.dtd">{rest}'.encode())


def test_the_word_entity_in_a_text_is_no_entity() -> None:
    body = (
        '<bpmn:startEvent id="s"><bpmn:documentation><![CDATA[<!ENTITY a "b">]]></bpmn:documentation></bpmn:startEvent>'
    )
    assert read_bpmn(document(body)).processes[0].executable


@pytest.mark.parametrize("what", ["bytes", "tags", "attributes"])
def test_a_flood_is_refused_by_its_size_before_it_is_parsed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """I88."""
    monkeypatch.setattr(xml, "MAX_BYTES", 20_000)
    monkeypatch.setattr(xml, "MAX_MARKUP", 1_000)
    flood = {
        "bytes": b"<x>" + b" " * 20_000,
        "tags": b"<x>" + b"<y/>" * 1_000,
        "attributes": b'<x y="===' + b"=" * 1_000,
    }
    with pytest.raises(InvalidModel) as refusal:
        read_bpmn(flood[what])
    assert [problem.code for problem in refusal.value.problems] == ["too_large"]  # type: ignore[attr-defined]


def _chain(length: int) -> bytes:
    tasks = "\n".join(f'<bpmn:task id="t{i}"/>' for i in range(length))
    flows = "\n".join(
        f'<bpmn:sequenceFlow id="f{i}" sourceRef="t{i}" targetRef="t{i + 1}"/>' for i in range(length - 1)
    )
    return document(f"{tasks}\n{flows}")


def _nested(depth: int) -> bytes:
    opening = "".join(f'<bpmn:subProcess id="n{i}"><bpmn:startEvent id="s{i}"/>' for i in range(depth))
    return document(opening + "</bpmn:subProcess>" * depth)


def _attributes(size: int) -> bytes:
    flood = " ".join(f'a{i}="{i}"' for i in range(size // 12))
    return document(f'<bpmn:startEvent id="s" {flood}/>')


LARGE = {
    "a chain of 10,000 nodes": (_chain, 10_000, "loaded"),
    "100 sub-processes in each other": (_nested, 100, "loaded"),
    "500 sub-processes in each other": (_nested, 500, "refused"),
    "220 KB of attributes": (_attributes, 220_000, "loaded"),
}
# The peak of the program itself: what getrusage says of a child begins with its parent's size.
_CHILD = """
import re, sys, time
from pathlib import Path
from gobpm_ray.bpmn.check import check_file
began = time.process_time()
answer = check_file(sys.argv[1])
spent = time.process_time() - began
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print("loaded" if answer["ok"] else "refused", spent, int(peak[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("what", LARGE)
def test_a_large_document_takes_less_than_two_seconds_and_300_megabytes(what: str, tmp_path: Path) -> None:
    """I88, in a process of its own, whose peak memory is its own."""
    make, size, expected = LARGE[what]
    file = tmp_path / "large.bpmn"
    file.write_bytes(make(size))
    root = str(Path(__file__).parents[3])
    run = subprocess.run(
        [sys.executable, "-c", _CHILD, str(file)], cwd=root, capture_output=True, text=True, check=True
    )
    outcome, seconds, megabytes = run.stdout.split()
    assert outcome == expected
    assert float(seconds) < 2
    assert int(megabytes) < 300


def test_the_chain_is_read_whole() -> None:
    process = read_bpmn(_chain(2_000)).processes[0]
    assert len(process.nodes) == 2_000
    assert process.nodes["t1000"].incoming == ("f999",)


def test_reading_needs_no_recursion() -> None:
    """I88: deep nesting within the limit does not use Python's stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(150)
    try:
        process = read_bpmn(_nested(200)).processes[0]
    finally:
        sys.setrecursionlimit(limit)
    assert process.nodes["n199"].scope == "n198"


def test_too_deep_is_said_in_words() -> None:
    with pytest.raises(InvalidModel, match="nested too deeply"):
        read_bpmn(HEAD.format(attributes="").encode() + b"<a>" * 300 + b"</a>" * 300)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0
