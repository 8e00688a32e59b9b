"""``make quality``: how well the learned cheap judge tracks the expensive one, on recorded judgements, beside the floors.

``python bench/quality DIR [SEEDS]`` with the folder of data. Everything is out of fold by group, mean and standard deviation over
the seeds; the intervals are of the differences to a floor in pairs, over resampled groups (95 %), averaged over the seeds. What
was tried besides stands in docs/concepts/learned-judge.md.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is loaded: small matrices are slower with threads


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    importlib.import_module("measuring").report(folder, seeds=int(sys.argv[2]) if len(sys.argv) > 2 else 5)


if __name__ == "__main__":
    main()
