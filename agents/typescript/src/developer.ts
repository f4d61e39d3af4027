import { Desk, Errand, unfinished, whenDue } from "./desk.js";
import { gaveUp, spoken, Unsaid, words } from "./errors.js";
import { assignment } from "./fill.js";
import type { Said } from "./said.js";
import type { Sent, Undelivered } from "./sent.js";
import type { Session } from "./session.js";
import type { Assignment, Completion, Loose, TaskExecutionError, TaskInput, TaskProgress } from "./sessions.js";

/** What an agent does that is given tasks in a session, when one function is not enough. */
export interface Developer {
  /**
   * Does a task and says what came of it. The signal of the task is aborted when the task
   * or the session is, or the agent has to go; then it should return soon. When it throws,
   * the task has failed. The orchestrator may want one more try: then the task is assigned
   * again, and the previous attempts in it say what went wrong.
   */
  do(task: Assigned): Promise<Loose<Completion> | void>;
  /**
   * Says anew what came of a task whose completion was refused because a file was changed
   * that was not to be: once it is as it was, or without it. The refusal has the scope.
   * When it fails, or is refused again and again, or when there is none, so has the task.
   */
  rescope?(task: Assigned, refused: Undelivered): Promise<Loose<Completion> | void>;
  /** How many tasks are done at a time, one when it is missing. The others are acknowledged and wait. */
  capacity?: number | undefined;
  /** Is told every message before it is heeded, in order. */
  hear?(said: Said): void;
  /**
   * Progress of a task is told by itself once it has taken longer than progressAfter,
   * every progressEvery, in milliseconds: two minutes and 30 seconds when they are missing.
   */
  progressAfter?: number | undefined;
  progressEvery?: number | undefined;
}

/** A task has failed, and there is more to say of it than why. */
export class Failed extends Error {
  override name = "Failed";
  readonly completion: Loose<Completion>;

  constructor(why: string, completion: Loose<Completion>, options?: ErrorOptions) {
    super(why, options);
    this.completion = completion;
  }
}

const waiting = "waiting for its turn";

/** An assignment, for the developer who has it. */
export class Assigned {
  readonly assignment: Assignment;
  /** The message that it came with. */
  readonly said: Said<"task_assignment">;
  readonly #session: Session;
  readonly #signal: () => AbortSignal;
  #now = { percent: 0, step: "", files: [] as string[] };
  #last = -Infinity; // of the latest report

  /** @internal */
  constructor(session: Session, said: Said<"task_assignment">, signal: () => AbortSignal) {
    this.#session = session;
    this.said = said;
    this.assignment = assignment(said.payload);
    this.#signal = signal;
  }

  /** Is aborted with Cancelled, Again, Shutdown or Closed, or as the caller of develop says. */
  get signal(): AbortSignal {
    return this.#signal();
  }

  /** What there is to do. */
  get task(): TaskInput {
    return this.assignment.task;
  }

  /** Tells the architect how far the task is, from 0 to 100, what is done just now, and which files have been modified so far. */
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

  /** @internal Says what the developer is at, as long as it does not say so itself. */
  at(step: string): void {
    this.#now.step ||= step;
  }

  /** @internal */
  status(): TaskProgress {
    return { task_id: this.task.task_id, progress_percent: this.#now.percent, current_step: this.#now.step || waiting };
  }

  /** @internal Tells again and again how far the task is: others cannot tell a long task from one that will never end. */
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

  constructor(session: Session, developer: Developer) {
    super(session, developer.capacity, developer.hear?.bind(developer));
    this.developer = developer;
  }

  protected errand(said: Said): Errand | undefined {
    return said.message_type === "task_assignment" ? new Doing(this, said) : undefined;
  }
}

/** What there is to do for an assignment, from its acknowledgment to its completion. */
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

  /** Says what came of a task, if a caller still waits. */
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

  /** Says anew what came of a task. Something must be said about it, if it can be. */
  async mend(why: Undelivered): Promise<typeof unfinished | void> {
    const { developer } = this.#desk;
    if (this.off) return;
    if (why.scope !== undefined && developer.rescope && this.mendable) {
      return this.#complete(async () => developer.rescope?.(this.#assigned, why));
    }
    if (why.scope !== undefined) {
      const error = new Error(`${spoken(why)}; what may be changed: ${why.scope.join(", ")}`);
      return this.#tell(failing({}, this.task, error, "scope_violation"));
    }
    if (why.details?.error_type !== "malformed") throw why; // such as that the task has ended, which is no more than trouble
    return this.#tell(failing({}, this.task, why));
  }
}

/** The completion of a task that has failed. */
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
