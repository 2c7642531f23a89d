"""What a benchmark says of the machine it runs on."""

import platform
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np


def describe() -> str:
    """Returns the CPU's name, whether it has AVX-512, and versions, in one line."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        entries = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        name = next((value.strip() for key, _, value in entries if key.strip() == "model name"), name)
    wide = llvmlite.binding.get_host_cpu_features().get("avx512f", False)
    return (
        f"{name} ({llvmlite.binding.get_host_cpu_name()}), {'with' if wide else 'without'} AVX-512; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    )
