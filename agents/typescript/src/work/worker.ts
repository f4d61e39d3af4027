import type { Notice } from "../connection/inbox.js";
import { Linked } from "../connection/waiting.js";
import { value } from "../wire/envelope.js";
import { Cancelled, gaveUp, Reason, Refused, refusedFor, Shutdown, spoken, Torn, Unsaid, words } from "../wire/errors.js";
import { type Heard, partOf, read } from "../wire/json.js";
import type { Mail } from "../wire/documents.js";
import type { Task } from "../wire/documents.js";
import type { Exchange } from "./exchange.js";
import { Job } from "./job.js";
import { parting, Running, troubled } from "./loops.js";
import { Postman } from "./postman.js";

/** Configures Conn.work. Agents that need only do can pass a function instead. */
export interface Worker {
  /**
   * Does a task and returns its result: any JSON value, or undefined for success without a
   * result. If the result fails its verification so often that a person is asked, do is called
   * again after the answer, which is in the help of its task. The job's signal is aborted when
   * the task is cancelled or the agent has to shut down; do should then return soon.
   */
  do?(job: Job): unknown;
  /**
   * Returns a plan for a task, an object or a text, if a person has to approve it. It is called
   * again when the plan is sent back; the task's planFeedback then has the reason. If plan is
   * missing, a default text is submitted. If it fails, the agent adds a note to the task and leaves
   * it to people.
   */
  plan?(job: Job): unknown;
  /**
   * Handles a message to the agent's actor. It is called with one message at a time, in the order
   * of their numbers, beside the tasks. The signal is aborted when the agent has to shut down.
   *
   * If mail returns, the message is acknowledged; return for unknown topics too. If it throws, the
   * agent sends GO a task.failed and then acknowledges the message. The code is that of a Fatal,
   * otherwise FAILED. The failure of a task.failed or of mail from the bus is only logged, because
   * reporting it could go on for ever.
   *
   * At a shutdown, mail may throw the reason of its signal, or Closed. The message is then not
   * acknowledged, and the next run gets it again. The same happens if the agent dies right after
   * mail has returned. So mail must be safe to repeat.
   *
   * Without mail, messages are ignored and not acknowledged.
   */
  mail?(mail: Heard<Mail>, signal: AbortSignal): Promise<void>;
  /**
   * The interval between heartbeats, in milliseconds; the default is the orchestrator's. Heartbeats
   * are sent only with mail.
   */
  beat?: number | undefined;
}

const unfinished = Symbol("unfinished");

/** The plan of a worker without a plan function. */
const noPlan = "no plan: this agent works as it is told";

/** Reasons for which a completion is refused until the agent has corrected its work. */
const uncorrected = ["not_verified", "result", "no_workspace"];

/** @internal One call of work. */
export class Work {
  readonly #conn: Exchange;
  readonly #worker: Worker;
  readonly #stop: Linked;
  readonly #running = new Running();
  readonly #jobs = new Map<string, Job>(); // by task; without cancelled jobs
  #unfinished = 0;

  constructor(conn: Exchange, worker: Worker, signal?: AbortSignal) {
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
    this.#stop.abort(this.#conn.over); // unless it was aborted before, for another reason
    await this.#running.wait();
    parting(signal.reason, this.#unfinished);
  }

  /** Handles a notice. It does not wait for handlers. */
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
   * Starts a job. The orchestrator repeats an assignment if its arrival is uncertain, or if it
   * wants a plan after all. A running job then looks at its task.
   */
  #begin(task: string): void {
    const known = this.#jobs.get(task);
    if (known) return known.hear();
    const job = new Job(this.#conn, task, this.#stop.signal);
    this.#jobs.set(task, job);
    void this.#running.go(() => this.#finish(job));
  }

  /**
   * Stops a job. It is removed at once, even if its handler still runs, because the task may be
   * assigned again.
   */
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

  /**
   * Does a task from its assignment to its report. If a person is asked whether the result will do, it
   * waits for the answer and does the task again.
   */
  async #perform(job: Job): Promise<typeof unfinished | void> {
    const cancelled = () => job.signal.reason instanceof Cancelled; // a cancelled task is not reported
    try {
      for (;;) {
        if (!(await this.#begun(job)) || cancelled()) return;
        let result: unknown;
        try {
          if (!this.#worker.do) throw new Error("this agent has nothing that does tasks");
          result = await this.#worker.do(job);
        } catch (error) {
          if (cancelled() || gaveUp(job.signal, error)) throw error;
          return this.#fail(job.id, words(error));
        }
        if (cancelled() || !(await this.#complete(job, result))) return;
        job.discard();
      }
    } catch (error) {
      if (cancelled()) return;
      if (gaveUp(job.signal, error)) return unfinished;
      throw error;
    }
  }

  // States of a task before it can be done, and what moves it on:
  //
  //     assigned     start-task; refused as long as the task waits for others
  //     planning     plan, submit-plan
  //     plan_review  a person approves the plan: running; or sends it back: planning
  //     needs_human  a person answers: running
  //     running      do
  //
  // A task that was matched by role and capabilities is running once its agent is notified. The
  // agent itself starts any other task.

  /** Brings a task to the state running. Returns false if there is nothing to do. */
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
            await job.await(news); // others have to act first
            break;
          default:
            return true;
        }
      } catch (error) {
        if (refusedFor(Reason.Blocked, error)) await job.await(news);
        else if (!refusedFor(Reason.WrongState, error)) throw error; // otherwise it has moved on
      }
    }
  }

  /**
   * Reports the start of the work. Keeps resolved_inputs, because only the answer to get-task
   * contains them.
   */
  async #start(job: Job): Promise<void> {
    const answer = await this.#conn.askPatiently("start-task", { taskId: job.id }, job.signal);
    job.task = read<Task>(partOf<Task>(answer, "task").raw.with("resolved_inputs", job.task.raw.at("resolved_inputs")));
  }

  /**
   * Submits a plan for the task. If planning fails, adds a note for people: a task that has not
   * begun cannot fail.
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

  /**
   * Reports a result, and returns whether the task has to be done again because a person is asked. If
   * the orchestrator refuses the result, the task fails; otherwise it would run for ever. It may be
   * tried again if what was done could not be verified.
   */
  async #complete(job: Job, result: unknown): Promise<boolean> {
    try {
      await this.#deliver(job, result);
    } catch (error) {
      if (refusedFor("needs_human", error)) return true;
      if (error instanceof Unsaid) await this.#fail(job.id, `its result cannot be told: ${error.message}`);
      else if (error instanceof Refused && (uncorrected.includes(error.reason) || (error.reason === "" && error.code === "INVALID_REQUEST"))) {
        await this.#fail(job.id, `its result was refused: ${error.message}`, error.reason !== "" || undefined);
      } else throw error;
    }
    return false;
  }

  /** Asks for the completion. If its verification is interrupted, asks again after the next news. */
  async #deliver(job: Job, result: unknown): Promise<void> {
    const artifacts = job.made.length > 0 ? job.made : undefined;
    for (;;) {
      const { news } = job;
      try {
        await this.#conn.settle("complete-task", { taskId: job.id, result: value(result), artifacts });
        return;
      } catch (error) {
        if (!refusedFor("interrupted", error)) throw error;
      }
      await job.await(news);
    }
  }

  /** Reports that a task failed. */
  async #fail(task: string, why: string, retryable?: boolean): Promise<void> {
    await this.#conn.settle("fail-task", { taskId: task, error: why, retryable });
  }

  /** Reports the error of one task or one message. */
  #troubled(error: unknown): Promise<void> {
    return troubled(this.#conn, error, this.#stop);
  }
}
