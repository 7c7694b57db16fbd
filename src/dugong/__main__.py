"""`python -m dugong` is the command `dugong`."""

from __future__ import annotations

from dugong.cli import main

if __name__ == "__main__":
    main()
