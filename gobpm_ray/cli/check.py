"""`check`: is this file one that the engine can execute, and if not, what in it?"""

from __future__ import annotations

from gobpm_ray.cli.options import Files, Json
from gobpm_ray.cli.output import INPUT, OK, Output, finish


def check(files: Files, json: Json = False) -> None:
    """Say of each file what it holds, what forbids to run it, and what may surprise."""

    def body(output: Output) -> int:
        from gobpm_ray.bpmn.check import check_files

        code = OK
        # All of them at once: a process that one of them calls may be in another.
        for answer in check_files(files):
            output.row(answer)
            if not output.json:
                from gobpm_ray.cli.render import show_check

                show_check(answer)
            if not answer["ok"]:
                code = INPUT
        return code

    finish(json, body)
