"""Use the installed package as its metadata, its public names and one small model promise."""

from importlib import metadata, resources
from pathlib import Path

import numpy as np

import bayesgen

assert "site-packages" in Path(bayesgen.__file__).parts, bayesgen.__file__
assert bayesgen.__version__ == metadata.version("bayesgen")
assert resources.files("bayesgen").joinpath("py.typed").is_file()
assert any(path.name == "LICENSE" for path in metadata.files("bayesgen") or ())
for name in bayesgen.__all__:
    getattr(bayesgen, name)
model = bayesgen.GaussianNB().fit([[0.0], [1.0], [4.0], [6.0]], [0, 0, 1, 1])
assert np.allclose(model.predict_proba([[0.5], [5.0]]).sum(axis=1), 1)
print(f"bayesgen {bayesgen.__version__}: {len(bayesgen.__all__)} public names")
