import type { Raw } from "./json.js";

/** Any object. A Raw is sent digit for digit. */
export type Document = { [key: string]: unknown } | Raw;

/** A message from one actor to another, as stored. It never changes. */
export interface Mail {
  /** The number of the message. It is the id, and defines the order. */
  seq: number;
  from_actor: string;
  to_actor: string;
  topic: string;
  payload: { [key: string]: unknown };
  /** The number of the message that it answers, or null. */
  reply_to: number | null;
  created_at: string;
}

/** Mail to send. */
export interface SendMessage {
  /** Missing: the caller. */
  from_actor?: string;
  to_actor: string;
  /** Words with dots between them, such as build.finished. */
  topic: string;
  payload: Document;
  reply_to?: number;
  /** Mail with a key is stored once, however often it is sent. */
  idempotency_key?: string;
}

/** Sent mail, as stored. */
export interface SentMail extends Mail {
  /** It was already stored. */
  duplicate?: boolean;
  warnings?: string[];
}

/** Selects mail. */
export interface PollMessages {
  /** Missing: the caller. */
  actor?: string;
  /** Only messages after this number; by default, the unacknowledged ones. */
  cursor?: number;
  /** 1000 by default. */
  limit?: number;
}

/** A page of mail. */
export interface MailList {
  /** The actor that the mailbox belongs to. */
  actor: string;
  /** Ordered by number. */
  messages: Mail[];
  /** The number of the last acknowledged message. */
  cursor: number;
  /** There are more messages than the limit. */
  more: boolean;
}

/** How far mail is acknowledged. */
export interface Acked {
  actor: string;
  cursor: number;
}

/** The answer to a heartbeat. */
export interface Beat {
  actor: string;
  last_seen: string;
  /** The expected interval between heartbeats, in milliseconds. */
  heartbeat_ms: number;
}

/** The topics that are always registered. */
export const Topic = {
  TaskAssigned: "task.assigned",
  TaskCompleted: "task.completed",
  TaskFailed: "task.failed",
  TaskProgress: "task.progress",
  AgentSpawned: "agent.spawned",
  AgentTerminated: "agent.terminated",
  AlertFired: "alert.fired",
  AlertResolved: "alert.resolved",
  Heartbeat: "heartbeat",
  Direct: "message.direct",
  Broadcast: "broadcast.all",
  /** The bus has accepted mail on a topic that is not registered. */
  Unknown: "topic.unknown",
} as const;

/**
 * Actors that always exist. GO runs the system, Bus is the orchestrator itself, and Governor is
 * reserved for supervising programs.
 */
export const Actor = { Global: "GO", Bus: "Bus", Governor: "Governor" } as const;

/** The recipient of mail to all actors. */
export const broadcast = "broadcast";
