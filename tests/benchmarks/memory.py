"""How much memory this process holds."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def resident_mb() -> dict[str, float]:
    """Memory resident now, after collecting garbage, and at its highest; not on Linux: only that."""
    gc.collect()
    if not STATUS.exists():
        scale = 1e6 if sys.platform == "darwin" else 1e3
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
        return {"resident MB": peak, "peak MB": peak}
    held = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    named = {"resident MB": "VmRSS", "peak MB": "VmHWM"}
    return {name: int(held[field].split()[0]) * 1024 / 1e6 for name, field in named.items()}
