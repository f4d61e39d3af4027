/**
 * Places for the jobs that are done, in the order in which they were asked for. A job that
 * waits for something gives its place to another one: otherwise two agents that wait for each
 * other would wait for ever. When it goes on it comes before those that have not begun.
 */
export class Places {
  #free: number;
  readonly #back: Place[] = []; // of the jobs that have waited for something
  readonly #line: Place[] = []; // of those that have not begun

  /** There is no bound without a capacity. */
  constructor(capacity: number | undefined) {
    this.#free = capacity !== undefined && capacity >= 1 ? Math.floor(capacity) : Infinity;
  }

  /** Takes a place, or gets into a line for one. First comes who had one before. */
  join(back = false): Place {
    const place = new Place();
    if (this.#free > 0) {
      this.#free--;
      place.settle();
    } else {
      (back ? this.#back : this.#line).push(place);
    }
    return place;
  }

  /** Lets the next one have a place, or gets out of the line for one. */
  leave(place: Place): void {
    for (const line of [this.#back, this.#line]) {
      const at = line.indexOf(place);
      if (at < 0) continue;
      line.splice(at, 1);
      return place.settle();
    }
    const next = this.#back.shift() ?? this.#line.shift();
    if (next) next.settle();
    else this.#free++;
  }
}

/** A place among those at work, or in a line for one. */
export class Place {
  /** @internal */
  settle!: () => void;
  /** Is over when there is no more to wait for: it has become a place, or was given up. */
  readonly settled = new Promise<void>((settle) => (this.settle = settle));
}
