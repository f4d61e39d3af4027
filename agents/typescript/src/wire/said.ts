import { complaint, type Heard, Raw, withRaw } from "./json.js";
import { Part, type Problem } from "./part.js";
import {
  abortScopes, type AgentType, agentTypes, categories, changeTypes, dependencyTypes, feedbackTypes, fixes, focusAreas,
  type MessageType, messageTypes, outcomes, type Payloads, priorities, severities, verdicts,
} from "./sessions.js";

/** Identifies an agent in a session. */
export interface AgentIdentifier {
  agent_id: string;
  agent_type: AgentType;
  instance_id?: string;
}

/** A session message from another agent. The message and its payload have their texts as raw. */
export type Said<T extends MessageType = MessageType> = { [K in T]: Heard<Message<K>> }[T];

interface Message<T extends MessageType> {
  message_id: string;
  timestamp: string;
  /** Its position in the session, as far as the sender knows. */
  sequence_number?: number;
  from_agent: AgentIdentifier;
  to_agent: AgentIdentifier;
  message_type: T;
  payload: Heard<Payloads[T]>;
  /** The id that related messages share. */
  correlation_id?: string;
  /** The message_id of the message that it answers. */
  reply_to?: string;
  session_id?: string;
}

/**
 * Reads a session message as the orchestrator does, from any sender. Returns an Error if it is
 * invalid.
 */
export function readSaid(line: string): Said | Error {
  const wrong = complaint(line);
  if (wrong !== undefined) return new Error(`the message: ${wrong}`);
  const raw = Raw.part(line.trim());
  const problems: Problem[] = [];
  judge(new Part(raw, "", problems));
  if (problems[0] !== undefined) return new Error(problems[0].message);
  const said = raw.value<Said>();
  withRaw(said.payload, raw.at("payload")!);
  return withRaw(said, raw);
}

function judge(p: Part): void {
  const id = p.id("message_id");
  if (id !== "" && !isMessageId(id)) {
    p.wrong("message_id", `must be a UUID of version 4, or msg- and digits, perhaps with a dash, letters and digits behind them, not ${JSON.stringify(id.slice(0, 80))}`);
  }
  p.moment("timestamp");
  p.inside("from_agent", agent);
  p.inside("to_agent", agent);
  const type = p.word("message_type", messageTypes);
  for (const key of ["correlation_id", "reply_to", "session_id"]) p.id(key, "optional");
  p.whole("sequence_number", 0, "optional");
  p.inside("payload", (in_) => bodies[type as MessageType]?.(in_));
}

function isMessageId(id: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id) || /^msg-\d+(-[0-9a-z]+)?$/i.test(id);
}

function agent(p: Part): void {
  p.id("agent_id");
  p.word("agent_type", agentTypes);
  p.id("instance_id", "optional");
}

/** The validation of the payload of each type. */
const bodies: { readonly [T in MessageType]: (p: Part) => void } = {
  task_assignment(p) {
    p.inside("task", task);
    p.word("priority", priorities);
    p.moment("deadline", "optional");
    p.whole("max_iterations", 1, "optional");
    p.each("dependencies", (d) => {
      d.id("task_id", "optional");
      d.names("depends_on");
      d.word("dependency_type", dependencyTypes);
    }, "optional");
  },
  task_progress(p) {
    p.id("task_id");
    p.percent("progress_percent");
    p.text("current_step");
    p.names("files_modified_so_far");
    p.text("estimated_remaining", "optional");
    p.texts("blockers", "optional");
  },
  task_completion(p) {
    p.id("task_id");
    p.word("status", outcomes);
    p.inside("changes", (c) => {
      c.each("files_created", fileChange);
      c.each("files_modified", fileChange);
      c.names("files_deleted");
    });
    p.text("summary");
    p.text("implementation_notes", "optional");
    p.inside("self_review", (s) => {
      for (const key of ["tests_run", "tests_passed", "type_check_passed"]) s.truth(key);
      s.texts("known_issues", "optional");
    });
    p.texts("blockers", "optional");
    p.texts("suggestions", "optional");
  },
  review_request(p) {
    p.id("review_id");
    p.id("task_id");
    p.inside("scope", (s) => {
      s.names("files");
      s.words("focus_areas", focusAreas);
      s.names("ignore_patterns", "optional");
    });
    p.inside("criteria", criteria);
    p.inside("context", (c) => {
      c.text("task_description");
      c.texts("acceptance_criteria");
      c.each("previous_reviews", (r) => {
        r.whole("review_number", 0);
        r.text("verdict");
        r.texts("key_findings");
      }, "optional");
    });
  },
  review_result: reviewResult,
  feedback(p) {
    p.word("feedback_type", feedbackTypes);
    p.text("subject");
    p.text("content");
    p.truth("action_required");
    p.id("related_task_id", "optional");
  },
  status_query(p) {
    p.id("task_id", "optional");
  },
  status_response() {},
  abort(p) {
    p.word("scope", abortScopes);
    p.id("target_id");
    p.text("reason");
    p.truth("cleanup_required");
  },
  acknowledgment() {},
};

function task(p: Part): void {
  p.id("task_id");
  p.text("task_description");
  p.inside("context", (c) => {
    c.each("specs", contextFile);
    c.each("reference_files", contextFile);
    c.each("previous_attempts", (a) => {
      a.whole("attempt_number", 0);
      a.text("outcome");
      a.text("feedback");
    }, "optional");
  });
  p.inside("constraints", (c) => {
    c.names("scope");
    c.truth("testing_required");
    c.texts("must_not_break", "optional");
    c.text("style_guide", "optional");
  });
  p.texts("acceptance_criteria");
}

function contextFile(p: Part): void {
  p.name("path");
  p.text("reason");
  p.texts("sections", "optional");
}

function fileChange(p: Part): void {
  p.name("path");
  p.whole("lines_added", 0, "optional");
  p.whole("lines_removed", 0, "optional");
  p.text("description", "optional");
  p.word("change_type", changeTypes);
}

function criteria(p: Part): void {
  p.truth("must_pass_tests");
  p.truth("must_pass_type_check");
  p.truth("must_pass_lint", "optional");
  p.each("custom_checks", (c) => {
    c.name("name");
    c.name("command");
    c.whole("expected_exit_code", -Number.MAX_SAFE_INTEGER);
  }, "optional");
}

function reviewResult(p: Part): void {
  p.id("review_id");
  p.id("task_id");
  p.word("verdict", verdicts);
  const known = new Set<string>();
  p.each("findings", (f) => finding(f, known));
  p.inside("verification", (v) => {
    v.inside("tests", verified);
    v.inside("type_check", verified);
    v.inside("lint", verified, "optional");
    v.inside("custom", (custom) => custom.eachMember(verified), "optional");
  });
  p.text("summary");
  p.each("required_changes", (c) => {
    c.id("change_id");
    c.word("priority", fixes);
    c.names("related_findings");
    c.text("description");
  }, "optional");
  p.texts("commendations", "optional");
}

function finding(p: Part, known: Set<string>): void {
  const id = p.id("finding_id");
  if (id !== "" && known.has(id)) p.wrong("finding_id", "stands twice");
  known.add(id);
  p.word("severity", severities);
  p.word("category", categories);
  p.inside("location", (l) => {
    l.name("file");
    const [from, to] = [l.whole("line_start", 0, "optional"), l.whole("line_end", 0, "optional")];
    if (from !== undefined && to !== undefined && to < from) l.wrong("line_end", `must not be less than line_start, which is ${from}`);
    l.text("code_snippet", "optional");
  });
  p.text("description");
  p.text("rationale", "optional");
  p.text("suggestion", "optional");
  p.whole("fixed_in_iteration", 1, "optional");
}

function verified(p: Part): void {
  p.truth("passed");
  p.text("output", "optional");
  p.text("error", "optional");
}

/**
 * The agent types of the sender and the recipient, by message type. Other message types have no
 * restriction.
 */
const directions: { readonly [T in MessageType]?: readonly [from: AgentType, to?: AgentType] } = {
  task_assignment: ["architect", "developer"],
  task_progress: ["developer", "architect"],
  task_completion: ["developer", "architect"],
  review_request: ["architect", "reviewer"],
  review_result: ["reviewer", "architect"],
  abort: ["architect"],
};

/** Returns why the sender may not send such a message to the recipient, or undefined. */
export function misdirected(said: Said): string | undefined {
  const [from, to] = directions[said.message_type] ?? [];
  if (from !== undefined && said.from_agent.agent_type !== from) {
    return `${said.message_type} is for an agent of the type ${from} to say`;
  }
  if (to !== undefined && said.to_agent.agent_type !== to) return `${said.message_type} is said to an agent of the type ${to}`;
  return undefined;
}
