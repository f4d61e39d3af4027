import { blank } from "./envelope.js";
import { Members, type Raw } from "./json.js";

/** An error in a message. */
export interface Problem {
  /** A JSON pointer to the place (RFC 6901). */
  pointer: string;
  message: string;
}

/** Bounds the problems reported for one message. */
const mostProblems = 20;

/** The maximal length of an id in a session, and of a label of delegated work, in bytes. */
const [longestId, longestLabel] = [200, 4096];

/** Whether a member is required. */
type Need = "needed" | "optional";

/**
 * Reads an object in a message and collects all errors in it. An optional member may be null only
 * if the part is sparing, as in delegated work; it then counts as missing.
 */
export class Part {
  readonly #members: Members;
  readonly #pointer: string;
  readonly #problems: Problem[];
  readonly #sparing: boolean;

  constructor(object: Raw, pointer: string, problems: Problem[], sparing = false) {
    this.#members = object.members();
    this.#pointer = pointer;
    this.#problems = problems;
    this.#sparing = sparing;
  }

  wrong(key: string, message: string): void {
    this.#add(this.#below(key), `${key} ${message}`);
  }

  #add(pointer: string, message: string): void {
    if (this.#problems.length < mostProblems) this.#problems.push({ pointer, message });
  }

  #below(key: string): string {
    return `${this.#pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }

  /** Returns a member, or undefined if it is missing or an error was reported. */
  #find(key: string, must: Need): Raw | undefined {
    const found = this.#members.of(key);
    if (found.length > 1) this.wrong(key, "stands twice");
    else if (found[0]?.text === "null") this.#null(key, must);
    else if (found[0] !== undefined) return found[0];
    else if (must === "needed") this.wrong(key, "is missing");
    return undefined;
  }

  #null(key: string, must: Need): void {
    if (!this.#sparing || must === "needed") this.wrong(key, "must not be null");
  }

  #string(key: string, must: Need): string | undefined {
    const value = this.#find(key, must)?.value();
    if (value === undefined || typeof value === "string") return value;
    this.wrong(key, "must be a string");
    return undefined;
  }

  /** Reads a string that may be empty. */
  text(key: string, must: Need = "needed"): string {
    return this.#string(key, must) ?? "";
  }

  /** Reads a string that is not blank. */
  name(key: string, must: Need = "needed"): string {
    const name = this.#string(key, must);
    if (name !== undefined && blank(name)) this.wrong(key, "must not be empty");
    return name ?? "";
  }

  /** Reads a name that becomes a key. */
  id(key: string, must: Need = "needed"): string {
    const id = this.name(key, must);
    const why = unfit(id, longestId);
    if (why !== undefined) this.wrong(key, why);
    return why === undefined ? id : "";
  }

  /** Reads a name of delegated work. An optional one may be blank. */
  label(key: string, must: Need = "needed"): string {
    const label = must === "needed" ? this.name(key) : this.text(key, must);
    const why = unfit(label, longestLabel);
    if (why !== undefined) this.wrong(key, why);
    return label;
  }

  /** Reads a string that is one of the given ones. */
  word(key: string, of: readonly string[], must: Need = "needed"): string {
    const word = this.#string(key, must);
    if (word !== undefined && !of.includes(word)) this.wrong(key, `must be one of ${list(of)}, not ${JSON.stringify(word.slice(0, 80))}`);
    return word ?? "";
  }

  /** Reads an object without looking into it. */
  object(key: string, must: Need = "needed"): Raw | undefined {
    const value = this.#find(key, must);
    if (value === undefined || value.text[0] === "{") return value;
    this.wrong(key, "must be an object");
    return undefined;
  }

  /** Checks that a value is present. It may be null. */
  anything(key: string): void {
    if (this.#members.of(key)[0]?.text !== "null" || this.#members.of(key).length > 1) this.#find(key, "needed");
  }

  /** Reports an error if a member is present. */
  without(key: string, message: string): void {
    if (this.#members.of(key).length > 0) this.wrong(key, message);
  }

  /** Reports an error if a member is present and does not fit. */
  fits(key: string, fit: boolean, message: string): void {
    if (this.#find(key, "optional") !== undefined && !fit) this.wrong(key, message);
  }

  /** Reports duplicate members. */
  once(...keys: string[]): void {
    for (const key of keys) if (this.#members.of(key).length > 1) this.wrong(key, "stands twice");
  }

  /** Reads a boolean. */
  truth(key: string, must: Need = "needed"): void {
    const value = this.#find(key, must)?.value();
    if (value !== undefined && typeof value !== "boolean") this.wrong(key, "must be true or false");
  }

  /** Reads an integer that is not less than least. */
  whole(key: string, least: number, must: Need = "needed"): number | undefined {
    const value = this.#find(key, must)?.value();
    if (value === undefined) return undefined;
    if (typeof value !== "number") this.wrong(key, "must be a number");
    else if (!Number.isInteger(value) || value > Number.MAX_SAFE_INTEGER || value < least) {
      this.wrong(key, `must be a whole number from ${least} to ${Number.MAX_SAFE_INTEGER}`);
    } else return value;
    return undefined;
  }

  /** Reads a number from 0 to 100. */
  percent(key: string): void {
    const value = this.#find(key, "needed")?.value();
    if (value === undefined) return;
    if (typeof value !== "number") this.wrong(key, "must be a number");
    else if (value < 0 || value > 100) this.wrong(key, "must be a number from 0 to 100");
  }

  /** Reads an ISO 8601 time. */
  moment(key: string, must: Need = "needed"): string {
    const when = this.#string(key, must);
    if (when !== undefined && !isTime(when)) this.wrong(key, `must be an ISO 8601 time, not ${JSON.stringify(when.slice(0, 40))}`);
    return when ?? "";
  }

  /** Reads a list of strings. */
  texts(key: string, must: Need = "needed"): string[] {
    return this.#strings(key, must, () => undefined);
  }

  /** Reads a list of strings that are not blank. */
  names(key: string, must: Need = "needed"): string[] {
    return this.#strings(key, must, (text) => (blank(text) ? "must not be empty" : undefined));
  }

  /** Reads a list of names of delegated work. */
  labels(key: string): void {
    this.#strings(key, "optional", (text) => (blank(text) ? "must not be empty" : unfit(text, longestLabel)));
  }

  /** Reads a list of strings, each one of the given ones. */
  words(key: string, of: readonly string[]): void {
    this.#strings(key, "needed", (text) => (of.includes(text) ? undefined : "must be one of " + list(of)));
  }

  #strings(key: string, must: Need, wrong: (text: string) => string | undefined): string[] {
    return this.#items(key, must).map((item, i) => {
      const text = item.value();
      const why = typeof text === "string" ? wrong(text) : "must be a string";
      if (why !== undefined) this.#add(`${this.#below(key)}/${i}`, `${key}: item ${i} ${why}`);
      return String(text);
    });
  }

  #items(key: string, must: Need): Raw[] {
    const value = this.#find(key, must);
    if (value !== undefined && value.text[0] !== "[") this.wrong(key, "must be a list");
    return value?.items() ?? [];
  }

  /** Reads a list of objects, each with read. */
  each(key: string, read: (item: Part) => void, must: Need = "needed"): void {
    this.#items(key, must).forEach((item, i) => {
      const pointer = `${this.#below(key)}/${i}`;
      if (item.text[0] === "{") read(new Part(item, pointer, this.#problems, this.#sparing));
      else this.#add(pointer, `${key}: item ${i} must be an object`);
    });
  }

  /** Reads an object with read. */
  inside(key: string, read: (part: Part) => void, must: Need = "needed"): void {
    const value = this.object(key, must);
    if (value !== undefined) read(new Part(value, this.#below(key), this.#problems, this.#sparing));
  }

  /** Reads every member of the object with read. All must be objects. */
  eachMember(read: (part: Part) => void): void {
    for (const key of new Set(this.#members.all.map(([name]) => name))) this.inside(key, read);
  }
}

/** Returns why a text is not a valid name, or undefined. */
function unfit(text: string, longest: number): string | undefined {
  if (Buffer.byteLength(text) > longest) return `must not be longer than ${longest} bytes`;
  return /\p{Cc}/u.test(text) ? "must not have control characters in it" : undefined;
}

/** Joins words for people: a, b or c. */
function list(words: readonly string[]): string {
  return words.slice(0, -1).join(", ") + " or " + words.at(-1);
}

const time = /^\d{4}-\d\d-\d\d(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?)?$/;
const basicTime = /^(\d{4})(\d\d)(\d\d)T([01]\d|2[0-3])[0-5]\d[0-5]\d(Z|[+-]\d{4})$/;

function isTime(when: string): boolean {
  if (!time.test(when) && !basicTime.test(when)) return false;
  const day = when.replace(basicTime, "$1-$2-$3").slice(0, 10);
  const at = new Date(day + "T00:00:00Z");
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day); // no 30th of February
}
