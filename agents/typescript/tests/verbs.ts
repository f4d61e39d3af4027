import type { Conn, Session, Sent } from "../src/index.js";

/** Calls the verb for an operation, with the members of what goes with it. */
export function call(conn: Conn, operation: string, p: any): Promise<any> {
  const verbs: { [operation: string]: () => Promise<any> } = {
    "query-agents": () => conn.queryAgents(p),
    "query-tasks": () => conn.queryTasks(p),
    "submit-task": () => conn.submitTask(p),
    "get-task": () => conn.getTask(p.taskId),
    "ask-user": () => conn.askUser(p),
    "start-task": () => conn.startTask(p.taskId),
    "complete-task": () => conn.completeTask(p.taskId, p.result, p.artifacts),
    "fail-task": () => conn.failTask(p.taskId, p.error),
    "cancel-task": () => conn.cancelTask(p.taskId, p.reason),
    "retry-task": () => conn.retryTask(p),
    "update-task": () => conn.updateTask(p),
    "assign-task": () => conn.assignTask(p),
    "auto-assign": () => conn.autoAssign(p.taskId),
    "match-agents": () => conn.matchAgents(p.taskId),
    "poll-tasks": () => conn.pollTasks(),
    "check-tasks": () => conn.checkTasks(p.sessionId),
    "add-dependency": () => conn.addDependency(p.taskId, { depends_on_task_id: p.dependsOnTaskId, dependency_type: p.dependencyType, contract_key: p.contractKey }),
    "remove-dependency": () => conn.removeDependency(p.taskId, p.dependencyId),
    "add-note": () => conn.addNote(p),
    "list-notes": () => conn.listNotes(p.taskId),
    "request-help": () => conn.requestHelp(p.taskId, p.question, p.context),
    "submit-plan": () => conn.submitPlan(p.taskId, p.plan),
    "approve-plan": () => conn.approvePlan(p.taskId),
    "revise-plan": () => conn.revisePlan(p.taskId, p.feedback),
    "update-capabilities": () => conn.updateCapabilities(p),
    "query-servers": () => conn.servers(),
    "send-message": () => conn.sendMessage(p),
    "poll-messages": () => conn.pollMessages(p),
    "ack-messages": () => conn.ackMessages(p.seq),
    heartbeat: () => conn.heartbeat(),
    "current-task": () => conn.currentTask(),
    "report-progress": () => conn.reportProgress(p),
    "return-task": () => conn.returnTask(p.taskId, p.reason, p.after),
    "ask-permission": () => conn.askPermission(p),
    "withdraw-question": () => conn.withdrawQuestion(p),
  };
  return (verbs[operation] ?? (() => conn.ask(operation, p)))();
}

/** Calls the verb for an event. */
export function tell(conn: Conn, event: string, p: any): Promise<void> {
  switch (event) {
    case "progress":
      return conn.progress(p.taskId, p.progress, p.message, p.output);
    case "log":
      return conn.log(p.level, p.message, p.context);
    case "error":
      return conn.trouble(p.taskId, new Error(p.error), p.recoverable);
    case "question":
      return conn.wonder(p.question, p.context);
    case "usage":
      return conn.reportUsage(p);
    case "session":
      return conn.reportConversation(p);
    case "turn":
      return conn.reportTurn(p);
    case "limited":
      return conn.reportLimit(p);
    case "receipt":
      return conn.reportReceipt(p);
  }
  return conn.tell(event, p);
}

/** Calls a verb of a session. What it answers is taken from what was said before. */
export function say(session: Session, verb: string, p: any, heard: Map<string, any>): Promise<Sent> {
  const s = p.chain === undefined ? session : session.chain(p.chain);
  const said = heard.get(p.said);
  const verbs: { [verb: string]: () => Promise<Sent> } = {
    assign: () => s.assign(p.developer, p.assignment),
    acknowledge: () => s.acknowledge(said),
    report: () => s.report(said, p.progress),
    complete: () => s.complete(said, p.completion),
    "request-review": () => s.requestReview(p.reviewer, p.request),
    judge: () => s.judge(said, p.result),
    "give-feedback": () => s.giveFeedback(p.to, p.feedback),
    answer: () => s.answer(said, p.feedback),
    "ask-status": () => s.askStatus(p.to, p.task_id === undefined ? {} : { task_id: p.task_id }),
    "tell-status": () => s.tellStatus(said, p.status),
    abort: () => s.abort(p.to, p.abort),
  };
  const speak = verbs[verb];
  if (!speak) throw new Error(`a session has no verb ${verb}`);
  return speak();
}
