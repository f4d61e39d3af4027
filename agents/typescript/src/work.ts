import { taskOf } from "./answers.js";
import type { Conn } from "./conn.js";
import { value } from "./envelope.js";
import { Cancelled, gaveUp, Reason, Refused, refusedFor, Shutdown, spoken, Torn, Unsaid, words } from "./errors.js";
import { Job } from "./job.js";
import { type Heard, read } from "./json.js";
import type { Mail } from "./mail.js";
import type { Notice } from "./notices.js";
import { Postman } from "./postman.js";
import type { Task } from "./tasks.js";
import { parting, troubled } from "./trouble.js";
import { Linked, Running } from "./waiting.js";

/** What an agent does, when one function is not enough. */
export interface Worker {
  /**
   * Does a task and returns its result: an object or a text, or nothing for no more than that
   * it went well. The signal of the job is aborted when the task is cancelled or the agent has
   * to go; then it should return soon.
   */
  do?(job: Job): Promise<unknown>;
  /**
   * Says how a task will be done, an object or a text, when a person wants to know that first.
   * It is called again, with what is wrong in the task's planFeedback, when the plan is sent
   * back. Without it the plan is a sentence that says that there is none. When it fails, a note
   * on the task says so, and the agent leaves the task to people.
   */
  plan?(job: Job): Promise<unknown>;
  /**
   * Deals with a message that came for the agent's actor: one at a time, in order of their
   * numbers, beside the tasks. The signal is aborted when the agent has to go.
   *
   * To return acknowledges the message, and is for topics of which the agent knows nothing as
   * well. To throw says that another agent should deal with it: GO is sent a task.failed that
   * answers it, with the code of a Fatal or FAILED, and then it is acknowledged. That is told
   * by the log alone when the message was a task.failed, or from the bus: it would fail for ever.
   *
   * When the agent has to go, and the reason of the signal or Closed is thrown, the message is
   * not acknowledged, and comes again to the next run. So it does when the agent dies after
   * that: what is done must be right when it is done twice.
   *
   * Without it the agent's messages are passed over, and not acknowledged.
   */
  mail?(mail: Heard<Mail>, signal: AbortSignal): Promise<void>;
  /** How long it is from one heartbeat to the next, in milliseconds; as long as the orchestrator says when it is missing. Those that have mail send them. */
  beat?: number | undefined;
}

const unfinished = Symbol("unfinished");

/** The plan of those who have none. */
const noPlan = "no plan: this agent works as it is told";

/** @internal One call of work. */
export class Work {
  readonly #conn: Conn;
  readonly #worker: Worker;
  readonly #stop: Linked;
  readonly #running = new Running();
  readonly #jobs = new Map<string, Job>(); // by task; one that is cancelled is there no more
  #unfinished = 0;

  constructor(conn: Conn, worker: Worker, signal?: AbortSignal) {
    this.#conn = conn;
    this.#worker = worker;
    this.#stop = new Linked(signal);
  }

  async run(): Promise<void> {
    const { signal } = this.#stop;
    const { mail, beat } = this.#worker;
    if (mail) {
      const postman = new Postman(this.#conn, (m, s) => mail.call(this.#worker, m, s), (trouble) => this.#troubled(trouble));
      void this.#running.go(() => postman.deal(signal));
      void this.#running.go(() => postman.beat(signal, beat));
    }
    for (let e = await this.#conn.next("notices", signal); e; e = await this.#conn.next("notices", signal)) this.#heed(e.notice!);
    this.#stop.abort(this.#conn.over); // which is why there is no more news, if nothing else was
    await this.#running.wait();
    parting(signal.reason, this.#unfinished);
  }

  /** Does what a notice asks for. It does not wait for handlers. */
  #heed(notice: Notice): void {
    if (notice.name === "shutdown") return this.#stop.abort(new Shutdown());
    if (notice.name === "message") {
      if (this.#worker.mail) this.#conn.mailbox.post(notice.payload);
      return;
    }
    const { taskId, reason, message } = notice.payload;
    if (typeof taskId !== "string" || taskId === "") return;
    if (notice.name === "task-assigned") this.#begin(taskId);
    if (notice.name === "task-cancelled") this.#cancel(taskId, reason ?? "");
    if (notice.name === "task-updated") this.#jobs.get(taskId)?.hear(message ?? "");
  }

  /**
   * Starts a job. The orchestrator repeats an assignment when it cannot be sure that it was
   * heard, or when it wants a plan after all; a job that there is already has a look.
   */
  #begin(task: string): void {
    const known = this.#jobs.get(task);
    if (known) return known.hear();
    const job = new Job(this.#conn, task, this.#stop.signal);
    this.#jobs.set(task, job);
    void this.#running.go(() => this.#finish(job));
  }

  /** Stops a job. It is forgotten at once, though its handler may take a while: the task may be assigned again meanwhile. */
  #cancel(task: string, reason: string): void {
    const job = this.#jobs.get(task);
    this.#jobs.delete(task);
    job?.stop(new Cancelled(reason));
  }

  async #finish(job: Job): Promise<void> {
    let failed: unknown;
    try {
      if ((await this.#perform(job)) === unfinished) this.#unfinished++;
    } catch (error) {
      failed = error instanceof Torn ? error : new Error(`task ${job.id}: ${spoken(error)}`);
    }
    if (this.#jobs.get(job.id) === job) this.#jobs.delete(job.id);
    job.letGo();
    if (failed !== undefined) await this.#troubled(failed);
  }

  /** Does a task from its assignment to its report. */
  async #perform(job: Job): Promise<typeof unfinished | void> {
    const cancelled = () => job.signal.reason instanceof Cancelled; // what became of the task is decided
    try {
      if (!(await this.#begun(job))) return;
    } catch (error) {
      if (cancelled()) return;
      if (gaveUp(job.signal, error)) return unfinished;
      throw error;
    }
    if (cancelled()) return;
    let result: unknown;
    try {
      if (!this.#worker.do) throw new Error("this agent has nothing that does tasks");
      result = await this.#worker.do(job);
    } catch (error) {
      if (cancelled()) return;
      if (gaveUp(job.signal, error)) return unfinished;
      return this.#fail(job.id, words(error));
    }
    if (!cancelled()) await this.#complete(job.id, result);
  }

  // How a task comes to the point at which it can be done:
  //
  //	assigned     start-task, which a task that waits for others refuses until it does not
  //	planning     plan, submit-plan
  //	plan_review  a person approves the plan: running; or sends it back: planning
  //	needs_human  a person answers: running
  //	running      do
  //
  // A task that went by role and capabilities is running as soon as its agent was told; of
  // others the agent says itself when it starts.

  /** Gets a task to where it can be done; false when there is nothing to do. */
  async #begun(job: Job): Promise<boolean> {
    for (;;) {
      const news = job.news;
      job.task = await job.look();
      try {
        switch (job.task.state) {
          case "pending":
          case "done":
          case "failed":
          case "cancelled":
            return false;
          case "assigned":
            await this.#start(job);
            return true;
          case "planning":
            await this.#plan(job);
            break;
          case "plan_review":
          case "needs_human":
          case "in_review":
            await job.await(news); // it is not for the agent to go on
            break;
          default:
            return true;
        }
      } catch (error) {
        if (refusedFor(Reason.Blocked, error)) await job.await(news);
        else if (!refusedFor(Reason.WrongState, error)) throw error; // else it has moved since
      }
    }
  }

  /** Says that the work begins. What was delivered to the task stands only in the answer to get-task. */
  async #start(job: Job): Promise<void> {
    const answer = await this.#conn.askPatiently("start-task", { taskId: job.id }, job.signal);
    job.task = read<Task>(taskOf(answer).raw.with("resolved_inputs", job.task.raw.at("resolved_inputs")));
  }

  /**
   * Says how the task will be done. That it cannot be planned is said in a note: the task has
   * not begun, so it cannot fail, and people have to decide.
   */
  async #plan(job: Job): Promise<void> {
    try {
      const plan = value(await this.#worker.plan?.(job)) ?? noPlan;
      await this.#conn.askPatiently("submit-plan", { taskId: job.id, plan }, job.signal);
    } catch (error) {
      if (gaveUp(job.signal, error) || job.signal.aborted || refusedFor(Reason.WrongState, error)) throw error;
      const content = `it cannot be planned: ${spoken(error)}`;
      await this.#conn.askPatiently("add-note", { taskId: job.id, content }, job.signal);
      throw new Error(content, { cause: error });
    }
  }

  /** Reports a result. One that the orchestrator does not take fails the task, which would run for ever otherwise. */
  async #complete(task: string, result: unknown): Promise<void> {
    try {
      await this.#conn.settle("complete-task", { taskId: task, result: value(result) });
    } catch (error) {
      if (error instanceof Unsaid) await this.#fail(task, `its result cannot be told: ${error.message}`);
      else if (error instanceof Refused && error.code === "INVALID_REQUEST" && error.reason === "") {
        await this.#fail(task, `its result was refused: ${error.message}`);
      } else throw error;
    }
  }

  /** Reports that a task cannot be done. */
  async #fail(task: string, why: string): Promise<void> {
    await this.#conn.settle("fail-task", { taskId: task, error: why });
  }

  /** It concerns one task or one message. */
  #troubled(error: unknown): Promise<void> {
    return troubled(this.#conn, error, this.#stop);
  }
}
