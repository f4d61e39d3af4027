"""Validation of session messages, as the orchestrator does it. Messages that it would refuse are
neither sent nor received."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, Callable, Dict, List, Mapping, Tuple

__all__ = ["misdirection_of", "problem_of"]

Check = Callable[[str, Any], str]  # returns why a member is invalid, or ""
Shape = Mapping[str, Tuple[bool, Check]]  # by key: whether it is required, and its check

_MESSAGE_ID = re.compile(
    r"(?i:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})|msg-[0-9]+(-[0-9A-Za-z]+)?"
)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?(?:Z|[+-][01]\d:?[0-5]\d|[+-]2[0-3]:?[0-5]\d)?"
    r"|(?:Z|[+-][01]\d:[0-5]\d|[+-]2[0-3]:[0-5]\d)))?"
    r"|(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:[.,]\d+)?(?:Z|[+-][01]\d[0-5]\d|[+-]2[0-3][0-5]\d)"
)


def _text(key: str, value: Any) -> str:
    return "" if isinstance(value, str) else f"{key} must be a string"


def _name(key: str, value: Any) -> str:
    return _text(key, value) or ("" if value.strip(" \t\n\r\f") else f"{key} must not be empty")


def _id(key: str, value: Any) -> str:
    wrong = _name(key, value)
    if not wrong and len(value.encode("utf-8", "replace")) > 200:
        wrong = f"{key} must not be longer than 200 bytes"
    if not wrong and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        wrong = f"{key} must not have control characters in it"
    return wrong


def _message_id(key: str, value: Any) -> str:
    wrong = _id(key, value)
    return wrong or ("" if _MESSAGE_ID.fullmatch(value) else f"{key} must be a UUID of version 4, or msg- and digits")


def _moment(key: str, value: Any) -> str:
    wrong = _text(key, value)
    if wrong:
        return wrong
    found = _TIME.fullmatch(value)
    parts = [int(part) for part in found.groups() if part is not None] if found else []
    try:
        if not parts:
            raise ValueError
        datetime(*parts) if len(parts) > 3 else date(*parts)  # type: ignore[arg-type]
    except ValueError:
        return f"{key} must be an ISO 8601 time, not \"{value[:40]}\""
    return ""


def _truth(key: str, value: Any) -> str:
    return "" if isinstance(value, bool) else f"{key} must be true or false"


def _object(key: str, value: Any) -> str:
    return "" if isinstance(value, Mapping) else f"{key} must be an object"


def _whole(least: int) -> Check:
    def check(key: str, value: Any) -> str:
        number = not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer())
        if not number or value < least:
            return f"{key} must be a whole number that is not less than {least}"
        return ""

    return check


def _percent(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
        return f"{key} must be a number from 0 to 100"
    return ""


def _word(*words: str) -> Check:
    def check(key: str, value: Any) -> str:
        listed = ", ".join(words[:-1]) + " or " + words[-1]
        return _text(key, value) or ("" if value in words else f"{key} must be one of {listed}, not \"{value[:80]}\"")

    return check


def _list(item: Check) -> Check:
    def check(key: str, value: Any) -> str:
        if not isinstance(value, (list, tuple)):
            return f"{key} must be a list"
        return next((f"{key}: item {i}: {why}" for i, each in enumerate(value) for why in [item(key, each)] if why), "")

    return check


def _inside(shape: Shape) -> Check:
    def check(key: str, value: Any) -> str:
        return _object(key, value) or problem_in(shape, value)

    return check


def _members(item: Check) -> Check:
    def check(key: str, value: Any) -> str:
        return _object(key, value) or next((why for name, each in value.items() for why in [item(name, each)] if why), "")

    return check


def problem_in(shape: Shape, document: Mapping[str, Any]) -> str:
    """Returns the first problem of a document, or ""."""
    for key, (needed, check) in shape.items():
        if key not in document:
            if needed:
                return f"{key} is missing"
        elif document[key] is None:
            return f"{key} must not be null"
        else:
            wrong = check(key, document[key])
            if wrong:
                return wrong
    return ""


_AGENT: Shape = {
    "agent_id": (True, _id), "agent_type": (True, _word("architect", "developer", "reviewer")), "instance_id": (False, _id),
}

_FILE: Shape = {"path": (True, _name), "reason": (True, _text), "sections": (False, _list(_text))}

_ATTEMPT: Shape = {"attempt_number": (True, _whole(0)), "outcome": (True, _text), "feedback": (True, _text)}

_TASK: Shape = {
    "task_id": (True, _id), "task_description": (True, _text),
    "context": (True, _inside({
        "specs": (True, _list(_inside(_FILE))), "reference_files": (True, _list(_inside(_FILE))),
        "previous_attempts": (False, _list(_inside(_ATTEMPT))),
    })),
    "constraints": (True, _inside({
        "scope": (True, _list(_name)), "testing_required": (True, _truth), "must_not_break": (False, _list(_text)),
        "style_guide": (False, _text),
    })),
    "acceptance_criteria": (True, _list(_text)),
}

_ASSIGNMENT: Shape = {
    "task": (True, _inside(_TASK)), "priority": (True, _word("high", "medium", "low")), "deadline": (False, _moment),
    "max_iterations": (False, _whole(1)),
    "dependencies": (False, _list(_inside({
        "task_id": (False, _id), "depends_on": (True, _list(_name)), "dependency_type": (True, _word("hard", "soft")),
    }))),
}

_PROGRESS: Shape = {
    "task_id": (True, _id), "progress_percent": (True, _percent), "current_step": (True, _text),
    "files_modified_so_far": (True, _list(_name)), "estimated_remaining": (False, _text), "blockers": (False, _list(_text)),
}

_CHANGE: Shape = {
    "path": (True, _name), "lines_added": (False, _whole(0)), "lines_removed": (False, _whole(0)),
    "description": (False, _text), "change_type": (True, _word("created", "modified", "deleted")),
}

_COMPLETION: Shape = {
    "task_id": (True, _id), "status": (True, _word("completed", "partial", "failed")),
    "changes": (True, _inside({
        "files_created": (True, _list(_inside(_CHANGE))), "files_modified": (True, _list(_inside(_CHANGE))),
        "files_deleted": (True, _list(_name)),
    })),
    "summary": (True, _text), "implementation_notes": (False, _text),
    "self_review": (True, _inside({
        "tests_run": (True, _truth), "tests_passed": (True, _truth), "type_check_passed": (True, _truth),
        "known_issues": (False, _list(_text)),
    })),
    "blockers": (False, _list(_text)), "suggestions": (False, _list(_text)),
}

_FOCUS = _word("security", "performance", "style", "logic", "error_handling", "test_coverage")

_REQUEST: Shape = {
    "review_id": (True, _id), "task_id": (True, _id),
    "scope": (True, _inside({
        "files": (True, _list(_name)), "focus_areas": (True, _list(_FOCUS)), "ignore_patterns": (False, _list(_name)),
    })),
    "criteria": (True, _inside({
        "must_pass_tests": (True, _truth), "must_pass_type_check": (True, _truth), "must_pass_lint": (False, _truth),
        "custom_checks": (False, _list(_inside({
            "name": (True, _name), "command": (True, _name), "expected_exit_code": (True, _whole(-(1 << 53))),
        }))),
    })),
    "context": (True, _inside({
        "task_description": (True, _text), "acceptance_criteria": (True, _list(_text)),
        "previous_reviews": (False, _list(_inside({
            "review_number": (True, _whole(0)), "verdict": (True, _text), "key_findings": (True, _list(_text)),
        }))),
    })),
}

_CHECKED = _inside({"passed": (True, _truth), "output": (False, _text), "error": (False, _text)})

_FINDING: Shape = {
    "finding_id": (True, _id), "severity": (True, _word("critical", "major", "minor", "suggestion")),
    "category": (True, _word("bug", "security", "performance", "style", "logic", "test")),
    "location": (True, _inside({
        "file": (True, _name), "line_start": (False, _whole(0)), "line_end": (False, _whole(0)), "code_snippet": (False, _text),
    })),
    "description": (True, _text), "rationale": (False, _text), "suggestion": (False, _text),
    "fixed_in_iteration": (False, _whole(1)),
}


def _finding(key: str, value: Any) -> str:
    wrong = _inside(_FINDING)(key, value)
    if not wrong:
        where = value["location"]
        if "line_start" in where and "line_end" in where and where["line_end"] < where["line_start"]:
            wrong = f"line_end must not be less than line_start, which is {where['line_start']}"
    return wrong


def _findings(key: str, value: Any) -> str:
    wrong = _list(_finding)(key, value)
    names: List[str] = [] if wrong else [each["finding_id"] for each in value]
    return wrong or ("finding_id stands twice" if len(set(names)) < len(names) else "")


_RESULT: Shape = {
    "review_id": (True, _id), "task_id": (True, _id),
    "verdict": (True, _word("approved", "changes_requested", "rejected")), "findings": (True, _findings),
    "verification": (True, _inside({
        "tests": (True, _CHECKED), "type_check": (True, _CHECKED), "lint": (False, _CHECKED), "custom": (False, _members(_CHECKED)),
    })),
    "summary": (True, _text),
    "required_changes": (False, _list(_inside({
        "change_id": (True, _id), "priority": (True, _word("must_fix", "should_fix", "consider")),
        "related_findings": (True, _list(_name)), "description": (True, _text),
    }))),
    "commendations": (False, _list(_text)),
}

_FEEDBACK: Shape = {
    "feedback_type": (True, _word("clarification", "correction", "guidance", "question")), "subject": (True, _text),
    "content": (True, _text), "action_required": (True, _truth), "related_task_id": (False, _id),
}

_ABORT: Shape = {
    "scope": (True, _word("task", "session")), "target_id": (True, _id), "reason": (True, _text), "cleanup_required": (True, _truth),
}

_PAYLOADS: Dict[str, Shape] = {
    "task_assignment": _ASSIGNMENT, "task_progress": _PROGRESS, "task_completion": _COMPLETION, "review_request": _REQUEST,
    "review_result": _RESULT, "feedback": _FEEDBACK, "status_query": {"task_id": (False, _id)}, "status_response": {},
    "abort": _ABORT, "acknowledgment": {},
}

_MESSAGE: Shape = {
    "message_id": (True, _message_id), "timestamp": (True, _moment), "from_agent": (True, _inside(_AGENT)),
    "to_agent": (True, _inside(_AGENT)), "message_type": (True, _word(*_PAYLOADS)), "correlation_id": (False, _id),
    "reply_to": (False, _id), "session_id": (False, _id), "sequence_number": (False, _whole(0)), "payload": (True, _object),
}

#: The agent types of the sender and the recipient, by message type; "" means any.
_DIRECTIONS: Dict[str, Tuple[str, str]] = {
    "task_assignment": ("architect", "developer"), "task_progress": ("developer", "architect"),
    "task_completion": ("developer", "architect"), "review_request": ("architect", "reviewer"),
    "review_result": ("reviewer", "architect"), "abort": ("architect", ""),
}


def problem_of(message: Mapping[str, Any]) -> str:
    """Returns the first problem of a message, or ""."""
    wrong = problem_in(_MESSAGE, message)
    return wrong or problem_in(_PAYLOADS[message["message_type"]], message["payload"])


def misdirection_of(message: Mapping[str, Any]) -> str:
    """Returns why the sender may not send such a message to the recipient, or ""."""
    kind = message["message_type"]
    speaker, hearer = _DIRECTIONS.get(kind, ("", ""))
    if speaker and message["from_agent"]["agent_type"] != speaker:
        return f"{kind} is for an agent of the type {speaker} to say"
    if hearer and message["to_agent"]["agent_type"] != hearer:
        return f"{kind} is said to an agent of the type {hearer}"
    return ""
