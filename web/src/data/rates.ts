// Rates out of counters: what is counted since the start of the head, made figures of the last seconds.
import type { Counters } from './types';

export interface Rates {
  reads: number;
  writes: number;
  readBytes: number;
  writeBytes: number;
}

interface Reading {
  at: number;
  counters: Counters;
}

/** Rates over the last few readings of each thing: one second alone jumps too much to be read. */
export class Meter {
  private readings = new Map<string, Reading[]>();

  constructor(private readonly keep = 4) {}

  /** Takes a reading of all things; those that are gone are forgotten. `at` in milliseconds. */
  take(at: number, things: Iterable<readonly [string, Counters]>): Map<string, Rates> {
    const next = new Map<string, Reading[]>();
    const rates = new Map<string, Rates>();
    for (const [key, counters] of things) {
      let past = this.readings.get(key) ?? [];
      const last = past[past.length - 1];
      // Counters begin at 0 when a head starts or another one leads.
      if (last && (counters.reads < last.counters.reads || counters.writes < last.counters.writes)) past = [];
      past = [...past, { at, counters }].slice(-this.keep);
      next.set(key, past);
      // One reading makes no rate, and no rate is not zero.
      if (past.length > 1) rates.set(key, between(past[0]!, past[past.length - 1]!));
    }
    this.readings = next;
    return rates;
  }
}

function between(a: Reading, b: Reading): Rates {
  const seconds = Math.max(0.001, (b.at - a.at) / 1000);
  const of = (key: keyof Counters) => (b.counters[key] - a.counters[key]) / seconds;
  return { reads: of('reads'), writes: of('writes'), readBytes: of('read_bytes'), writeBytes: of('write_bytes') };
}
