import type { Sent, Undelivered } from "../connection/sent.js";
import { gaveUp, spoken, Unsaid, words } from "../wire/errors.js";
import { assignment } from "../wire/fill.js";
import type { Said } from "../wire/said.js";
import type { Assignment, Completion, Loose, TaskExecutionError, TaskInput, TaskProgress } from "../wire/sessions.js";
import type { Member } from "../work/session.js";
import { Desk, Errand, unfinished, whenDue } from "./desk.js";

/** Configures Session.develop. Agents that need only do can pass a function instead. */
export interface Developer {
  /**
   * Does a task and returns its completion. The task's signal is aborted when the task or the
   * session is aborted, or when the agent has to shut down; do should then return soon. If do
   * throws, the task has failed. The orchestrator may assign the task again; its previous_attempts
   * then say what went wrong.
   */
  do(task: Assigned): Promise<Loose<Completion> | void>;
  /**
   * Returns a new completion after one was refused because a file outside the scope was changed:
   * with the file restored, or left out. The refusal has the scope. The task fails if rescope is
   * missing or throws, or if its completions are refused too often.
   */
  rescope?(task: Assigned, refused: Undelivered): Promise<Loose<Completion> | void>;
  /** The number of tasks done at a time, 1 by default. Further tasks are acknowledged and wait. */
  capacity?: number | undefined;
  /** Called with every message, in order, before it is processed. */
  hear?(said: Said): void;
  /**
   * How long a task runs before its progress is reported automatically, and the interval after
   * that, in milliseconds. The defaults are two minutes and 30 seconds.
   */
  progressAfter?: number | undefined;
  progressEvery?: number | undefined;
}

/** Thrown by a developer to fail its task and attach a completion with the work done so far. */
export class Failed extends Error {
  override name = "Failed";
  readonly completion: Loose<Completion>;

  constructor(why: string, completion: Loose<Completion>, options?: ErrorOptions) {
    super(why, options);
    this.completion = completion;
  }
}

const waiting = "waiting for its turn";

/** An assignment as its developer holds it. */
export class Assigned {
  readonly assignment: Assignment;
  /** The message that it came with. */
  readonly said: Said<"task_assignment">;
  readonly #session: Member;
  readonly #signal: () => AbortSignal;
  #now = { percent: 0, step: "", files: [] as string[] };
  #last = -Infinity; // of the latest report

  /** @internal */
  constructor(session: Member, said: Said<"task_assignment">, signal: () => AbortSignal) {
    this.#session = session;
    this.said = said;
    this.assignment = assignment(said.payload);
    this.#signal = signal;
  }

  /**
   * Aborted with Cancelled, Again, Shutdown or Closed, or for the reason of the signal given to
   * develop.
   */
  get signal(): AbortSignal {
    return this.#signal();
  }

  /** The work to do. */
  get task(): TaskInput {
    return this.assignment.task;
  }

  /**
   * Reports to the architect how far the task is, from 0 to 100, its current step, and the files
   * modified so far. The task goes on.
   */
  readonly progress = async (percent: number, step: string, ...files: string[]): Promise<void> => {
    const before = this.#now;
    this.#now = { percent, step, files };
    try {
      await this.#tell(this.#now);
      this.#last = Date.now();
    } catch (error) {
      this.#now = before;
      throw error;
    }
  };

  #tell(now: { percent: number; step: string; files: string[] }): Promise<Sent> {
    return this.#session.report(this.said, { progress_percent: now.percent, current_step: now.step, files_modified_so_far: now.files });
  }

  /** @internal Sets the current step, unless the developer has reported one. */
  at(step: string): void {
    this.#now.step ||= step;
  }

  /** @internal */
  status(): TaskProgress {
    return { task_id: this.task.task_id, progress_percent: this.#now.percent, current_step: this.#now.step || waiting };
  }

  /**
   * @internal Sends progress at regular intervals, so that a long task can be told from one that
   * hangs.
   */
  report(after: number, every: number, signal: AbortSignal): Promise<void> {
    const first = Date.now() + after;
    return whenDue(() => Math.max(first, this.#last + every), signal, async () => {
      this.#last = Date.now();
      await this.#tell({ ...this.#now, step: this.#now.step || waiting }).catch(() => {}); // a broken stream shows in the completion
    });
  }
}

/** @internal One call of develop. */
export class Developing extends Desk {
  readonly developer: Developer;

  constructor(session: Member, developer: Developer) {
    super(session, developer.capacity, developer.hear?.bind(developer));
    this.developer = developer;
  }

  protected errand(said: Said): Errand | undefined {
    return said.message_type === "task_assignment" ? new Doing(this, said) : undefined;
  }
}

/** The errand of an assignment, from its acknowledgment to its completion. */
class Doing extends Errand {
  readonly #desk: Developing;
  readonly #assigned: Assigned;

  constructor(desk: Developing, said: Said<"task_assignment">) {
    super(said.payload.task.task_id, said.payload.task.task_id);
    this.#desk = desk;
    this.#assigned = new Assigned(desk.session, said, () => this.signal);
  }

  status(): TaskProgress {
    return this.#assigned.status();
  }

  async do(): Promise<typeof unfinished | void> {
    await this.#desk.session.acknowledge(this.#assigned.said);
    const { progressAfter = 120_000, progressEvery = 30_000 } = this.#desk.developer;
    const enough = new AbortController();
    const reports = this.#assigned.report(progressAfter, progressEvery, enough.signal);
    return this.#complete(async () => {
      try {
        return await this.#inTurn();
      } finally {
        enough.abort();
        await reports;
      }
    });
  }

  async #inTurn(): Promise<Loose<Completion> | void> {
    const leave = await this.#desk.turn(this);
    try {
      this.#assigned.at("at work");
      return await this.#desk.developer.do(this.#assigned);
    } finally {
      leave();
    }
  }

  /** Reports the outcome of a task, unless the task was cancelled or replaced. */
  async #complete(what: () => Promise<Loose<Completion> | void>): Promise<typeof unfinished | void> {
    let completion: Loose<Completion>;
    try {
      completion = (await what()) ?? {};
      if (this.off) return;
    } catch (error) {
      if (this.off) return;
      if (gaveUp(this.signal, error)) return unfinished;
      completion = failing(error instanceof Failed ? error.completion : {}, this.task, error);
    }
    return this.#tell(completion);
  }

  async #tell(completion: Loose<Completion>): Promise<void> {
    const { session } = this.#desk;
    const { said } = this.#assigned;
    const sent = await session.complete(said, completion).catch((error: unknown) => {
      if (!(error instanceof Unsaid)) throw error;
      return session.complete(said, failing({}, this.task, new Error(`what came of it cannot be told: ${error.message}`)));
    });
    this.#desk.expects(this, sent);
  }

  /**
   * Sends another completion after one was refused. Throws the refusal if no other completion can
   * help.
   */
  async correct(why: Undelivered): Promise<typeof unfinished | void> {
    const { developer } = this.#desk;
    if (this.off) return;
    if (why.scope !== undefined && developer.rescope && this.correctable) {
      return this.#complete(async () => developer.rescope?.(this.#assigned, why));
    }
    if (why.scope !== undefined) {
      const error = new Error(`${spoken(why)}; what may be changed: ${why.scope.join(", ")}`);
      return this.#tell(failing({}, this.task, error, "scope_violation"));
    }
    if (why.details?.error_type !== "malformed") throw why; // for example because the task has ended
    return this.#tell(failing({}, this.task, why));
  }
}

/** Returns the completion of a failed task. */
function failing(what: Loose<Completion>, task: string, error: unknown, kind?: TaskExecutionError["error_type"]): Loose<Completion> {
  const why = words(error);
  const late = error instanceof Error && error.name === "TimeoutError";
  return {
    ...what,
    status: "failed",
    summary: what.summary || why,
    blockers: [...(what.blockers ?? []), why],
    error: what.error ?? {
      task_id: task,
      error_type: kind ?? (late ? "timeout" : "exception"),
      error_message: why,
      recoverable: true,
      suggested_action: "retry",
    },
  };
}
