"""The tests of the package: python3 -m unittest, in the folder above."""

import os

os.environ.pop("ORC_AGENT_ID", None)  # tests have no identity
