"""The core reads no clock, draws no random number and knows neither Ray nor Redis."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_core_imports_nothing_of_the_outside():
    """Design section 8; in a fresh interpreter, where no other test has imported anything."""
    script = (
        "import sys; before = set(sys.modules)\n"
        "from gobpm_ray.core import advance, projection, residency, starts\n"
        "outside = {'ray', 'redis', 'hiredis', 'asyncio', 'lxml', 'socket', 'lark'}\n"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} & outside))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_one_program_is_shared_by_instances_that_do_not_see_each_other():
    from gobpm_ray.core.advance import advance
    from gobpm_ray.core.program import compile_process
    from gobpm_ray.core.state import InstanceState
    from gobpm_ray.core.step import Trigger
    from gobpm_ray.model.builder import ProcessBuilder

    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    program = compile_process(process.build())
    values: dict[str, object] = {"x": 1}
    one = advance(program, InstanceState("a", "p", 1), [Trigger("1", "start", values=values)], 0)
    two = advance(program, InstanceState("b", "p", 1), [Trigger("2", "start", values=values)], 0)
    advance(program, one.state, [Trigger("3", "set", values={"x": 2})], 0)
    assert two.state.scopes["0"].variables == values == {"x": 1}
