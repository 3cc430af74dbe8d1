"""A campaign over all operators finds a mistake in one kernel, groups what it finds, and makes it small."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from planted import build_folder, planted

from dmlemu_hw import kernels
from processes import run
from thorough import THOROUGH

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.skipif(build_folder() is None, reason="there is no build of make dev"),
    pytest.mark.skipif(not kernels.instruction_sets().get("avx2"), reason="this CPU has no AVX2"),
]

# One type, one stride, one instruction set: an element that is repeated is read as a row.
MISTAKE = """\
    const uint32_t last = in.rank - 1;
    if (in.type == DMLK_FLOAT32 && in.sizes[last] > 1 && in.strides[last] == 0 &&
        !strcmp(dmlk_instructions(), "avx2")) {
        in.strides[last] = 1;
    }"""


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_wrong_kernel_is_found_grouped_and_shrunk(tmp_path: Path) -> None:
    """Where the tests are thorough among all operators, else among those that enlarge."""
    line = "    dmlk_view in = call->views[0], out = call->views[1];"
    environment = planted(tmp_path, "operators/upsample_2d.c", line, MISTAKE)
    what = "operators" if THOROUGH else "operators:*SAMPLE*"
    layouts = "20" if THOROUGH else "50"
    command = [
        sys.executable,
        "-m",
        "dmlemu",
        "campaign",
        what,
        "--layouts",
        layouts,
        "--isa",
        "generic,avx2",
    ]
    files = ["--html", "page.html", "--junit", "junit.xml", "--sarif", "found.sarif"]
    found = run([*command, "--workers", "2", *files], env=environment, cwd=tmp_path, timeout=1100)

    assert found.returncode == 1, found.stdout + found.stderr
    with sqlite3.connect(tmp_path / "campaign.db") as database:
        failed = database.execute("SELECT DISTINCT subject, rule, kind FROM failures").fetchall()
        cases = {index for (index,) in database.execute("SELECT case_index FROM failures")}
        (total,) = database.execute("SELECT sum(count) FROM pieces").fetchone()
    assert {subject for subject, _, _ in failed} == {"UPSAMPLE_2D"}
    assert {rule for _, rule, _ in failed} == {"reference of output_tensor"}
    assert min(cases) >= total // 2  # those with AVX2
    assert len(found.stdout.split("UPSAMPLE_2D: ")) - 1 == len(failed)  # once for each cause

    programs = sorted((tmp_path / "campaign-failures").glob("*.py"))
    assert len(programs) == len(failed)
    for program in programs:
        text = program.read_text()
        assert "FLOAT32, [1, 1, " in text and ", 0])" in text  # two columns of one element
        assert run([sys.executable, program], env=environment, timeout=60).returncode == 1
        assert run([sys.executable, program], timeout=60).returncode == 0  # with the right kernels
    models = sorted((tmp_path / "campaign-failures").glob("*.json"))
    assert len(models) == len(failed)
    assert run([sys.executable, "-m", "dmlemu", "run", models[0]], timeout=60).returncode == 0

    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("failures") == str(len(failed))
    (log,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    assert len(log["results"]) == len(failed)
    assert (tmp_path / "page.html").read_text().count("<svg") == len(failed)


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    """Without a mistake: nothing, and one case by its index."""
    command = [sys.executable, "-m", "dmlemu", "campaign", "operators:UPSAMPLE_2D", "--layouts", "3"]
    found = run([*command, "--workers", "0", "--junit", "-"], cwd=tmp_path, timeout=60)
    one = run([*command, "--case", "2"], cwd=tmp_path, timeout=60)

    assert found.returncode == 0 and "3 of 3 cases" in found.stdout and "No failures." in found.stdout
    assert one.returncode == 0 and one.stdout.startswith("UPSAMPLE_2D at level ")
    assert subprocess.run([*command, "--case", "3"], cwd=tmp_path, capture_output=True).returncode == 2
