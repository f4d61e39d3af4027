import type { Heard } from "./json.js";
import type { Mail } from "./mail.js";

/** An unsolicited message from the orchestrator. */
export type Notice = {
  [N in keyof NoticePayloads]: NoticeOf<N, Heard<NoticePayloads[N]>>;
}[keyof NoticePayloads];

interface NoticeOf<N, P> {
  /** Without its prefix. There may be other names. */
  name: N;
  /** "" if missing. */
  id: string;
  timestamp: string;
  /** An empty object if missing. */
  payload: P;
}

interface NoticePayloads {
  "task-assigned": TaskNotice;
  "task-cancelled": TaskNotice;
  /** Something is new about a task that the agent has. */
  "task-updated": TaskNotice;
  /** There is mail for the agent. */
  message: Mail;
  shutdown: ShutdownNotice;
}

/** The payload of a notice about a task. */
export interface TaskNotice {
  taskId: string;
  message?: string;
  reason?: string;
}

/** The payload of the shutdown notice. */
export interface ShutdownNotice {
  /** Milliseconds. */
  gracePeriod: number;
  reason: string;
}
