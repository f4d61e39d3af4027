import { Raw } from "../src/wire/json.js";

/** The texts that stand for others in a dialogue, by their names. */
export type Names = Map<string, string>;

/** How JSON is held against JSON. */
export interface Manner {
  /** All members count; else those that are expected, and null is the same as nothing. */
  whole: boolean;
  /** Numbers are what JavaScript keeps of them. */
  rounded?: boolean;
  names: Names;
  /** Names may be bound, and UUIDs are remembered. */
  bind: boolean;
  uuids: Set<string>;
}

/** Says where two values differ; undefined when they do not. */
export function difference(want: Raw, got: Raw | undefined, how: Manner, place = ""): string | undefined {
  const differs = `${place || "/"}: want ${want.text.slice(0, 300)}, got ${got?.text.slice(0, 300)}`;
  if (!how.whole && (want.text === "null" || want.text === '"$any"')) {
    return got === undefined || got.text === "null" || want.text !== "null" ? undefined : differs;
  }
  if (got === undefined) return differs;
  switch (want.text[0]) {
    case "{":
      return got.text[0] === "{" ? members(want, got, how, place) : differs;
    case "[":
      return got.text[0] === "[" ? items(want, got, how, place) : differs;
    case '"':
      return text(want.value<string>(), got, how) ? undefined : differs;
    case "t":
    case "f":
    case "n":
      return want.text === got.text ? undefined : differs;
  }
  return number(want.text, how) === number(got.text, how) ? undefined : differs;
}

function members(want: Raw, got: Raw, how: Manner, place: string): string | undefined {
  for (const [key] of want.members().all) {
    const found = difference(want.at(key)!, got.at(key), how, `${place}/${key}`);
    if (found !== undefined) return found;
  }
  if (!how.whole) return undefined;
  const more = got.members().all.find(([key]) => want.at(key) === undefined);
  return more && `${place}/${more[0]}: is not wanted`;
}

function items(want: Raw, got: Raw, how: Manner, place: string): string | undefined {
  const [wanted, found] = [want.items(), got.items()];
  if (wanted.length !== found.length) return `${place}: want ${wanted.length} items, got ${found.length}`;
  for (const [i, item] of wanted.entries()) {
    const why = difference(item, found[i], how, `${place}/${i}`);
    if (why !== undefined) return why;
  }
  return undefined;
}

const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function text(want: string, got: Raw, how: Manner): boolean {
  if (want === "$any") return true;
  const value = got.text[0] === '"' ? got.value<string>() : undefined;
  if (value === undefined) return false;
  if (want === "$time") return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) && !Number.isNaN(Date.parse(value));
  if (want === "$text") return value !== "";
  if (want === "$uuid") return uuid4.test(value) && how.uuids.size < how.uuids.add(value).size;
  if (want.startsWith("$has:")) return value.includes(want.slice("$has:".length));
  const name = /^\$([0-9A-Za-z]+)$/.exec(want)?.[1];
  if (name === undefined) return want === value;
  const known = how.names.get(name);
  if (known !== undefined || !how.bind) return known === value;
  if (value === "" || [...how.names.values()].includes(value)) return false;
  how.names.set(name, value);
  return true;
}

/** A number as its digits and its exponent: 1.10 is 1.1, and 1e1 is 10. */
function number(text: string, how: Manner): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(how.rounded ? String(Number(text)) : text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${sign}${short}e${Number(exponent) - fraction.length + digits.length - short.length}`;
}

/** Puts what is known in the place of names, and makes what is to be repeated. */
export function resolve(text: string, names: Names): string {
  return text
    .replace(/"\$repeat:(\d+):([^"]*)"/g, (_, count: string, what: string) => `"${what.repeat(Number(count))}"`)
    .replace(/"\$([0-9A-Za-z]+)"/g, (all, name: string) => (names.has(name) ? JSON.stringify(names.get(name)) : all));
}

/** A value as a program would have it: a number that JavaScript would round is a Raw. */
export function plain(raw: Raw): any {
  switch (raw.text[0]) {
    case "{":
      return Object.fromEntries(raw.members().all.map(([key, value]) => [key, plain(value)]));
    case "[":
      return raw.items().map(plain);
    case '"':
    case "t":
    case "f":
    case "n":
      return raw.value();
  }
  const exact: Manner = { whole: true, names: new Map(), bind: false, uuids: new Set() };
  return number(raw.text, exact) === number(String(Number(raw.text)), exact) ? raw.value() : raw;
}
