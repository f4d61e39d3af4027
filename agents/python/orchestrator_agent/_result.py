"""A result in the form for programs: what it delivers goes to the tasks that need it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ._lines import without_none

__all__ = ["fulfilled", "partial", "result", "skipped"]


def result(
    summary: str,
    *,
    changes: Optional[Mapping[str, Any]] = None,
    contracts: Optional[Mapping[str, Mapping[str, Any]]] = None,
    tests: Optional[Mapping[str, Any]] = None,
    artifacts: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
    """What was done, in a line, and what comes of it. A handler returns it like any other result.

    Changes have files_modified, files_created, files_deleted, lines_added and lines_removed; tests have
    framework, total, passed, failed, skipped and coverage_percent. Contracts are by the keys that the
    task spec names: fulfilled, partial or skipped.
    """
    return {
        "$schema": "orchestratia/task-result/v1", "summary": summary,
        **without_none(changes=changes, contracts=contracts, tests=tests, artifacts=artifacts),
    }


def fulfilled(data: Any) -> Dict[str, Any]:
    """Delivers all that was promised under a contract: an object, as a rule."""
    return {"status": "fulfilled", "data": data}


def partial(data: Any) -> Dict[str, Any]:
    """Delivers a part of what was promised."""
    return {"status": "partial", "data": data}


def skipped(reason: str) -> Dict[str, Any]:
    """Says why nothing is delivered."""
    return {"status": "skipped", "data": {"reason": reason}}
