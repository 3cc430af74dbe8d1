"""Runs one file of tests as it is, and notes at once what becomes of each, so that a crash loses nothing.

``tensorflow_one_file.py FILE NOTES SECONDS``: tests that NOTES names as begun are left out; one that takes
longer than SECONDS ends the process. Lines of NOTES: ``planned``, ``began``, ``passed``, ``skipped`` or
``failed``, the test, and why, with tabs between them.
"""

import faulthandler
import os
import runpy
import sys
import unittest

file, path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
sys.argv = [file]
sys.path[0] = os.path.dirname(os.path.abspath(file))
faulthandler.enable()
notes = open(path, "a+", buffering=1, encoding="utf-8")  # noqa: SIM115
notes.seek(0)
words = [line.split("\t") for line in notes]
begun = {line[1] for line in words if line[0] == "began"}
planned = {line[1] for line in words if line[0] == "planned"}


def note(kind, test, why=""):
    notes.write(f"{kind}\t{test}\t{' '.join(why.split())[-300:]}\n")


def names_of(loader, kind):
    names = load(loader, kind)
    for each in names:
        test = f"{kind.__qualname__}.{each}"
        if test not in planned:
            planned.add(test)
            note("planned", test)
    return [each for each in names if f"{kind.__qualname__}.{each}" not in begun]


def run_one(case, result=None):
    test = f"{type(case).__qualname__}.{case._testMethodName}"
    before = [len(each) for each in (result.failures, result.errors, result.skipped)]
    note("began", test)
    faulthandler.dump_traceback_later(seconds, exit=True)
    run(case, result)
    faulthandler.cancel_dump_traceback_later()
    failures, errors, skipped = (
        result.failures[before[0] :],
        result.errors[before[1] :],
        result.skipped[before[2] :],
    )
    if failures or errors:
        note("failed", test, [*failures, *errors][0][1])
    elif skipped:
        note("skipped", test, skipped[0][1])
    else:
        note("passed", test)
    return result


load, unittest.TestLoader.getTestCaseNames = unittest.TestLoader.getTestCaseNames, names_of
run, unittest.TestCase.run = unittest.TestCase.run, run_one
runpy.run_path(file, run_name="__main__")
