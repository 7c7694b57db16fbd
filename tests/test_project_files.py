"""The files around the code say the same as the code: changelog, workflows, hooks, checks."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob(".github/workflows/*.yml")
}


def steps(workflow: str) -> list[dict[str, str]]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job["steps"]]


def verbs() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*?## ", makefile, flags=re.MULTILINE))


# --- changelog -----------------------------------------------------------------------------------------------------
def test_the_changelog_has_versions_newest_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## \[(\d+)\.(\d+)\.(\d+)\] - (\S+)$", text, flags=re.MULTILINE)
    assert len(found) == text.count("\n## ")
    assert len(found) >= 2
    numbers = [tuple(map(int, one[:3])) for one in found]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [one[3] for one in found]
    if days[0] == "unreleased":
        days = days[1:]
    assert [date.fromisoformat(day) for day in days] == sorted(map(date.fromisoformat, days), reverse=True)


def test_the_changelog_uses_the_usual_headings() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


# --- workflows and hooks -------------------------------------------------------------------------------------------
def test_the_checks_run_on_every_version_that_is_declared() -> None:
    prefix = "Programming Language :: Python :: 3."
    declared = [one.removeprefix(prefix[:-2]) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    tested = WORKFLOWS["checks"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested[: len(declared)] == declared  # one that is not declared yet may be tried
    assert PROJECT["requires-python"] == f">={declared[0]}"
    lowest = [step.get("with", {}) for step in WORKFLOWS["checks"]["jobs"]["lowest"]["steps"]]
    assert [one["python-version"] for one in lowest if "python-version" in one] == declared[:1]


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_actions_are_pinned_and_verbs_exist(workflow: str) -> None:
    uses = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in uses)
    calls = [step["run"] for step in steps(workflow) if step.get("run", "").startswith("make ")]
    assert calls
    assert {verb for call in calls for verb in call.split()[1:]} <= verbs()


def test_only_the_publishing_job_may_ask_for_a_token() -> None:
    rights = {
        (name, job): found["permissions"] for name, flow in WORKFLOWS.items() for job, found in flow["jobs"].items()
    }
    assert [flow["permissions"] for flow in WORKFLOWS.values()] == [{}] * len(WORKFLOWS)
    assert {place for place, right in rights.items() if "write" in right.values()} == {("release", "publish")}
    assert not re.search(
        r"password|secrets\.", (ROOT / ".github" / "workflows" / "release.yml").read_text().split("on:")[1]
    )


def test_hooks_are_local_and_the_checks_call_verbs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    called = set(
        re.findall(r"^make ([a-z-]+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert {"lint", "test", "docs", "smoke"} <= called <= verbs()
