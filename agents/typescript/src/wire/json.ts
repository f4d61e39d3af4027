// Reading and writing of JSON. JSON.parse rounds numbers, so the text of a value is kept beside it.

/** Encodes a value on one line. Returns undefined if there is nothing to encode. */
export function spell(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return JSON.stringify(whole(value));
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is no number in JSON`);
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "bigint":
      return String(value);
    case "object":
      return spellObject(value);
    default:
      return undefined;
  }
}

function spellObject(value: object | null): string | undefined {
  if (value === null) return "null";
  if (value instanceof Raw) return value.text;
  if ("toJSON" in value && typeof value.toJSON === "function") return spell(value.toJSON());
  if (Array.isArray(value)) return "[" + value.map((item) => spell(item) ?? "null").join() + "]";
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    const text = spell(member);
    if (text !== undefined) members.push(JSON.stringify(whole(key)) + ":" + text);
  }
  return "{" + members.join() + "}";
}

const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Returns the text. Throws if it has half of a surrogate pair, which has no UTF-8 form. */
function whole(text: string): string {
  if (half.test(text)) throw new TypeError(halfOf);
  return text;
}

const halfOf = "it contains half of a character, an escape such as \\ud800 without its other half";

/** Reports whether a JSON text has an escape such as \ud800 without its other half. */
function hasHalf(text: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  const escape = /\\(?:u([0-9a-fA-F]{4})|[^])/g;
  let high = -1; // where the other half must follow
  for (let found = escape.exec(text); found; found = escape.exec(text)) {
    const unit = found[1] === undefined ? 0 : parseInt(found[1], 16);
    const low = unit >= 0xdc00 && unit <= 0xdfff;
    if (low !== (high === found.index)) return true;
    if (high >= 0 && !low) return true;
    high = unit >= 0xd800 && unit < 0xdc00 ? escape.lastIndex : -1;
  }
  return high >= 0;
}

/** Returns what is wrong with a JSON text, or undefined. */
export function complaint(text: string): string | undefined {
  try {
    JSON.parse(text);
  } catch {
    return "it is not valid JSON";
  }
  return hasHalf(text) ? halfOf : undefined;
}

/**
 * A JSON value as its text, which is sent as it came, digit for digit. A Raw may replace any value
 * to send.
 */
export class Raw {
  readonly text: string;

  /** The text must be one JSON value. It is put on one line. */
  constructor(text: string) {
    const wrong = complaint(text);
    if (wrong !== undefined) throw new SyntaxError(wrong);
    this.text = text.trim().replace(/[\r\n]/g, ""); // JSON has line breaks only between tokens
  }

  /** @internal Returns a part of a text that is known to be valid. */
  static part(text: string): Raw {
    const raw = Object.create(Raw.prototype) as { text: string };
    raw.text = text;
    return raw as Raw;
  }

  /** Returns the value as JSON.parse does: numbers keep only the digits that JavaScript has. */
  value<T = unknown>(): T {
    return JSON.parse(this.text) as T;
  }

  /**
   * Returns the value at a path of keys and list indexes, or undefined. Of duplicate keys the last
   * one counts, as for JSON.parse.
   */
  at(...path: (string | number)[]): Raw | undefined {
    let here: Raw | undefined = this;
    for (const step of path) {
      if (here === undefined) return undefined;
      here = typeof step === "number" ? here.items()[step] : here.members().findLast(step);
    }
    return here;
  }

  /** Returns the members of an object, in their order. Other values have none. */
  members(): Members {
    return new Members(this.text);
  }

  /** @internal Returns the same object with another value under a key, or without the key. */
  with(key: string, value: Raw | undefined): Raw {
    const members = this.members().all.filter(([name]) => name !== key);
    if (value !== undefined) members.push([key, value]);
    return Raw.part("{" + members.map(([name, member]) => `${JSON.stringify(name)}:${member.text}`).join() + "}");
  }

  /** Returns the items of a list. Other values have none. */
  items(): Raw[] {
    const items: Raw[] = [];
    if (this.text[0] !== "[") return items;
    for (let at = space(this.text, 1); this.text[at] !== "]"; at = after(this.text, at)) {
      const end = skip(this.text, at);
      items.push(Raw.part(this.text.slice(at, end)));
      at = end;
    }
    return items;
  }

  toString(): string {
    return this.text;
  }
}

/** The members of an object, with their keys. */
export class Members {
  readonly all: (readonly [key: string, value: Raw])[] = [];

  constructor(text: string) {
    if (text[0] !== "{") return;
    for (let at = space(text, 1); text[at] !== "}"; at = after(text, at)) {
      const colon = space(text, skip(text, at));
      const begin = space(text, colon + 1);
      const end = skip(text, begin);
      const key = JSON.parse(text.slice(at, colon)) as string;
      this.all.push([key, Raw.part(text.slice(begin, end))]);
      at = end;
    }
  }

  /** Returns the values under a key. */
  of(key: string): Raw[] {
    return this.all.filter(([name]) => name === key).map(([, value]) => value);
  }

  /** @internal Returns the last value under a key. */
  findLast(key: string): Raw | undefined {
    return this.of(key).at(-1);
  }
}

// Scanning of a text that is known to be valid JSON.

function space(text: string, at: number): number {
  for (;;) {
    const c = text.charCodeAt(at);
    if (c !== 0x20 && c !== 0x09 && c !== 0x0a && c !== 0x0d) return at;
    at++;
  }
}

/** Returns the position of the next member or item, or of the closing bracket. */
function after(text: string, at: number): number {
  at = space(text, at);
  return text[at] === "," ? space(text, at + 1) : at;
}

function skip(text: string, at: number): number {
  switch (text[at]) {
    case '"':
      return skipString(text, at);
    case "{":
    case "[":
      return skipNested(text, at);
  }
  const end = /[,\]}\s]/g;
  end.lastIndex = at;
  return end.exec(text)?.index ?? text.length;
}

function skipString(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); ; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}

function skipNested(text: string, at: number): number {
  const mark = /["{}[\]]/g;
  let depth = 0;
  for (mark.lastIndex = at; ; ) {
    const found = mark.exec(text);
    if (!found) return text.length;
    if (found[0] === '"') mark.lastIndex = skipString(text, found.index);
    else if (found[0] === "{" || found[0] === "[") depth++;
    else if (--depth === 0) return mark.lastIndex;
  }
}

/** Any object. A Raw is sent digit for digit. */
export type Document = { [key: string]: unknown } | Raw;

/** A value that was read from a line, with its text as raw. */
export type Heard<T> = T & { readonly raw: Raw };

/** Reads a value. Its text becomes the member raw, which is not enumerable. */
export function read<T>(raw: Raw): Heard<T> {
  return withRaw(raw.value<T>(), raw);
}

export function withRaw<T>(value: T, raw: Raw): Heard<T> {
  if (typeof value === "object" && value !== null) Object.defineProperty(value, "raw", { value: raw, enumerable: false });
  return value as Heard<T>;
}

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
