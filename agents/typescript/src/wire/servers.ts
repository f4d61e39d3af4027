import type { Document } from "./mail.js";
import type { Role } from "./tasks.js";

/** Selects agents. */
export interface QueryAgents {
  role?: Role;
  status?: AgentStatus;
  /** Only agents that have all of them. */
  capabilities?: string[];
}

/** The status of an agent. */
export type AgentStatus = "idle" | "busy" | "starting" | "stopping" | "stale" | "offline" | "crashed";

/** An agent as other agents see it. */
export interface Agent {
  id: string;
  role: Role;
  status: AgentStatus;
  capabilities: string[];
  /** An id, or null. */
  currentTask: string | null;
}

/** The new capabilities of an agent. Missing members stay unchanged. */
export interface UpdateCapabilities {
  capabilities?: Capabilities | Document;
  /** More about the machine that it runs on. */
  system?: Document;
}

/** The capabilities of an agent. */
export interface Capabilities {
  $schema?: string;
  repos?: { [name: string]: { path?: string; languages?: string[]; tools?: string[] } };
  languages?: string[];
  tools?: string[];
  environments?: string[];
  tags?: string[];
  /** The number of tasks that may run at a time, 1 by default. */
  max_concurrent_tasks?: number;
}

/** An agent with its capabilities. */
export interface Server {
  server_id: string;
  name: string;
  status: "online" | "offline";
  role: string;
  /** It has registered itself. */
  remote: boolean;
  hostname?: string;
  ip?: string;
  os?: string;
  repos: { [name: string]: unknown };
  /** Null if it has declared none. */
  capabilities: Capabilities | null;
  system?: { [key: string]: unknown };
  running_tasks: number;
  last_seen?: string;
}
