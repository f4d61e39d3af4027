# Code generated from wire.Operations; DO NOT EDIT.
"""The operations of the orchestrator and the events of coding agents, one method each."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union, cast

from .._wire.documents import (
    Acked, Agent, AutoAssigned, Beat, Dependency, Link, MailList, Match, Note, Option, PermissionChoice, Plan,
    Result, SentMail, Server, Task, TaskArtifact, UserAnswer, Withdrawn,
)
from .._wire.lines import each_option, without_none
from .._wire.taskdocuments import TaskTrace

__all__ = ["Operations"]


class Operations:
    """The requests of a connection, and the events of coding agents. A method for a request waits for
    the answer, and raises Refused if the request is refused. An event has no answer."""

    def ask(
        self, operation: str, payload: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Sends a request for any operation."""
        raise NotImplementedError

    def tell(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> None:
        """Sends any event."""
        raise NotImplementedError

    def _one(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or {}

    def _list(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or []

    def query_agents(
        self,
        role: Optional[str] = None,
        status: Optional[str] = None,
        capabilities: Optional[List[str]] = None,
    ) -> List[Agent]:
        """List agents, by role, status or capabilities. You are one of them. Without a payload the
        answer lists all agents.

        role: Only agents with this role: worker, planner, reviewer, or a role from the
            configuration. Any other is refused.
        status: Only agents with this status: idle, busy, starting, stopping, stale, offline or
            crashed. With any other status the list is empty.
        capabilities: Only agents that have all of these.
        """
        return cast(List[Agent], self._list(
            "query-agents", "agents", role=role, status=status, capabilities=capabilities,
        ))

    def query_tasks(
        self,
        status: Optional[str] = None,
        *,
        required_role: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        project_id: Optional[str] = None,
        conversation_id: Optional[str] = None,
    ) -> List[Task]:
        """List the tasks that you submitted or that are assigned to you. The oldest task comes
        first. The list leaves out description, payload and result, which can be large; get-task has
        them.

        status: Only tasks with this status or in this state. queued is pending or assigned,
            completed is done, and running is every state in between.
        required_role: Only tasks that require this role.
        limit: The maximum number of tasks; 100 when it is missing. The response has the number
            of further tasks.
        cursor: Only tasks that were created after this one: the cursor of the previous
            response.
        project_id: Only tasks of this project.
        conversation_id: Only tasks of this conversation: see task-request.
        """
        return cast(List[Task], self._list(
            "query-tasks", "tasks", status=status, requiredRole=required_role, limit=limit, cursor=cursor,
            projectId=project_id, conversationId=conversation_id,
        ))

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
        priority: Optional[Union[float, str]] = None,
        assign_to: Optional[str] = None,
        require_plan: bool = False,
        observability: Optional[TaskTrace] = None,
        target_repo: Optional[str] = None,
        acceptance_criteria: Optional[List[str]] = None,
        project_id: Optional[str] = None,
        session_id: Optional[str] = None,
        verify: Optional[List[List[str]]] = None,
        structured_spec: Optional[Mapping[str, Any]] = None,
        requirements: Optional[Mapping[str, Any]] = None,
    ) -> Task:
        """Submit a task for an idle agent with the role and the capabilities that it requires. The
        task waits until every task that it depends on is done, and until an agent that fits is
        idle.

        type: The kind of task, in words of the submitter.
        name: The name of the task.
        description: The work to do.
        payload: Data for the agent. It is passed on unchanged, digit for digit.
        required_role: The role that the agent must have: worker, planner, reviewer, or a role
            from the configuration. Any other is refused.
        required_capabilities: The capabilities that the agent must have.
        dependencies: The dependencies of the task: ids of tasks that must be done first, or
            objects with more members.
        priority: A number or a word. 1 is the most urgent; the default is 3, and all above 3
            are equal. The words are critical, high, normal and low; any other counts as normal.
        assign_to: The agent that gets the task: its name, its server_id, or the id of its run.
            It need not have the role and the capabilities.
        require_plan: With assignTo, whether that agent must submit a plan first.
        observability: The trace that the task belongs to.
        target_repo: The repository that the task is about.
        acceptance_criteria: The conditions under which the task counts as done.
        project_id: The project that the task belongs to.
        session_id: The session that the task came from.
        verify: Commands that must succeed before the task is done, each a list of words. They
            run as its agent, so only a person may name them.
        structured_spec: The specification in a form for programs: a task-spec document.
        requirements: The demands of the task on an agent: a requirements document.
        """
        return cast(Task, self._one(
            "submit-task", "task", type=type, name=name, description=description, payload=payload,
            requiredRole=required_role, requiredCapabilities=required_capabilities, dependencies=dependencies,
            priority=priority, assignTo=assign_to, requirePlan=require_plan or None, observability=observability,
            targetRepo=target_repo, acceptanceCriteria=acceptance_criteria, projectId=project_id,
            sessionId=session_id, verify=verify, structured_spec=structured_spec, requirements=requirements,
        ))

    def get_task(self, task_id: str) -> Task:
        """Show a task in full. The answer has the description, the payload, the progress and, when
        the task is done, the result.

        task_id: The id of the task.
        """
        return cast(Task, self._one("get-task", "task", taskId=task_id))

    def ask_user(
        self,
        question: str,
        options: Optional[Sequence[Union[str, Option]]] = None,
        *,
        timeout: Optional[int] = None,
        wait: Optional[int] = None,
    ) -> UserAnswer:
        """Ask a person a question and wait for the answer. The response arrives when the person
        answers, or with TIMEOUT. You can send other requests while you wait. An option may be a
        text.

        question: The question.
        options: The answers that are allowed, each with its own value. Without options every
            text is allowed.
        timeout: How long to wait, in milliseconds, up to a year; 30000 when it is missing, as
            for every request.
        wait: How long you wait yourself, in milliseconds. Without an answer by then, you get
            the id of the question, and later its answer as mail.
        """
        return cast(UserAnswer, self.ask(
            "ask-user", without_none(question=question, options=each_option(options), timeout=timeout, wait=wait),
        ))

    def start_task(self, task_id: str) -> Task:
        """Start a task that is assigned to you, or take one of yours that has no agent. The request
        is optional: a task starts by itself when its agent has been notified.

        task_id: The id of the task.
        """
        return cast(Task, self._one("start-task", "task", taskId=task_id))

    def complete_task(
        self,
        task_id: str,
        result: Result = None,
        artifacts: Optional[Sequence[TaskArtifact]] = None,
    ) -> Task:
        """Complete a task with its result.

        task_id: The id of the task.
        result: The result for the submitter: any value; {"success":true} when it is missing. An
            object with a $schema must be a task-result document: its contracts go to the tasks that
            need them.
        artifacts: Other products: each has a name, and one of content, path and ref.
        """
        return cast(Task, self._one("complete-task", "task", taskId=task_id, result=result, artifacts=artifacts))

    def fail_task(self, task_id: str, error: str, *, class_: Optional[str] = None, retryable: bool = False) -> Task:
        """Fail a task with the reason. Tasks that depend on it are cancelled, unless the
        configuration keeps them.

        task_id: The id of the task.
        error: The reason.
        class_: The kind of failure: the model refused; its context is too long; a limit of its
            vendor; the budget is used up; its program is not logged in; it made no progress; a tool
            or the program failed.
        retryable: Whether another attempt may succeed. The task then waits for an agent again,
            up to max_attempts. A task that was assigned by hand, is part of a session, or was
            handed on fails anyway.
        """
        return cast(Task, self._one(
            "fail-task", "task", taskId=task_id, error=error, **{"class": class_}, retryable=retryable or None,
        ))

    def cancel_task(self, task_id: str, reason: Optional[str] = None) -> Task:
        """Cancel a task that you submitted and tell its agent. The task must not have ended.

        task_id: The id of the task.
        reason: The reason, for the agent of the task.
        """
        return cast(Task, self._one("cancel-task", "task", taskId=task_id, reason=reason))

    def retry_task(
        self,
        task_id: str,
        agent: Optional[str] = None,
        *,
        keep: bool = False,
        dependents: Optional[bool] = None,
    ) -> Task:
        """Retry a failed or cancelled task. The task is pending again, with its history. Tasks that
        were cancelled because of it are pending again as well.

        task_id: The id of the task.
        agent: The agent for the task. Without it, the task is assigned as before.
        keep: Whether to continue in the present workspace, with the commits and files of the
            last attempt. Otherwise the task begins on a fresh branch, and the earlier branch is
            kept under another name.
        dependents: Whether the tasks that were cancelled because of this one are pending again
            as well; true if it is missing.
        """
        return cast(Task, self._one(
            "retry-task", "task", taskId=task_id, agent=agent, keep=keep or None, dependents=dependents,
        ))

    def current_task(self) -> Task:
        """Show the task that you work on. If you have several, it is the one that started first; if
        none has started, the one that was assigned first. An agent without a task is refused with
        NOT_FOUND."""
        return cast(Task, self._one("current-task", "task"))

    def report_progress(
        self,
        task_id: str,
        message: str,
        progress: Optional[float] = None,
        *,
        kind: Optional[str] = None,
        output: Any = None,
    ) -> Task:
        """Report your activity on a task, with or without the progress. The same as event:progress,
        for programs that do not write lines. The method progress sends that event.

        task_id: The id of the task.
        message: Your current activity.
        progress: The progress, from 0 to 1. A missing value changes nothing.
        kind: The kind of the message: tool for a tool call, words for text of the model, plan
            for a step of a plan.
        output: Your output so far: any value, up to 64 KiB. The task shows the last one until
            it is done.
        """
        return cast(Task, self._one(
            "report-progress", "task", taskId=task_id, message=message, progress=progress, kind=kind, output=output,
        ))

    def return_task(self, task_id: str, reason: str, after: Optional[str] = None) -> Task:
        """Give a task back to the queue. It does not count as an attempt.

        task_id: The id of the task.
        reason: Why you give the task back.
        after: When an agent may get the task again, in ISO 8601: for example, the end of a
            limit. A request can still assign it before that time.
        """
        return cast(Task, self._one("return-task", "task", taskId=task_id, reason=reason, after=after))

    def ask_permission(
        self,
        tool: str,
        title: str,
        input: Mapping[str, Any],
        choices: Sequence[PermissionChoice],
        *,
        task_id: Optional[str] = None,
        paths: Optional[List[str]] = None,
        reason: Optional[str] = None,
        timeout: Optional[int] = None,
        wait: Optional[int] = None,
    ) -> UserAnswer:
        """Ask a person whether a tool may be used, and wait for the answer. The answer has the id
        of the choice. A choice of the kind allow_session or allow_always is remembered: the same
        tool with the same input is then answered at once. The question is withdrawn when its task
        ends, is given back or goes to another agent, and when your run ends.

        tool: The tool, such as Bash.
        title: The action to permit, in one line.
        input: The input of the tool call.
        choices: The possible answers.
        task_id: The task that needs it; the task that you work on when it is missing.
        paths: The files and folders that it concerns.
        reason: Why it is needed.
        timeout: How long to wait, in milliseconds; a year when it is missing.
        wait: How long you wait yourself, in milliseconds. Without an answer by then, you get
            the id of the question, and later the choice as mail.
        """
        return cast(UserAnswer, self.ask(
            "ask-permission", without_none(tool=tool, title=title, input=input, choices=choices, taskId=task_id,
            paths=paths, reason=reason, timeout=timeout, wait=wait),
        ))

    def withdraw_question(self, question_id: Optional[str] = None, request_id: Optional[str] = None) -> Withdrawn:
        """Withdraw a question of yours that no longer needs an answer. The request that asked the
        question gets an error.

        question_id: The id of the question.
        request_id: The id of your request that asked it.
        """
        return cast(Withdrawn, self.ask(
            "withdraw-question", without_none(questionId=question_id, requestId=request_id),
        ))

    def update_task(
        self,
        task_id: str,
        *,
        payload: Optional[Mapping[str, Any]] = None,
        name: Optional[str] = None,
        description: Optional[str] = None,
        target_repo: Optional[str] = None,
        project_id: Optional[str] = None,
        type: Optional[str] = None,
        priority: Optional[Union[float, str]] = None,
        acceptance_criteria: Optional[List[str]] = None,
        structured_spec: Optional[Mapping[str, Any]] = None,
        requirements: Optional[Mapping[str, Any]] = None,
    ) -> Task:
        """Change the text, the documents or the priority of a task. The task must not have ended.
        Allowed for the submitter and for planners.

        task_id: The id of the task.
        payload: The new payload.
        name: The new name.
        description: The new description; an empty text removes it.
        target_repo: The repository that the task is about.
        project_id: The project that the task belongs to.
        type: The new type.
        priority: A number or a word. 1 is the most urgent; the default is 3, and all above 3
            are equal. The words are critical, high, normal and low; any other counts as normal.
        acceptance_criteria: The new conditions under which the task counts as done.
        structured_spec: The new specification: a task-spec document. null removes it.
        requirements: The new requirements: a requirements document. null removes them.
        """
        return cast(Task, self._one(
            "update-task", "task", taskId=task_id, payload=payload, name=name, description=description,
            targetRepo=target_repo, projectId=project_id, type=type, priority=priority,
            acceptanceCriteria=acceptance_criteria, structured_spec=structured_spec, requirements=requirements,
        ))

    def assign_task(self, task_id: str, agent: str, require_plan: bool = False) -> Task:
        """Assign a task to an agent, which may have to submit a plan first. The agent need not fit
        the requirements. It is notified and starts the task itself. Allowed for the submitter and
        for planners.

        task_id: The id of the task.
        agent: The agent: its name, its server_id, or the id of its run.
        require_plan: Whether the agent must submit a plan first, with submit-plan. It can also
            be set for the agent that has the task and has not started.
        """
        return cast(Task, self._one(
            "assign-task", "task", taskId=task_id, agent=agent, requirePlan=require_plan or None,
        ))

    def auto_assign(self, task_id: str) -> AutoAssigned:
        """Assign a task to the agent that fits its requirements best. The agent starts the task
        itself. If no agent fits, the status of the answer is no_match.

        task_id: The id of the task.
        """
        return cast(AutoAssigned, self.ask("auto-assign", without_none(taskId=task_id)))

    def match_agents(self, task_id: str) -> List[Match]:
        """Show how each agent fits the requirements of a task. The answer gives the reasons.
        Nothing is assigned. The best fit comes first.

        task_id: The id of the task.
        """
        return cast(List[Match], self._list("match-agents", "servers", taskId=task_id))

    def poll_tasks(self) -> List[Task]:
        """List the tasks that are assigned to you and not started. The answer has the tasks in
        full."""
        return cast(List[Task], self._list("poll-tasks", "tasks"))

    def check_tasks(self, session_id: Optional[str] = None) -> List[Task]:
        """List the tasks that are assigned to a session and not started. Only planners may ask for
        other sessions.

        session_id: The session: the name of an agent, its server_id, or the id of its run. The
            default is your own.
        """
        return cast(List[Task], self._list("check-tasks", "tasks", sessionId=session_id or None))

    def request_help(self, task_id: str, question: str, context: Any = None) -> Task:
        """Ask a person for help with a task. The task waits. When a person answers, you get
        notify:task-updated, and the task has the answer. This returns without waiting; the method
        help of a job waits for the answer.

        task_id: The id of the task.
        question: The question.
        context: Further facts about the question: any value.
        """
        return cast(Task, self._one("request-help", "task", taskId=task_id, question=question, context=context))

    def submit_plan(self, task_id: str, plan: Plan) -> Task:
        """Submit the plan that a task requires. The task is in the state planning. Its agent may
        start when the plan is approved.

        task_id: The id of the task.
        plan: The plan: an object or a text.
        """
        return cast(Task, self._one("submit-plan", "task", taskId=task_id, plan=plan))

    def approve_plan(self, task_id: str) -> Task:
        """Approve the plan of a task. Its agent may start. An agent cannot approve its own plan.

        task_id: The id of the task.
        """
        return cast(Task, self._one("approve-plan", "task", taskId=task_id))

    def revise_plan(self, task_id: str, feedback: str) -> Task:
        """Reject the plan of a task with feedback. The agent must submit another plan. An agent
        cannot reject its own plan.

        task_id: The id of the task.
        feedback: The objections to the plan.
        """
        return cast(Task, self._one("revise-plan", "task", taskId=task_id, feedback=feedback))

    def add_dependency(
        self,
        task_id: str,
        depends_on_task_id: str,
        dependency_type: Optional[str] = None,
        contract_key: Optional[str] = None,
    ) -> Link:
        """Add a dependency to a task. The task must not have started. A dependency that closes a
        cycle is refused.

        task_id: The id of the task that depends on another one.
        depends_on_task_id: The id of the other task.
        dependency_type: blocks: the other task must be done first; the default. input: part of
            its result is needed as well. related: for information only.
        contract_key: The part of the result that an input needs. With another type it has no
            meaning and causes a warning.
        """
        return cast(Link, self._one(
            "add-dependency", "dependency", taskId=task_id, dependsOnTaskId=depends_on_task_id,
            dependencyType=dependency_type, contractKey=contract_key,
        ))

    def remove_dependency(self, task_id: str, dependency_id: str) -> Link:
        """Remove a dependency from a task. A task without other open dependencies may start.

        task_id: The id of the task that depends on another one.
        dependency_id: The id of the dependency, or of the task that it names.
        """
        return cast(Link, self._one("remove-dependency", "dependency", taskId=task_id, dependencyId=dependency_id))

    def add_note(self, task_id: str, content: str, urgent: bool = False) -> Note:
        """Add a note to a task. Everyone who may see the task can read the note.

        task_id: The id of the task.
        content: The text of the note.
        urgent: Whether the agent of the task is notified at once, with notify:task-updated.
        """
        return cast(Note, self._one("add-note", "note", taskId=task_id, content=content, urgent=urgent or None))

    def list_notes(self, task_id: str) -> List[Note]:
        """List the notes of a task, oldest first.

        task_id: The id of the task.
        """
        return cast(List[Note], self._list("list-notes", "notes", taskId=task_id))

    def update_capabilities(
        self,
        capabilities: Optional[Mapping[str, Any]] = None,
        system: Optional[Mapping[str, Any]] = None,
    ) -> Server:
        """Replace your advertised capabilities and refresh your presence. Members that are missing
        keep their values. Without any member, the request only refreshes your presence.

        capabilities: Your skills: a capabilities document.
        system: Information about the machine that you run on, such as its load. It is shown to
            people.
        """
        return cast(Server, self.ask("update-capabilities", without_none(capabilities=capabilities, system=system)))

    def query_servers(self) -> List[Server]:
        """List all agents with their capabilities and presence. The list is in the terms of the
        hub, where agents are servers."""
        return cast(List[Server], self._list("query-servers", "servers"))

    def send_message(
        self,
        to_actor: str,
        topic: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        reply_to: Optional[Union[int, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> SentMail:
        """Send a message to an actor, or as GO to all. The message is kept unchanged until the
        recipient reads it. An agent can print the payload as a line, with a from_actor. The answer
        is then only the message.

        to_actor: The recipient: GO, HO:host, PO:project, IO:person, W:id, S:kind:id, Bus or
            Governor; the name of an agent, for its mailbox; or broadcast, which only GO may use. An
            actor need not exist yet. At most 200 bytes, without invisible characters.
        topic: The topic: words with dots between them, such as task.completed, at most 200
            bytes. A topic that is not registered causes a warning.
        payload: The content, at most 1 MiB. It is delivered unchanged, digit for digit.
        reply_to: The number of the message that this one answers, as a number or a text.
        idempotency_key: A text that differs for each of your messages, such as a UUID, at most
            200 bytes. A message that is sent again with the same key is not sent twice.
        """
        return cast(SentMail, self.ask(
            "send-message", without_none(to_actor=to_actor, topic=topic, payload={} if payload is None else payload,
            reply_to=reply_to, idempotency_key=idempotency_key),
        ))

    def poll_messages(self, cursor: Optional[int] = None, limit: Optional[int] = None) -> MailList:
        """Read your messages after your cursor, or after any number, in order. Reading removes
        nothing: a message that is not acknowledged is returned again.

        cursor: Only messages with a higher number; 0 for all. The default is the last
            acknowledged one.
        limit: The maximum number of messages; 1000 when it is missing.
        """
        return cast(MailList, self.ask("poll-messages", without_none(cursor=cursor, limit=limit)))

    def ack_messages(self, seq: int) -> Acked:
        """Acknowledge your messages up to a number and move your cursor there. poll-messages
        continues after that number. A lower number than before changes nothing.

        seq: The number of the last message that you have handled.
        """
        return cast(Acked, self.ask("ack-messages", without_none(seq=seq)))

    def heartbeat(self) -> Beat:
        """Announce that you are present for the next minute. An agent that has sent one heartbeat
        must send one each minute. GO is alerted when none comes for three minutes."""
        return cast(Beat, self.ask("heartbeat"))

    def report_usage(
        self,
        input: int,
        output: int,
        *,
        task_id: Optional[str] = None,
        turn: Optional[int] = None,
        model: Optional[str] = None,
        cache_read: Optional[int] = None,
        cache_write: Optional[int] = None,
        reasoning: Optional[int] = None,
        cost: Optional[float] = None,
        currency: Optional[str] = None,
        context_used: Optional[int] = None,
        context_size: Optional[int] = None,
    ) -> None:
        """Report the usage of a turn, or of one request to a model. Usage is added up by agent and
        by task.

        input: The input tokens.
        output: The output tokens.
        task_id: The id of the task, if the usage was for one.
        turn: The number of the turn in this run.
        model: The model.
        cache_read: The tokens read from a cache.
        cache_write: The tokens written to a cache.
        reasoning: The reasoning tokens.
        cost: The cost.
        currency: The currency of the cost, such as USD.
        context_used: The number of tokens in the conversation.
        context_size: The maximum number of tokens in a conversation.
        """
        self.tell("usage", without_none(
            input=input, output=output, taskId=task_id, turn=turn, model=model, cacheRead=cache_read,
            cacheWrite=cache_write, reasoning=reasoning, cost=cost, currency=currency, contextUsed=context_used,
            contextSize=context_size,
        ))

    def report_conversation(
        self,
        id: str,
        *,
        kind: Optional[str] = None,
        dir: Optional[str] = None,
        version: Optional[str] = None,
        model: Optional[str] = None,
    ) -> None:
        """Report the conversation of your program. Your next run gets its id in ORC_CONVERSATION.

        id: The id of the conversation. Your program resumes the conversation by this id.
        kind: The kind of program, such as claude.
        dir: The folder of the conversation.
        version: The version of the program.
        model: The model.
        """
        self.tell("session", without_none(id=id, kind=kind, dir=dir, version=version, model=model))

    def report_turn(
        self,
        state: str,
        what: Optional[str] = None,
        *,
        since: Optional[str] = None,
        task_id: Optional[str] = None,
    ) -> None:
        """Report your current activity, for people. It is not recorded. While you wait for a
        person, your silence does not count.

        state: busy, waiting (for a person) or idle.
        what: Your current activity, in a few words.
        since: When the state began, in ISO 8601.
        task_id: The id of the task that you work on.
        """
        self.tell("turn", without_none(state=state, what=what, since=since, taskId=task_id))

    def report_limit(self, until: str, scope: Optional[str] = None) -> None:
        """Report that you cannot work for a time, usually because of a limit of your vendor. You
        get no task until then. Give your current task back with return-task.

        until: When the limit ends, in ISO 8601.
        scope: The limited resource, in words of the vendor, or another reason.
        """
        self.tell("limited", without_none(until=until, scope=scope))

    def report_receipt(self, seq: int, state: str) -> None:
        """Report that your model has a bus message, or that your program refused it.

        seq: The number of the message.
        state: in_context: your model has it. refused: your program did not take it.
        """
        self.tell("receipt", without_none(seq=seq, state=state))
