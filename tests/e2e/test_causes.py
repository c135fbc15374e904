# SPDX-License-Identifier: GPL-2.0-only
"""docs/causes.md says of each code how it was tested: as the tests are, not as they once were."""
import sys

from harness import ROOT

BESIDE_OTHERS = True


def test_the_table_of_tests_is_what_the_tests_are(ctx):
    done = ctx.run(sys.executable, ROOT / "tests" / "proof" / "causes.py", "--check")
    assert done.status == 0, done.out + done.err
