import { type Heard, Raw, read, withRaw } from "./json.js";
import type { Task } from "./tasks.js";

// What an answer is about, where all of it is one thing. Each part has its text as its raw.

/** A part of an answer; an empty object when it is not there. */
export function partOf<T>(answer: Heard<object>, key: string): Heard<T> {
  const part = answer.raw.at(key);
  if (part === undefined || part.text === "null") return read<T>(Raw.part("{}"));
  if (part.text[0] !== "{") throw new TypeError(`understanding the answer: ${key} must be an object`);
  return read<T>(part);
}

/** A list of an answer; an empty one when it is not there. */
export function listOf<T>(answer: Heard<object>, key: string): Heard<Heard<T>[]> {
  const list = answer.raw.at(key) ?? Raw.part("[]");
  return withRaw(list.items().map((item) => read<T>(item)), list);
}

/** The task of an answer. */
export function taskOf(answer: Heard<object>): Heard<Task> {
  return partOf<Task>(answer, "task");
}
