"""No article is longer than fits on a telephone."""

import re
import sys
from pathlib import Path

MOST = 52

parts = re.split(r"^## (.+)\n", Path(sys.argv[1]).read_text(), flags=re.MULTILINE)[1:]
long = [
    f"{title}: {len(body.split())} words" for title, body in zip(parts[::2], parts[1::2], strict=True) if len(body.split()) > MOST
]
if long:
    sys.exit(f"more than {MOST} words in {', '.join(long)}")
