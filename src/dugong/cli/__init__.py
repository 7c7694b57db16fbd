"""The command line: one file per verb, loaded when it is called.

``dugong --help`` imports click and this folder's group, and nothing else: numpy, scipy, numba and pyarrow wait until a
verb needs them.
"""

from dugong.cli.app import main

__all__ = ["main"]
