"""A step that ran long ago: copy what was recorded of this case and iteration to this step's outputs.

RECORDED_CHAIN names the folder of the recording, in which a case has `iterations/iter_0001/<role's folder>/<file>` at any depth.
"""

import os
import shutil
import sys
from pathlib import Path

recorded = Path(os.environ["RECORDED_CHAIN"])
prefix = "JUMAR_OUT_"
for variable, output in os.environ.items():
    if variable.startswith(prefix):
        name = Path(output).name
        found = sorted(recorded.glob(f"**/iterations/iter_*/*/{name}"))
        if len(found) != 1:
            sys.exit(f"{name} is recorded {len(found)} times below {recorded}; one is needed for {variable}")
        shutil.copyfile(found[0], output)
