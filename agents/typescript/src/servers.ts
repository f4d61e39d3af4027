import type { Document } from "./mail.js";
import type { Role } from "./tasks.js";

/** Which agents are wanted. */
export interface QueryAgents {
  role?: Role;
  status?: AgentStatus;
  /** Those that have all of them. */
  capabilities?: string[];
}

/** What an agent may be doing. */
export type AgentStatus = "idle" | "busy" | "starting" | "stopping" | "stale" | "offline" | "crashed";

/** An agent as other agents see it. */
export interface Agent {
  id: string;
  role: Role;
  status: AgentStatus;
  capabilities: string[];
  /** An id; null: none. */
  currentTask: string | null;
}

/** What an agent can do now, in place of what was known of it. What is missing stays. */
export interface UpdateCapabilities {
  capabilities?: Capabilities | Document;
  /** What else there is to say, of the machine it runs on. */
  system?: Document;
}

/** What an agent can do. */
export interface Capabilities {
  $schema?: string;
  repos?: { [name: string]: { path?: string; languages?: string[]; tools?: string[] } };
  languages?: string[];
  tools?: string[];
  environments?: string[];
  tags?: string[];
  /** Tasks that may run at a time: 1 when it is missing. */
  max_concurrent_tasks?: number;
}

/** An agent as those see it who call agents servers. */
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
  /** Null when it has said none. */
  capabilities: Capabilities | null;
  system?: { [key: string]: unknown };
  running_tasks: number;
  last_seen?: string;
}
