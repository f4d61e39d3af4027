import { blank } from "./envelope.js";
import { spoken, words } from "./errors.js";
import { Raw } from "./json.js";

/** The error of failed delegated work. */
export interface TaskFault {
  /** One of FaultCode, or another one; the list is open. */
  code: string;
  /** For people. */
  message: string;
  /** An object. */
  details?: { [key: string]: any };
  /** A retry may succeed. */
  recoverable: boolean;
}

/** Common codes of faults. */
export const FaultCode = {
  InvalidInput: "INVALID_INPUT",
  MissingField: "MISSING_REQUIRED_FIELD",
  FieldType: "INVALID_FIELD_TYPE",
  FieldValue: "INVALID_FIELD_VALUE",
  AgentNotFound: "AGENT_NOT_FOUND",
  /** No agent offers the type. */
  CapabilityNotFound: "CAPABILITY_NOT_FOUND",
  AgentUnavailable: "AGENT_UNAVAILABLE",
  AgentBusy: "AGENT_BUSY",
  MCPNotConnected: "MCP_NOT_CONNECTED",
  MCPAuth: "MCP_AUTH_FAILED",
  MCPRateLimited: "MCP_RATE_LIMITED",
  MCP: "MCP_ERROR",
  Coordination: "COORDINATION_FAILED",
  /** The work would return to an agent that has had it. */
  GraphCycle: "TASK_GRAPH_CYCLE",
  /** The work cannot be delegated. */
  Delegation: "DELEGATION_FAILED",
  Timeout: "TIMEOUT",
  Internal: "INTERNAL_ERROR",
  KnowledgeNotFound: "KNOWLEDGE_NOT_FOUND",
  RateLimited: "RATE_LIMITED",
} as const;

/**
 * The error of failed delegated work. A skill can throw it; the delegating agent gets it from
 * Delegation.wait.
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

  /** The message and the code. */
  get spoken(): string {
    return `${this.message} (${this.code})`;
  }
}

/** Optional parts of a Fault. */
export interface FaultOptions extends ErrorOptions {
  /** An object. If it has a raw, or is a Raw, it is sent digit for digit. */
  details?: { [key: string]: any } | undefined;
  /** A retry may succeed; false by default. */
  recoverable?: boolean | undefined;
}

/**
 * Returns the fault for a thrown value: the Fault itself or in its chain of causes, otherwise an
 * INTERNAL_ERROR.
 */
export function faultOf(thrown: unknown): TaskFault {
  let found = thrown;
  for (let depth = 0; depth < 16 && found instanceof Error && !(found instanceof Fault); depth++) found = found.cause;
  if (!(found instanceof Fault)) return { code: FaultCode.Internal, message: words(thrown), recoverable: false };
  const { code, message, details, recoverable } = found;
  const exact = details?.["raw"] instanceof Raw ? details["raw"] : details; // as it was received
  return { code: blank(code) ? FaultCode.Internal : code, message: words(message), ...(exact && { details: exact }), recoverable };
}

/** Bounds the reason in the fault of untold, in bytes. */
const longest = 8 << 10;

/**
 * Returns the fault of a job whose outcome cannot be sent. It can be sent itself: it is short and
 * has no half of a surrogate pair.
 */
export function untold(why: unknown): TaskFault {
  const message = Buffer.from(`what came of it cannot be told: ${spoken(why)}`).subarray(0, longest).toString();
  return { code: FaultCode.Internal, message, recoverable: false };
}
