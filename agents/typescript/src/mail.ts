import type { Raw } from "./json.js";

/** Any object: with its Raw it goes digit for digit. */
export type Document = { [key: string]: unknown } | Raw;

/** A message from one actor to another, as it is kept: nothing of it ever changes. */
export interface Mail {
  /** Its number: the canonical id, and the order. */
  seq: number;
  from_actor: string;
  to_actor: string;
  topic: string;
  payload: { [key: string]: unknown };
  /** The number of what it answers; null: it begins something. */
  reply_to: number | null;
  created_at: string;
}

/** Mail to be sent. */
export interface SendMessage {
  /** Missing: the caller. */
  from_actor?: string;
  to_actor: string;
  /** Words with dots between them, such as build.finished. */
  topic: string;
  payload: Document;
  reply_to?: number;
  /** Mail with a key is kept once, however often it is sent. */
  idempotency_key?: string;
}

/** Mail that was sent, as it is kept. */
export interface SentMail extends Mail {
  /** It was there already. */
  duplicate?: boolean;
  warnings?: string[];
}

/** Which mail is wanted. */
export interface PollMessages {
  /** Missing: the caller. */
  actor?: string;
  /** Messages behind this one; missing: behind the last that was acknowledged. */
  cursor?: number;
  /** 1000 when it is missing. */
  limit?: number;
}

/** A page of mail. */
export interface MailList {
  /** Whose they are. */
  actor: string;
  /** In order of their numbers. */
  messages: Mail[];
  /** The last that was acknowledged. */
  cursor: number;
  /** There are more than were asked for. */
  more: boolean;
}

/** Up to where mail is acknowledged. */
export interface Acked {
  actor: string;
  cursor: number;
}

/** What answers a heartbeat. */
export interface Beat {
  actor: string;
  last_seen: string;
  /** How far apart heartbeats are expected to be, in milliseconds. */
  heartbeat_ms: number;
}

/** The topics that are always known. */
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
  /** The bus has taken mail on a topic that is not registered. */
  Unknown: "topic.unknown",
} as const;

/** Actors that are always there: who runs it all, the orchestrator itself, and those who watch over it. */
export const Actor = { Global: "GO", Bus: "Bus", Governor: "Governor" } as const;

/** The addressee of mail for all. */
export const broadcast = "broadcast";
