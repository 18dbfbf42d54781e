"""Print pip constraints that hold every dependency of pyproject.toml, extras included, at exactly its minimum."""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
minimums: dict[str, str] = {}
for requirement in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]:
    if stated := re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement):
        name, version = stated.groups()
        if minimums.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml states two minimums of {name}: {minimums[name]} and {version}")
    elif "==" not in requirement:
        raise SystemExit(f"pyproject.toml states no minimum for {requirement!r}")
for name, version in sorted(minimums.items()):
    print(f"{name}=={version}")
