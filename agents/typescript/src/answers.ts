import { type Heard, Raw, read, withRaw } from "./json.js";
import type { Task } from "./tasks.js";

// Parts of answers that consist of one thing. Each part has its text as raw.

/** Returns a part of an answer, or an empty object if it is missing. */
export function partOf<T>(answer: Heard<object>, key: string): Heard<T> {
  const part = answer.raw.at(key);
  if (part === undefined || part.text === "null") return read<T>(Raw.part("{}"));
  if (part.text[0] !== "{") throw new TypeError(`understanding the answer: ${key} must be an object`);
  return read<T>(part);
}

/** Returns a list of an answer, or an empty one if it is missing. */
export function listOf<T>(answer: Heard<object>, key: string): Heard<Heard<T>[]> {
  const list = answer.raw.at(key) ?? Raw.part("[]");
  return withRaw(list.items().map((item) => read<T>(item)), list);
}

/** Returns the task of an answer. */
export function taskOf(answer: Heard<object>): Heard<Task> {
  return partOf<Task>(answer, "task");
}
