"""The operations of the orchestrator, one method each."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union, cast

from .._wire.documents import (
    Acked, Agent, AutoAssigned, Beat, Dependency, Link, Mail, MailList, Match, Note, Option, Plan, Result, Server,
    Task, UserAnswer,
)
from .._wire.lines import without_none
from .._wire.taskdocuments import TaskTrace

__all__ = ["Verbs"]

Priority = Union[int, float, str]


class Verbs:
    """The requests of a connection. Each method waits for the answer, and raises Refused if the
    request is refused."""

    def ask(
        self, operation: str, payload: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Sends a request for any operation."""
        raise NotImplementedError

    def _one(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or {}

    def _list(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or []

    # Tasks.

    def submit_task(
        self,
        type: str,
        name: str,
        *,
        description: Optional[str] = None,
        payload: Optional[Mapping[str, Any]] = None,
        required_role: Optional[str] = None,
        required_capabilities: Optional[List[str]] = None,
        dependencies: Optional[List[Union[str, Dependency]]] = None,
        priority: Optional[Priority] = None,
        structured_spec: Optional[Mapping[str, Any]] = None,
        requirements: Optional[Mapping[str, Any]] = None,
        target_repo: Optional[str] = None,
        acceptance_criteria: Optional[List[str]] = None,
        project_id: Optional[str] = None,
        session_id: Optional[str] = None,
        observability: Optional[TaskTrace] = None,
    ) -> Task:
        """Submits a task and returns it as stored. A dependency is the id of a task that must be
        done first, or a Dependency."""
        return cast(Task, self._one(
            "submit-task", "task", type=type, name=name, description=description, payload=payload,
            requiredRole=required_role, requiredCapabilities=required_capabilities, dependencies=dependencies,
            priority=priority, structured_spec=structured_spec, requirements=requirements, targetRepo=target_repo,
            acceptanceCriteria=acceptance_criteria, projectId=project_id, sessionId=session_id,
            observability=observability,
        ))

    def query_tasks(
        self,
        status: Optional[str] = None,
        *,
        required_role: Optional[str] = None,
        limit: Optional[int] = None,
        project_id: Optional[str] = None,
        conversation_id: Optional[str] = None,
    ) -> List[Task]:
        """Lists matching tasks, oldest first, among those that the agent submitted or is assigned
        to."""
        return cast(List[Task], self._list(
            "query-tasks", "tasks", status=status, requiredRole=required_role, limit=limit, projectId=project_id,
            conversationId=conversation_id,
        ))

    def get_task(self, task_id: str) -> Task:
        """Returns everything about one of the agent's own tasks."""
        return cast(Task, self._one("get-task", "task", taskId=task_id))

    def start_task(self, task_id: str) -> Task:
        """Starts a task that is assigned to the agent. It also takes an unassigned task that the
        agent submitted."""
        return cast(Task, self._one("start-task", "task", taskId=task_id))

    def complete_task(self, task_id: str, result: Result = None) -> Task:
        """Reports that a task is done. None means success without a result."""
        return cast(Task, self._one("complete-task", "task", taskId=task_id, result=result))

    def fail_task(self, task_id: str, error: str) -> Task:
        """Reports that a task cannot be done, and why."""
        return cast(Task, self._one("fail-task", "task", taskId=task_id, error=error))

    def cancel_task(self, task_id: str, reason: Optional[str] = None) -> Task:
        """Cancels a task that the agent submitted."""
        return cast(Task, self._one("cancel-task", "task", taskId=task_id, reason=reason))

    def update_task(
        self,
        task_id: str,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        type: Optional[str] = None,
        priority: Optional[Priority] = None,
        payload: Optional[Mapping[str, Any]] = None,
        target_repo: Optional[str] = None,
        project_id: Optional[str] = None,
        acceptance_criteria: Optional[List[str]] = None,
        structured_spec: Optional[Mapping[str, Any]] = None,
        requirements: Optional[Mapping[str, Any]] = None,
    ) -> Task:
        """Changes the text, documents or priority of a task. Arguments that are None change
        nothing."""
        return cast(Task, self._one(
            "update-task", "task", taskId=task_id, name=name, description=description, type=type, priority=priority,
            payload=payload, targetRepo=target_repo, projectId=project_id, acceptanceCriteria=acceptance_criteria,
            structured_spec=structured_spec, requirements=requirements,
        ))

    def assign_task(self, task_id: str, agent: str, require_plan: bool = False) -> Task:
        """Assigns an unassigned task to an agent. With require_plan, the agent must submit a plan
        first."""
        return cast(Task, self._one(
            "assign-task", "task", taskId=task_id, agent=agent, requirePlan=require_plan or None,
        ))

    def auto_assign(self, task_id: str) -> AutoAssigned:
        """Assigns a task to the agent that matches its requirements best. If there is none, no
        error is raised and the status says so."""
        return cast(AutoAssigned, self.ask("auto-assign", {"taskId": task_id}))

    def match_agents(self, task_id: str) -> List[Match]:
        """Returns how well each agent matches a task, the best first."""
        return cast(List[Match], self._list("match-agents", "servers", taskId=task_id))

    def poll_tasks(self) -> List[Task]:
        """Lists the tasks that the agent was assigned and has not begun."""
        return cast(List[Task], self._list("poll-tasks", "tasks"))

    def check_tasks(self, session_id: Optional[str] = None) -> List[Task]:
        """Like poll_tasks, for another session: an agent's name, its server id or the id of its
        run."""
        return cast(List[Task], self._list("check-tasks", "tasks", sessionId=session_id or None))

    # Parts of a task.

    def add_dependency(
        self,
        task_id: str,
        depends_on_task_id: str,
        dependency_type: Optional[str] = None,
        contract_key: Optional[str] = None,
    ) -> Link:
        """Makes a task depend on another one. The type is blocks, input or related."""
        return cast(Link, self._one(
            "add-dependency", "dependency", taskId=task_id, dependsOnTaskId=depends_on_task_id,
            dependencyType=dependency_type, contractKey=contract_key,
        ))

    def remove_dependency(self, task_id: str, dependency_id: str) -> Link:
        """Removes a dependency, given its id or that of the task depended on."""
        return cast(Link, self._one("remove-dependency", "dependency", taskId=task_id, dependencyId=dependency_id))

    def add_note(self, task_id: str, content: str, urgent: bool = False) -> Note:
        """Adds a note to a task. Its agent is notified of an urgent note at once."""
        return cast(Note, self._one("add-note", "note", taskId=task_id, content=content, urgent=urgent or None))

    def list_notes(self, task_id: str) -> List[Note]:
        """Returns the notes of a task, oldest first."""
        return cast(List[Note], self._list("list-notes", "notes", taskId=task_id))

    def request_help(self, task_id: str, question: str, context: Any = None) -> Task:
        """Reports that the agent needs a person to go on with a task, and returns without waiting.
        Job.help waits for the answer."""
        return cast(Task, self._one("request-help", "task", taskId=task_id, question=question, context=context))

    def submit_plan(self, task_id: str, plan: Plan) -> Task:
        """Submits the agent's plan for a task."""
        return cast(Task, self._one("submit-plan", "task", taskId=task_id, plan=plan))

    def approve_plan(self, task_id: str) -> Task:
        """Approves the plan of another agent."""
        return cast(Task, self._one("approve-plan", "task", taskId=task_id))

    def revise_plan(self, task_id: str, feedback: str) -> Task:
        """Sends the plan of another agent back, with feedback."""
        return cast(Task, self._one("revise-plan", "task", taskId=task_id, feedback=feedback))

    # People and agents.

    def ask_user(
        self, question: str, options: Optional[Sequence[Union[str, Option]]] = None, *, timeout: Optional[int] = None
    ) -> UserAnswer:
        """Asks a person and waits for the answer. The timeout is in milliseconds.

        An option is a text, or a value with a label.
        """
        if options is not None:
            options = [{"label": option, "value": option} if isinstance(option, str) else option for option in options]
        return cast(UserAnswer, self.ask("ask-user", without_none(question=question, options=options, timeout=timeout)))

    def query_agents(
        self, role: Optional[str] = None, status: Optional[str] = None, capabilities: Optional[List[str]] = None
    ) -> List[Agent]:
        """Lists the agents of the team that match the query."""
        return cast(List[Agent], self._list(
            "query-agents", "agents", role=role, status=status, capabilities=capabilities,
        ))

    def query_servers(self) -> List[Server]:
        """Lists all agents with what they can do, and whether they are online."""
        return cast(List[Server], self._list("query-servers", "servers"))

    def update_capabilities(
        self, capabilities: Optional[Mapping[str, Any]] = None, system: Optional[Mapping[str, Any]] = None
    ) -> Server:
        """Replaces the agent's capabilities."""
        return cast(Server, self.ask("update-capabilities", without_none(capabilities=capabilities, system=system)))

    # Mail.

    def send_message(
        self,
        to_actor: str,
        topic: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        reply_to: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> Mail:
        """Sends mail and returns the stored message. Mail with a key is stored once, however often
        it is sent."""
        return cast(Mail, self.ask("send-message", without_none(
            to_actor=to_actor, topic=topic, payload={} if payload is None else payload, reply_to=reply_to,
            idempotency_key=idempotency_key,
        )))

    def poll_messages(self, cursor: Optional[int] = None, limit: Optional[int] = None) -> MailList:
        """Lists the agent's mail, oldest first: the unacknowledged messages, or all after a given
        number. It changes nothing."""
        return cast(MailList, self.ask("poll-messages", without_none(cursor=cursor, limit=limit)))

    def ack_messages(self, seq: int) -> Acked:
        """Acknowledges all mail up to a number."""
        return cast(Acked, self.ask("ack-messages", {"seq": seq}))

    def heartbeat(self) -> Beat:
        """Reports that the agent's actor is present."""
        return cast(Beat, self.ask("heartbeat"))
