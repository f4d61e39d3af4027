/** Bounds a line, in bytes. No answer comes near it, and it fits into a string. */
const longest = 1 << 28;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Splits a stream into lines. Only LF bytes end a line: a character may span two chunks, and a text
 * may contain other line separators. One CR before the LF is dropped, and a byte order mark at the
 * start of the stream.
 *
 * A line that is too long or not UTF-8 is skipped.
 */
export class Lines {
  #parts: Buffer[] = [];
  #size = 0;
  #begun = false;
  readonly #each: (line: string) => void;

  constructor(each: (line: string) => void) {
    this.#each = each;
  }

  feed(chunk: Buffer): void {
    for (let from = 0; ; ) {
      const end = chunk.indexOf(0x0a, from);
      this.#keep(chunk.subarray(from, end < 0 ? undefined : end));
      if (end < 0) return;
      this.#line();
      from = end + 1;
    }
  }

  /** Ends the stream. A last line needs no LF. */
  end(): void {
    if (this.#size > 0) this.#line();
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > longest) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  #line(): void {
    const [parts, size, first] = [this.#parts, this.#size, !this.#begun];
    this.#parts = [];
    this.#size = 0;
    this.#begun = true;
    if (size > longest) return;
    const text = decode(parts.length === 1 ? parts[0]! : Buffer.concat(parts, size));
    if (text === undefined) return;
    this.#each(text.slice(first && text[0] === "\ufeff" ? 1 : 0, text.endsWith("\r") ? -1 : undefined));
  }
}

function decode(line: Buffer): string | undefined {
  try {
    return utf8.decode(line);
  } catch {
    return undefined;
  }
}
