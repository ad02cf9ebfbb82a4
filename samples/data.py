"""Write a sample's inputs and expected outputs: `python -m samples.data FOLDER TO`.

TO/inputs.npz holds arrays by parameter, TO/expected.npz the NumPy reference by output.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from samples.run import SAMPLES, load_reference


def write(folder: Path, to: Path) -> None:
    """Write both files of the sample in `folder` to the folder `to`."""
    reference = load_reference(folder)
    inputs = reference.inputs()
    outputs = reference.reference(**inputs)
    to.mkdir(parents=True, exist_ok=True)
    np.savez(to / "inputs.npz", **inputs)
    np.savez(to / "expected.npz", **{f"output_{i}": out for i, out in enumerate(outputs)})


if __name__ == "__main__":
    write(SAMPLES / sys.argv[1], Path(sys.argv[2]))
