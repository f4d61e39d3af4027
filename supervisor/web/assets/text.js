// Text for people: times, sizes, ids, and text of agents made harmless to read.

// The characters that Visible in wire/visible.go escapes; a test compares them, and -update writes them.
const hidden = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b\u200e-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// Combining marks beyond the eighth on a letter are written out, too.
const piled = /(?<=(?:[\p{Mn}\p{Me}][\u200c\u200d]*){8})[\p{Mn}\p{Me}]/gu;

/**
 * Returns the text with its invisible characters written out, as in \x1b and \u202e. Line ends
 * stay if lines is true.
 * @param {unknown} text
 * @param {boolean} [lines]
 */
export function visible(text, lines) {
  return String(text ?? "").replace(piled, escaped).replace(hidden, (c) => {
    if (lines && c === "\n") return c;
    if (c === "\n") return "\\n";
    if (c === "\r") return "\\r";
    return escaped(c);
  });
}

/** Returns a character written out, as in \x1b, \u202e and \U000e0041. @param {string} c */
function escaped(c) {
  const code = c.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code < 0x80) return "\\x" + digits.padStart(2, "0");
  return code <= 0xffff ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
}

/**
 * Returns visible text of at most n characters, on one line.
 * @param {unknown} text
 * @param {number} [n]
 */
export function clip(text, n = 300) {
  const all = String(text ?? "");
  const cut = all.length > n ? all.slice(0, n).replace(/[\ud800-\udbff]$/, "") + "…" : all;
  return visible(cut);
}

/** Returns the first line of a text, visible and at most n characters long. @param {unknown} text @param {number} [n] */
export const firstLine = (text, n) => clip(String(text ?? "").trimStart().split("\n")[0], n);

const pen = /** @type {CanvasRenderingContext2D|undefined} */ (globalThis.document?.createElement("canvas").getContext("2d") ?? undefined);

/** Returns visible text, cut where it is wider in a font of the page. @param {string} text @param {string} font its weight and size @param {number} width in pixels */
export function fitted(text, font, width) {
  const all = clip(text);
  if (!pen) return all;
  pen.font = `${font} ${getComputedStyle(document.documentElement).fontFamily}`;
  if (pen.measureText(all).width <= width) return all;
  let n = all.length;
  while (n > 1 && pen.measureText(all.slice(0, n) + "…").width > width) n--;
  return all.slice(0, n).replace(/[\ud800-\udbff]$/, "").trimEnd() + "…";
}

/** Returns the last 20 lines of output. @param {string[]} lines */
export const lastLines = (lines) => (lines.length > 20 ? "…\n" : "") + visible(lines.slice(-20).join("\n").trimEnd(), true);

/** Returns the first 8 characters of a UUID, and any other id whole. @param {string} id */
export function short(id) {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(id) ? id.slice(0, 8) : clip(id, 24);
}

/** Returns an id as a word of a command. @param {string} id */
export const idWord = (id) => (/^[0-9a-f]{8}-[0-9a-f]{4}-/.test(id) ? id.slice(0, 8) : quoted(id));

/** Returns a duration in its two largest units. @param {number} ms */
export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, "0")} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Returns a duration in its largest unit. @param {number} ms */
export function brief(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** Returns the local time of day of a timestamp, with its date if that is another day. @param {string} [at] */
export function clock(at) {
  if (!at) return "";
  const time = new Date(at);
  if (isNaN(time.getTime())) return visible(at);
  const day = time.toDateString() === new Date().toDateString() ? "" : time.toLocaleDateString([], { month: "short", day: "numeric" }) + " ";
  return day + time.toLocaleTimeString([], { hour12: false });
}

/** Returns a number of bytes in the unit that fits. @param {number} n */
export function bytes(n) {
  if (!n) return "0 B";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const i = Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return `${(n / 2 ** (10 * i)).toFixed(i > 0 && n / 2 ** (10 * i) < 10 ? 1 : 0)} ${units[i]}`;
}

/** Returns a number and its noun. @param {number} n @param {string} one @param {string} [many] */
export function count(n, one, many = one + "s") {
  return `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;
}

/** Returns a word as a shell reads it. @param {unknown} word */
export function quoted(word) {
  const text = String(word ?? "");
  if (/^[A-Za-z0-9_./:@%+=,-]+$/.test(text)) return text;
  return "'" + visible(text).replaceAll("'", `'\\''`) + "'";
}

/** Returns the words in the payload of a message of a session. @param {any} p */
export const wordsOf = (p) => String(p?.summary ?? p?.current_step ?? p?.task?.task_description ?? p?.message ?? p?.reason ?? p?.question ?? "");

/** Returns a value as indented JSON with its invisible characters written out. @param {unknown} value */
export function pretty(value) {
  if (typeof value === "string") return visible(value, true);
  return visible(JSON.stringify(value, null, 2), true);
}

/** Returns a small number that is always the same for a text. @param {string} text @param {number} n */
export function hash(text, n) {
  let h = 7;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0;
  return h % n;
}
