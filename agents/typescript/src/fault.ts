import { blank } from "./envelope.js";
import { spoken, words } from "./errors.js";
import { Raw } from "./json.js";

/** Why delegated work came to nothing. */
export interface TaskFault {
  /** Such as one of FaultCode; the list is open. */
  code: string;
  /** For people. */
  message: string;
  /** An object. */
  details?: { [key: string]: any };
  /** Another try may go well. */
  recoverable: boolean;
}

/** Codes of faults that are in use. */
export const FaultCode = {
  InvalidInput: "INVALID_INPUT",
  MissingField: "MISSING_REQUIRED_FIELD",
  FieldType: "INVALID_FIELD_TYPE",
  FieldValue: "INVALID_FIELD_VALUE",
  AgentNotFound: "AGENT_NOT_FOUND",
  /** No agent does what the type says. */
  CapabilityNotFound: "CAPABILITY_NOT_FOUND",
  AgentUnavailable: "AGENT_UNAVAILABLE",
  AgentBusy: "AGENT_BUSY",
  MCPNotConnected: "MCP_NOT_CONNECTED",
  MCPAuth: "MCP_AUTH_FAILED",
  MCPRateLimited: "MCP_RATE_LIMITED",
  MCP: "MCP_ERROR",
  Coordination: "COORDINATION_FAILED",
  /** The work would come back to an agent that has it. */
  GraphCycle: "TASK_GRAPH_CYCLE",
  /** It cannot be handed on. */
  Delegation: "DELEGATION_FAILED",
  Timeout: "TIMEOUT",
  Internal: "INTERNAL_ERROR",
  KnowledgeNotFound: "KNOWLEDGE_NOT_FOUND",
  RateLimited: "RATE_LIMITED",
} as const;

/**
 * Delegated work has failed, and why: what a skill throws to say so, and what the caller that
 * waits for the work is thrown.
 */
export class Fault extends Error implements TaskFault {
  override name = "Fault";
  readonly code: string;
  readonly details: { [key: string]: any } | undefined;
  readonly recoverable: boolean;

  constructor(code: string, message: string, { details, recoverable = false, ...options }: FaultOptions = {}) {
    super(message, options);
    this.code = code;
    this.details = details;
    this.recoverable = recoverable;
  }

  /** All of it in a text for people. */
  get spoken(): string {
    return `${this.message} (${this.code})`;
  }
}

/** What there may be to say of a fault. */
export interface FaultOptions extends ErrorOptions {
  /** An object. Digit for digit when it has a raw, or is one. */
  details?: { [key: string]: any } | undefined;
  /** Another try may go well; it may not when this is missing. */
  recoverable?: boolean | undefined;
}

/** The fault of what a skill has thrown: itself, if it is one or has one as its cause. */
export function faultOf(thrown: unknown): TaskFault {
  let found = thrown;
  for (let depth = 0; depth < 16 && found instanceof Error && !(found instanceof Fault); depth++) found = found.cause;
  if (!(found instanceof Fault)) return { code: FaultCode.Internal, message: words(thrown), recoverable: false };
  const { code, message, details, recoverable } = found;
  const exact = details?.["raw"] instanceof Raw ? details["raw"] : details; // as it was heard
  return { code: blank(code) ? FaultCode.Internal : code, message: words(message), ...(exact && { details: exact }), recoverable };
}

/** How much is told of why something cannot be told, in bytes. */
const longest = 8 << 10;

/** That what came of a job cannot be told. This can: it is short, and has no half of a character in it. */
export function untold(why: unknown): TaskFault {
  const message = Buffer.from(`what came of it cannot be told: ${spoken(why)}`).subarray(0, longest).toString();
  return { code: FaultCode.Internal, message, recoverable: false };
}
