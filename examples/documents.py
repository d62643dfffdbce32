"""A nightly document pipeline: each document is read by a Ray task of its own, the doubtful ones by a person.

    python -m examples.documents [--documents 6] [--cancel]

A batch of scans is fanned out: one round per document, side by side. Reading one is heavy, so it runs as a Ray task
that asks for a CPU, on whatever node has one, and is tried again when it fails. What it is not sure of waits for a
person: for a minute or for a week, without an actor. What was read is filed; if somebody stops the batch in the end,
everything that was filed is taken out again, each document by the handler of its own filing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from gobpm_ray import Engine, Operations, ProcessBuilder
from gobpm_ray.model.elements import Process

PROCESS = "nightly-documents"
SURE = 0.8
PATIENCE_S = 120.0


def pipeline() -> Process:
    night = ProcessBuilder(PROCESS, name="Documents of the night")
    batch = night.start("night").service_task("list", topic="list scans", name="List the scans").transaction("batch")
    with batch as inside:
        each = (
            inside.start("begun")
            # Variables of the round: without them, what one round reads would be every round's.
            .sub_process("each", name="Each document", inputs={"words": "=0", "confidence": "=0", "place": "=null"})
            .multi_instance(collection="documents", item="document", output="filed", output_item="place")
        )
        with each as one:
            one.start("taken").service_task(
                "read",
                topic="read scan",
                name="Read the scan",
                idempotent=True,
                retries="exponential(3, PT5S, cap=PT1M, jitter=0.2)",
                timeout="PT10M",
                ray={"num_cpus": 1},
                inputs={"folder": "=folder", "document": "=document"},
                # The text of a scan is large and needed by nobody here: only what is mapped becomes a variable.
                outputs={"words": "=words", "confidence": "=confidence"},
            ).exclusive("sure")
            one.at("sure").when(f"confidence < {SURE}").user_task(
                "check", name="Check by hand", inputs={"document": "=document", "confidence": "=confidence"}
            ).to("file")
            one.at("sure").otherwise().service_task(
                "file",
                topic="file document",
                name="File it",
                idempotent=True,
                inputs={"folder": "=folder", "document": "=document", "words": "=words"},
                outputs={"place": "=place"},
            ).end("in place")
            one.boundary("file", compensate=True).service_task(
                "take_out", topic="take document out", inputs={"folder": "=folder", "document": "=document"}
            )
        each.user_task("release", name="Release the batch").exclusive("released")
        inside.at("released").when("release").end("all filed")
        inside.at("released").otherwise().end("stopped", cancel=True)
    batch.end("done")
    night.boundary("batch", cancel=True).end("taken out")
    return night.build()


# --- what is done: functions that travel to wherever they run


def list_scans(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"documents": sorted(scan.name for scan in (Path(inputs["folder"]) / "scans").iterdir())}


def read_scan(inputs: dict[str, Any]) -> dict[str, Any]:
    """Where a real one would run its model: many words, of which some cannot be read."""
    text = (Path(inputs["folder"]) / "scans" / inputs["document"]).read_text()
    words = text.split()
    sure = sum(word.isalpha() for _ in range(50) for word in words) / max(1, 50 * len(words))
    return {"text": text, "words": len(words), "confidence": round(sure, 2)}


def file_document(inputs: dict[str, Any]) -> dict[str, Any]:
    place = Path(inputs["folder"]) / "archive" / inputs["document"]
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"{inputs['words']} words\n")
    return {"place": place.name}


def take_document_out(inputs: dict[str, Any]) -> None:
    (Path(inputs["folder"]) / "archive" / inputs["document"]).unlink(missing_ok=True)


WORK = {
    "list scans": list_scans,
    "read scan": read_scan,
    "file document": file_document,
    "take document out": take_document_out,
}


# --- a night


def scans(folder: Path, documents: int) -> None:
    """Every third one is hard to read."""
    (folder / "scans").mkdir(parents=True)
    for number in range(documents):
        smudge = "w?rd w0rd " if number % 3 == 0 else "word word "
        (folder / "scans" / f"scan-{number:03d}.txt").write_text("clear words here " + smudge * (100 + number))


def play(engine: Operations, folder: Path, *, release: bool) -> str:
    """One night, with somebody who checks what is doubtful and then releases the batch, or stops it; the instance."""
    for topic, work in WORK.items():
        engine.register(topic, work)
    engine.deploy(pipeline())
    night = engine.start(PROCESS, {"folder": str(folder)}).instance_id
    until = time.monotonic() + PATIENCE_S
    while True:
        for task in engine.tasks(instance_id=night, node="check"):
            engine.complete(task.id, {"checked": True}, user="ann")
        if waiting := engine.tasks(instance_id=night, node="release"):
            engine.complete(waiting[0].id, {"release": release}, user="ann")
            break
        if engine.incidents(night) or time.monotonic() > until:
            raise SystemExit(f"the night is stuck: {engine.inspect(night)}")
        time.sleep(0.05)
    engine.wait(night, PATIENCE_S)
    return night


def main() -> None:
    options = argparse.ArgumentParser(description="A nightly document pipeline.")
    options.add_argument("--documents", type=int, default=6, help="how many scans there are")
    options.add_argument(
        "--cancel", action="store_true", help="stop the batch in the end: everything is taken out again"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="gobpm-night-") as top, Engine.open(home=Path(top) / "home") as engine:
        folder = Path(top) / "night"
        scans(folder, chosen.documents)
        night = play(engine, folder, release=not chosen.cancel)
        view = engine.inspect(night)
        filed = sorted(path.name for path in (folder / "archive").iterdir())
        checked = view.trace.count("check")
        print(f"{view.state}: {chosen.documents} scans, {checked} checked by hand, {len(filed)} in the archive")


if __name__ == "__main__":
    main()
