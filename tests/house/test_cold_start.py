"""What a first step compiles: numbers of kernels and specialisations are held, since seconds depend on the machine.

`python -m benchmarks.cold_start` prints the seconds. A number that falls may be lowered here; one that rises makes
every newcomer wait: see which signature is new (a readonly or strided array, another integer, a slice assigned to a
slice).
"""

from pathlib import Path

import pytest

# Kernels and specialisations, by id. Ordinary runs count those of one id.
MOST = {
    "FedArms-v0": (14, 15),
    "FedLinear-v0": (19, 19),
    "FedExposure-v0": (23, 25),
    "FedGaussian-v0": (7, 8),
    "FedProcurement-v0": (13, 18),
}


@pytest.mark.parametrize(
    "env_id",
    [
        pytest.param("FedProcurement-v0", marks=pytest.mark.ci),
        *(pytest.param(one, marks=pytest.mark.slow) for one in MOST if one != "FedProcurement-v0"),
    ],
)
def test_a_first_step_compiles_few_kernels(env_id, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.cold_start import first_step

    # Numbers are the same without optimisation, which takes less time.
    found = first_step(env_id, NUMBA_OPT="0")
    compiled = [f"{name}{types}" for name, types in sorted(found["signatures"])]
    kernels, specialisations = MOST[env_id]
    assert len(found["seconds"]) <= kernels, compiled
    assert len(compiled) <= specialisations, compiled
    # Numba's own messages on slices of unlike shapes, as texts, would be among these.
    assert not [name for name in compiled if "unicode" in name], compiled
