import type { Heard } from "./json.js";
import type { Mail } from "./mail.js";

/** What the orchestrator says without having been asked. */
export type Notice = {
  [N in keyof NoticePayloads]: NoticeOf<N, Heard<NoticePayloads[N]>>;
}[keyof NoticePayloads];

interface NoticeOf<N, P> {
  /** Without its prefix. There may be others than these. */
  name: N;
  /** "" when there was none. */
  id: string;
  timestamp: string;
  /** An empty object when there was none. */
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

/** What a notice about a task says. */
export interface TaskNotice {
  taskId: string;
  message?: string;
  reason?: string;
}

/** What the notice says that the agent has to go. */
export interface ShutdownNotice {
  /** Milliseconds. */
  gracePeriod: number;
  reason: string;
}
