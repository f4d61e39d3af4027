/**
 * Places for running jobs, given out in the order of requests. A waiting job gives up its place;
 * otherwise two agents that wait for each other would deadlock. A job that continues goes before
 * jobs that have not begun.
 */
export class Places {
  #free: number;
  readonly #back: Place[] = []; // of jobs that have finished waiting
  readonly #line: Place[] = []; // of jobs that have not begun

  /** Without a capacity there is no limit. */
  constructor(capacity: number | undefined) {
    this.#free = capacity !== undefined && capacity >= 1 ? Math.floor(capacity) : Infinity;
  }

  /** Takes a place, or joins a line for one. Jobs that get their place back go first. */
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

  /** Passes a place to the next in line, or leaves the line. */
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

/** A place for a running job, or a position in line for one. */
export class Place {
  /** @internal */
  settle!: () => void;
  /** Settled when the place is granted or given up. */
  readonly settled = new Promise<void>((settle) => (this.settle = settle));
}
