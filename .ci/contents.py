"""Check that the wheel and the sdist in a folder hold the files of the checkout that they should, and no others.

python .ci/contents.py DIST, in the root of the checkout.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

[wheel] = Path(sys.argv[1]).glob("*.whl")
[sdist] = Path(sys.argv[1]).glob("*.tar.gz")
package, version, *_ = wheel.name.split("-")


def files(*folders: str) -> set[str]:
    """The files of folders of the checkout, without what running and building leaves there."""
    left = {"__pycache__", "_build"}
    found = (path for folder in folders for path in Path(folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not left & set(path.parts)}


def check(archive: Path, found: set[str], expected: set[str]) -> None:
    """End the process with a message if the files are not those expected."""
    if found != expected:
        sys.exit(f"{archive.name}: too much {sorted(found - expected)}, missing {sorted(expected - found)}")
    print(f"{archive.name}: {len(found)} files, {archive.stat().st_size / 1024:.0f} KiB")


metadata = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
with zipfile.ZipFile(wheel) as opened:
    found = {name for name in opened.namelist() if not name.endswith("/")}
check(wheel, found, files(package) | {f"{package}-{version}.dist-info/{name}" for name in metadata})

whole = files(package, "tests", "examples") | {"README.md", "LICENSE", "pyproject.toml", ".gitignore", "PKG-INFO"}
with tarfile.open(sdist) as opened:
    found = {member.name.removeprefix(f"{package}-{version}/") for member in opened if member.isfile()}
# The pages are what git knows of docs/: the build of the site writes others beside them.
check(sdist, {name for name in found if not name.startswith("docs/")}, whole)
pages = {name for name in found if name.startswith("docs/")}
if "docs/index.md" not in pages or not pages <= files("docs"):
    sys.exit(f"{sdist.name}: not the pages of docs/: {sorted(pages - files('docs'))}")
