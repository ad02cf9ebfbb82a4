"""NKIBench evaluation harness: KDA's `verify.py`, with nkic as its backend."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KDA = Path(os.environ.get("KDA_ROOT", Path(__file__).parent)).resolve()
BENCH = Path(os.environ.get("NKIBENCH_ROOT", KDA.parent / "AccelOpt/NKIBench"))
sys.path += [str(KDA), str(Path(__file__).resolve().parents[1])]
import nkibench  # noqa: E402
from adapter import nkibench_case as kda  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
which = parser.add_mutually_exclusive_group()
which.add_argument("--op")
which.add_argument("--pilot", action="store_true")
parser.add_argument("--candidate", type=Path)
parser.add_argument("--build-baselines", action="store_true")
parser.add_argument("--fast", action="store_true")
parser.add_argument("--num-cores", type=int, choices=(1, 2, 4, 8), default=1)
parser.add_argument("--timeout", type=int, default=900)


def main() -> int:
    """Score the selected operators, print a line for each and their geometric mean."""
    options = parser.parse_args()
    if options.candidate and (not options.op or options.build_baselines):
        parser.error("--candidate needs --op, and no --build-baselines")

    quick = {"seeds": (0,), "orders": 0, "analyse": False, "sensitivity": False}

    def score(op: str) -> tuple[kda.NKIBenchCase, nkibench.Evaluation]:
        case = kda.resolve_case(BENCH, op, None, options.candidate)
        about, text = case.profile_kwargs(), f"{kda._NKI_IMPORT_PREAMBLE}\n{case.kernel_src()}"
        limits = {"seconds": options.timeout, "tolerance": about["tolerance"]["rtol"]}
        given = {"seeds": about["multi_seed_seeds"], **limits, **(quick if options.fast else {})}
        return case, nkibench.evaluate(text, about["initial_code"], case.name, **given)

    several = kda.PILOT_OPS if options.pilot else kda.load_summary(BENCH)
    path, passed, speedups = KDA / "baselines.json", [], []
    baselines = json.loads(path.read_text()) if path.exists() else {}
    with ThreadPoolExecutor(options.num_cores) as pool:
        for case, found in pool.map(score, [options.op] if options.op else several):
            passed.append(found.correct)
            latency = found.time_ns / 1e6 if found.correct else 0.0
            if options.build_baselines and latency:
                known = {"baseline_latency_ms": latency, "case_id": case.case_id, "op": case.op}
                baselines[case.name] = {**known, "kernel": case.kernel_path.name}
            base = baselines.get(case.name, {}).get("baseline_latency_ms")
            speedups += [base / latency] if base and latency else []
            words = f"{latency:.4f} ms" if latency else found.reason
            speed = f"{speedups[-1]:.3f}x" if base and latency else ""
            print("PASS" if latency else "FAIL", case.name, words, speed, flush=True)
    if options.build_baselines:
        path.write_text(json.dumps(baselines, indent=2, sort_keys=True))
    if speedups:
        print(f"geomean speedup {math.exp(sum(map(math.log, speedups)) / len(speedups)):.3f}x")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
