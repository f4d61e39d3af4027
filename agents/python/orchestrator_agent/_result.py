"""Structured results. Their contracts are delivered to the tasks that depend on them."""

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
    """Returns a structured result with a one-line summary. A handler returns it like any other
    result.

    changes may have files_modified, files_created, files_deleted, lines_added and lines_removed;
    tests may have framework, total, passed, failed, skipped and coverage_percent. contracts maps
    the keys that the task spec names to fulfilled, partial or skipped.
    """
    return {
        "$schema": "orchestratia/task-result/v1", "summary": summary,
        **without_none(changes=changes, contracts=contracts, tests=tests, artifacts=artifacts),
    }


def fulfilled(data: Any) -> Dict[str, Any]:
    """Returns a contract that is delivered completely. The data is usually an object."""
    return {"status": "fulfilled", "data": data}


def partial(data: Any) -> Dict[str, Any]:
    """Returns a contract that is delivered in part."""
    return {"status": "partial", "data": data}


def skipped(reason: str) -> Dict[str, Any]:
    """Returns a contract that is not delivered, with the reason."""
    return {"status": "skipped", "data": {"reason": reason}}
