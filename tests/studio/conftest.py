from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio_client import Client, Running, write_small_project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_project(tmp_path_factory.mktemp("studio") / "small")


@pytest.fixture(scope="session")
def running(project: Path) -> Iterator[Running]:
    """One studio for all tests: they may change labels and sources, but leave it usable and without corrections."""
    found = Running(project, project.parent)
    yield found
    found.kill()


@pytest.fixture(scope="session")
def client(running: Running) -> Client:
    found = running.enter()
    assert found.fitted()["run"]["state"] == "idle"
    return found
