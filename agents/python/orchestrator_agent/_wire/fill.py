"""Default values in the documents of a session."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

__all__ = ["filled_assignment", "filled_completion", "filled_request", "filled_result", "said_plainly", "touched"]


def said_plainly(document: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns a document without members that are None: sessions do not accept null."""
    return {key: _plainly(value) for key, value in document.items() if value is not None}


def _plainly(value: Any) -> Any:
    if isinstance(value, Mapping):
        return said_plainly(value)
    if isinstance(value, (list, tuple)):
        return [_plainly(item) for item in value]
    return value


def _filled(given: Mapping[str, Any], default: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns a document with defaults for missing members, also in nested objects."""
    document = said_plainly(given)
    for key, value in default.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            document[key] = _filled(document[key], value)
        elif key not in document:
            document[key] = _filled({}, value) if isinstance(value, dict) else list(value) if isinstance(value, list) else value
    return document


_ASSIGNMENT = {
    "task": {
        "task_description": "",
        "context": {"specs": [], "reference_files": []},
        "constraints": {"scope": [], "testing_required": False, "must_not_break": []},
        "acceptance_criteria": [],
    },
    "priority": "medium",
}

_COMPLETION = {
    "status": "completed",
    "changes": {"files_created": [], "files_modified": [], "files_deleted": []},
    "summary": "",
    "self_review": {"tests_run": False, "tests_passed": False, "type_check_passed": False},
}

_REQUEST = {
    "scope": {"files": [], "focus_areas": []},
    "criteria": {"must_pass_tests": False, "must_pass_type_check": False},
    "context": {"task_description": "", "acceptance_criteria": []},
}

_RESULT = {
    "findings": [],
    "verification": {"tests": {"passed": False}, "type_check": {"passed": False}, "custom": {}},
    "summary": "",
}


def filled_assignment(given: Mapping[str, Any]) -> Dict[str, Any]:
    return _filled(given, _ASSIGNMENT)


def filled_completion(given: Mapping[str, Any], task: str) -> Dict[str, Any]:
    """Fills in a completion. It also sets the change_type of each file that has none."""
    document = _filled(given, {"task_id": task, **_COMPLETION})
    document["status"] = document["status"] or "completed"
    if isinstance(document["changes"], dict):
        for kind in ("created", "modified"):
            files = document["changes"]["files_" + kind]
            if isinstance(files, list):
                document["changes"]["files_" + kind] = [
                    {"change_type": kind, **file} if isinstance(file, dict) else file for file in files
                ]
    return document


def filled_request(given: Mapping[str, Any]) -> Dict[str, Any]:
    return _filled(given, _REQUEST)


def filled_result(given: Mapping[str, Any], review: str, task: str) -> Dict[str, Any]:
    return _filled(given, {"review_id": review, "task_id": task, **_RESULT})


def touched(changes: Mapping[str, Any]) -> List[str]:
    """Returns the paths of all files in the changes of a completion."""
    made = [file["path"] for key in ("files_created", "files_modified") for file in changes.get(key, [])]
    return made + list(changes.get("files_deleted", []))
