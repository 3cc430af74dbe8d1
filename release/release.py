"""Everything of a release but the upload: ``make release URL=https://...`` (docs/guide/release.md).

Refuses a working tree with changes, and a changelog without the version.  Builds the sdist and all wheels,
checks each where it should run, builds them a second time and compares, and says what is left to do.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]


def problems(version: str, changelog: str, citation: str, changes: str) -> list[str]:
    """Why there can be no release of this version; empty: nothing stands against it.

    ``changes``: what ``git status --porcelain`` prints.
    """
    found = []
    if changes:
        found.append(f"the working tree has changes: {changes.splitlines()[0].strip()}")
    heading = re.search(rf"(?m)^## {re.escape(version)} - (\d{{4}}-\d\d-\d\d)$", changelog)
    if heading is None:
        found.append(f"CHANGELOG.md has no heading '## {version} - {date.today()}'")
    unreleased = re.search(r"(?ms)^## Unreleased\n(.*?)(?=^## |\Z)", changelog)
    if unreleased and unreleased[1].strip():
        found.append("CHANGELOG.md has changes under 'Unreleased': move them under the version")
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff does not have 'version: {version}'")
    elif heading and f"\ndate-released: {heading[1]}\n" not in citation:
        found.append(f"CITATION.cff does not have 'date-released: {heading[1]}', the day in CHANGELOG.md")
    return found


def own_version() -> str:
    """That of pyproject.toml."""
    found = re.search(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text())
    assert found is not None
    return found[1]


def output(*command: str) -> str:
    """What a program prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Makes the release, or says what stands against it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", default="", help="where the repository can be read: the package's Project-URLs"
    )
    parser.add_argument("--dry-run", action="store_true", help="only says what stands against a release")
    parsed = parser.parse_args()
    version = own_version()
    found = problems(
        version,
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        (ROOT / "CITATION.cff").read_text(encoding="utf-8"),
        output("git", "status", "--porcelain"),
    )
    if urlsplit(parsed.url).scheme != "https":
        found.append("the address of the repository is missing: make release URL=https://...")
    if found:
        sys.exit(f"no release of {version}:\n- " + "\n- ".join(found))
    if parsed.dry_run:
        return
    build = [sys.executable, "release/wheels.py", "--url", parsed.url]
    sums = ROOT / "dist" / "SHA256SUMS"
    subprocess.run(build, cwd=ROOT, check=True)
    first = sums.read_text()
    subprocess.run([sys.executable, "tests/wheels/check.py"], cwd=ROOT, check=True)
    subprocess.run([*build, "--again"], cwd=ROOT, check=True)
    if sums.read_text() != first:
        sys.exit("built twice, the files differ: compare dist/SHA256SUMS of both")
    print(f"dist/ holds release {version}, built twice with the same bytes. What is left to do:")
    print(f"  git tag -a v{version} -m 'dmlemu {version}' && git push origin v{version}")
    print("  twine upload dist/*.whl dist/*.tar.gz")


if __name__ == "__main__":
    main()
