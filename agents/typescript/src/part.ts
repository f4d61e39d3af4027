import { blank } from "./envelope.js";
import { Members, type Raw } from "./json.js";

/** One of the things that are wrong with a message. */
export interface Problem {
  /** To the place, as RFC 6901 has it. */
  pointer: string;
  message: string;
}

/** How many problems of one message are told. */
const mostProblems = 20;

/** How long an id may be in a session, and how long of delegated work, in bytes. */
const [longestId, longestLabel] = [200, 4096];

/** Whether a member must be there. */
type Need = "needed" | "optional";

/**
 * An object in a message that is judged as a whole: its author is told everything
 * at once. Null is no way to leave something out, but where programs are sparing: there it
 * counts as nothing for what may be missing.
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

  /** A member to read; undefined when there is none, or what is wrong was told. */
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

  /** A string that may be empty. */
  text(key: string, must: Need = "needed"): string {
    return this.#string(key, must) ?? "";
  }

  /** A string that says something. */
  name(key: string, must: Need = "needed"): string {
    const name = this.#string(key, must);
    if (name !== undefined && blank(name)) this.wrong(key, "must not be empty");
    return name ?? "";
  }

  /** A name that others refer to: it becomes a key. */
  id(key: string, must: Need = "needed"): string {
    const id = this.name(key, must);
    const why = unfit(id, longestId);
    if (why !== undefined) this.wrong(key, why);
    return why === undefined ? id : "";
  }

  /** A name of delegated work. One that may be missing may say nothing, too. */
  label(key: string, must: Need = "needed"): string {
    const label = must === "needed" ? this.name(key) : this.text(key, must);
    const why = unfit(label, longestLabel);
    if (why !== undefined) this.wrong(key, why);
    return label;
  }

  /** One of a few. */
  word(key: string, of: readonly string[], must: Need = "needed"): string {
    const word = this.#string(key, must);
    if (word !== undefined && !of.includes(word)) this.wrong(key, `must be one of ${list(of)}, not ${JSON.stringify(word.slice(0, 80))}`);
    return word ?? "";
  }

  /** An object that is not looked into. */
  object(key: string, must: Need = "needed"): Raw | undefined {
    const value = this.#find(key, must);
    if (value === undefined || value.text[0] === "{") return value;
    this.wrong(key, "must be an object");
    return undefined;
  }

  /** A value of any kind that must be there, and may be null. */
  anything(key: string): void {
    if (this.#members.of(key)[0]?.text !== "null" || this.#members.of(key).length > 1) this.#find(key, "needed");
  }

  /** Refuses a member, whatever it is. */
  without(key: string, message: string): void {
    if (this.#members.of(key).length > 0) this.wrong(key, message);
  }

  /** A value of any kind that may be missing, and must be unless it fits. */
  fits(key: string, fit: boolean, message: string): void {
    if (this.#find(key, "optional") !== undefined && !fit) this.wrong(key, message);
  }

  /** Refuses members that stand twice. */
  once(...keys: string[]): void {
    for (const key of keys) if (this.#members.of(key).length > 1) this.wrong(key, "stands twice");
  }

  /** A yes or no. */
  truth(key: string, must: Need = "needed"): void {
    const value = this.#find(key, must)?.value();
    if (value !== undefined && typeof value !== "boolean") this.wrong(key, "must be true or false");
  }

  /** A whole number that is not less than least. */
  whole(key: string, least: number, must: Need = "needed"): number | undefined {
    const value = this.#find(key, must)?.value();
    if (value === undefined) return undefined;
    if (typeof value !== "number") this.wrong(key, "must be a number");
    else if (!Number.isInteger(value) || value > Number.MAX_SAFE_INTEGER || value < least) {
      this.wrong(key, `must be a whole number from ${least} to ${Number.MAX_SAFE_INTEGER}`);
    } else return value;
    return undefined;
  }

  /** A number from 0 to 100. */
  percent(key: string): void {
    const value = this.#find(key, "needed")?.value();
    if (value === undefined) return;
    if (typeof value !== "number") this.wrong(key, "must be a number");
    else if (value < 0 || value > 100) this.wrong(key, "must be a number from 0 to 100");
  }

  /** An ISO 8601 time. */
  moment(key: string, must: Need = "needed"): string {
    const when = this.#string(key, must);
    if (when !== undefined && !isTime(when)) this.wrong(key, `must be an ISO 8601 time, not ${JSON.stringify(when.slice(0, 40))}`);
    return when ?? "";
  }

  /** A list of strings. */
  texts(key: string, must: Need = "needed"): string[] {
    return this.#strings(key, must, () => undefined);
  }

  /** A list of strings that say something. */
  names(key: string, must: Need = "needed"): string[] {
    return this.#strings(key, must, (text) => (blank(text) ? "must not be empty" : undefined));
  }

  /** A list of names of delegated work. */
  labels(key: string): void {
    this.#strings(key, "optional", (text) => (blank(text) ? "must not be empty" : unfit(text, longestLabel)));
  }

  /** A list of strings out of a few. */
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

  /** A list of objects, each of which is read. */
  each(key: string, read: (item: Part) => void, must: Need = "needed"): void {
    this.#items(key, must).forEach((item, i) => {
      const pointer = `${this.#below(key)}/${i}`;
      if (item.text[0] === "{") read(new Part(item, pointer, this.#problems, this.#sparing));
      else this.#add(pointer, `${key}: item ${i} must be an object`);
    });
  }

  /** A member that is an object. */
  inside(key: string, read: (part: Part) => void, must: Need = "needed"): void {
    const value = this.object(key, must);
    if (value !== undefined) read(new Part(value, this.#below(key), this.#problems, this.#sparing));
  }

  /** Every member of the object; all must be objects. */
  eachMember(read: (part: Part) => void): void {
    for (const key of new Set(this.#members.all.map(([name]) => name))) this.inside(key, read);
  }
}

/** Why a text is no name; undefined when it may be one. */
function unfit(text: string, longest: number): string | undefined {
  if (Buffer.byteLength(text) > longest) return `must not be longer than ${longest} bytes`;
  return /\p{Cc}/u.test(text) ? "must not have control characters in it" : undefined;
}

/** Spells words for people: a, b or c. */
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
