"""A build of the kernels with a mistake, beside the one of this environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from dmlemu_hw import _kernels

ROOT = Path(__file__).resolve().parents[3]
_LIBRARY = "_kernels.abi3.so"

# The package of this folder, not the editable one of the environment.
_SITE = """\
import sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__name__.startswith("ScikitBuild")]
"""


def build_folder() -> Path | None:
    """Where ``make dev`` has built the kernels, with their objects."""
    return next((each.parent for each in ROOT.glob("build/cp*/build.ninja")), None)


def planted(folder: Path, source: str, after: str, mistake: str) -> dict[str, str]:
    """The environment of processes whose kernels have ``mistake`` in ``source``, after the line ``after``.

    Only that source is compiled, in all its builds, and the library linked.
    """
    build = build_folder()
    assert build is not None
    text = (ROOT / "kernels_c" / source).read_text()
    assert text.count(after) == 1
    changed = folder / Path(source).name
    changed.write_text(text.replace(after, f"{after}\n{mistake}"))
    package = folder / "packages"
    shutil.copytree(ROOT / "emulator" / "dmlemu_hw", package / "dmlemu_hw")
    for extension in Path(_kernels.__file__).parent.glob("*.so"):
        shutil.copy(extension, package / "dmlemu_hw")
    (package / "dmlemu").symlink_to(ROOT / "runtime" / "dmlemu")
    (package / "sitecustomize.py").write_text(_SITE)
    ninja = Path(sys.executable).with_name("ninja")
    commands = subprocess.run(
        [ninja, "-t", "commands", _LIBRARY], cwd=build, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    objects: dict[str, str] = {}
    for command in commands:
        words = shlex.split(command)
        if words and words[-1].endswith(f"/{source}"):
            name = words[words.index("-o") + 1]
            objects[name] = str(folder / f"{len(objects)}.o")
            words = [objects.get(word, word) for word in words[:-1]] + [str(changed)]
            subprocess.run(words, cwd=build, check=True)
    assert objects
    library = package / "dmlemu_hw" / _LIBRARY
    link = [objects.get(word, word) for word in shlex.split(commands[-1])]
    link = [str(library) if word == _LIBRARY else word for word in link if word not in (":", "&&")]
    subprocess.run(link, cwd=build, check=True)
    return {**os.environ, "PYTHONPATH": str(package)}
