"""Files that a document imports: opened for what it refers to, if they lie beside it, and never for anything else.

No address is followed and no way up or out of the importing file's folder; what an imported file imports stays closed.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Problem

MAX_IMPORTS = 16
JSON_SCHEMA = "http://json-schema.org/"
"""How the `importType` of a JSON schema begins; `https` and what follows (draft, version) do not matter."""


def open_imports(root: etree._Element, folder: Path | None, warnings: list[Problem]) -> list[etree._Element]:
    """The roots of the BPMN files that the document imports; why one was not opened stands in `warnings`."""
    roots: list[etree._Element] = []
    for element in root.findall(f"{{{xml.MODEL}}}import"):
        if xml.attribute(element, "importType") != xml.MODEL:
            continue  # data types, services and decisions: documentation to a process
        location = xml.attribute(element, "location")
        if len(roots) >= MAX_IMPORTS:
            refusal: str | etree._Element = f"at most {MAX_IMPORTS} files are opened"
        else:
            refusal = _opened(location, folder)
        if isinstance(refusal, str):
            message = f"import of '{location}' (line {xml.line(element)}) is not opened: {refusal}"
            warnings.append(Problem("import", "", " ".join(message.split()), xml.line(element)))
        else:
            roots.append(refusal)
    return roots


def open_schemas(root: etree._Element, folder: Path | None, warnings: list[Problem]) -> dict[str, object]:
    """Namespace -> the JSON schema that the document imports for it."""
    found: dict[str, object] = {}
    for element in root.findall(f"{{{xml.MODEL}}}import"):
        kind = xml.attribute(element, "importType").replace("https://", "http://", 1)
        if not kind.startswith(JSON_SCHEMA):
            continue
        location = xml.attribute(element, "location")
        data = _content(location, folder) if len(found) < MAX_IMPORTS else f"at most {MAX_IMPORTS} files are opened"
        if isinstance(data, bytes):
            try:
                found[xml.attribute(element, "namespace")] = json.loads(data)
                continue
            except (ValueError, RecursionError) as broken:
                data = f"it is not JSON: {broken}"
        message = f"import of '{location}' (line {xml.line(element)}) is not opened: {data}"
        warnings.append(Problem("import", "", " ".join(message.split()), xml.line(element)))
    return found


def _opened(location: str, folder: Path | None) -> etree._Element | str:
    """The file's root, or why not."""
    data = _content(location, folder)
    if isinstance(data, str):
        return data
    try:
        root, _ = xml.parse(data, Path(unquote(urlsplit(location).path)).name)
    except (ValueError, RuntimeError) as failure:
        return str(failure)
    except InvalidModel as refused:
        return str(refused)
    return root if xml.local(root) == "definitions" and xml.is_bpmn(root) else "it is not BPMN"


def _content(location: str, folder: Path | None) -> bytes | str:
    """The bytes of a file beside the document, or why it is not opened."""
    if folder is None:
        return "the document is not read from a file"
    address = urlsplit(location)
    name = unquote(address.path)
    if address.scheme or address.netloc or not name or "\0" in name:
        return "it is no file beside this one"
    try:
        path = (folder / name).resolve()
        if Path(name).is_absolute() or not path.is_relative_to(folder.resolve()):
            return "it leads out of this file's folder"
        if not path.is_file():
            return "it is not there"
        with path.open("rb") as file:
            return file.read(xml.MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as failure:
        return str(getattr(failure, "strerror", None) or failure)
