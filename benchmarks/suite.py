"""Every benchmark, each in a process of its own, into `results.json` and a plot beside it: what `make bench` runs.

`python -m benchmarks.suite` takes the quick numbers, some minutes; `--full` the real ones, an hour and more, on a quiet
machine; `--only wake,growth` some of them. A program that fails is reported with its last words, and the others run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import SIZES, end_in_order, say
from benchmarks.plot import growth_svg

HERE = Path(__file__).parent
PROGRAMS = (
    "wake",
    "growth",
    "starts",
    "latency",
    "accept",
    "footprint",
    "core",
    "profile_wake",
    "broadcast",
    "wide",
    "fanout",
    "mixed",
    "recovery",
    "soak",
    "peers",
)
EXTRA: dict[str, tuple[str, ...]] = {"mixed": ("--overload",)}
"""Part of every run but the smallest."""
FULL_ONLY: dict[str, tuple[str, ...]] = {"peers": ("--dbos",)}
LONGEST_S = 3 * 3_600


def run(program: str, size: str) -> dict[str, Any]:
    """What the program printed, or `error`."""
    extra = (() if size == "tiny" else EXTRA.get(program, ())) + (FULL_ONLY.get(program, ()) if size == "full" else ())
    command = [sys.executable, "-m", f"benchmarks.{program}", "--json", "--size", size, *extra]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE.parent)
    try:
        out, said = child.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {LONGEST_S} s"}
    finally:
        if child.poll() is None:
            # Asked, not killed: it has a store and a Ray to stop.
            child.terminate()
            child.wait(60)
    if child.returncode != 0:
        return {"error": (said.strip().splitlines() or ["no last words"])[-1]}
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_const", dest="size", const="full", help="the real numbers")
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--only", default=",".join(PROGRAMS), help="names with commas between")
    parser.add_argument("--into", type=Path, default=HERE, help="where results.json and growth.svg go")
    options = parser.parse_args()
    end_in_order()
    names = options.only.split(",")
    if unknown := sorted(set(names) - set(PROGRAMS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    file = options.into / "results.json"
    # What did not run now keeps its last figures; each tells its own size, machine and load.
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    failed = []
    for number, name in enumerate(names, 1):
        say(f"[{number}/{len(names)}] {name} ...")
        begin = time.perf_counter()
        result = run(name, options.size)
        if "error" in result:
            failed.append(name)
        results[name] = {"size": options.size, **result}
        say(f"    {result.get('error', 'done')} ({time.perf_counter() - begin:.0f} s)")
        # After each, for whoever stops it in between.
        file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if "by_population" in results.get("growth", {}):
        (options.into / "growth.svg").write_text(growth_svg(results["growth"]), encoding="utf-8")
    say(f"{file}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
