// Figures of the past: columns that the head keeps, merged with what came since, so that a chart asks only for what is new.
import { useEffect, useState } from 'preact/hooks';
import { get, query } from './api';
import { visible } from './state';

export type Column = (number | null)[];

/** Element `i` of each column is of the step that begins at `begin + i * step`. */
export interface History {
  step: number;
  begin: number;
  columns: Record<string, Column>;
}

export const RANGES = {
  '10m': { label: '10 min', seconds: 600 },
  '1h': { label: '1 hour', seconds: 3600 },
  '1d': { label: '1 day', seconds: 86400 },
  '1w': { label: '1 week', seconds: 604800 },
} as const;
export type Range = keyof typeof RANGES;
export const isRange = (text: string): text is Range => text in RANGES;

/** An answer of the API: columns, some in groups, beside the step and the begin. */
export function read(answer: Record<string, unknown>): History {
  const columns: Record<string, Column> = {};
  const walk = (value: unknown, name: string) => {
    if (Array.isArray(value)) columns[name] = value as Column;
    else if (value && typeof value === 'object') {
      // `times` says that the head alone has these; their names are plain without it.
      for (const [key, v] of Object.entries(value)) walk(v, key === 'times' ? name : name ? `${name}_${key}` : key);
    }
  };
  walk(answer, '');
  return { step: Number(answer['step_seconds']) || 1, begin: Number(answer['begin']) || 0, columns };
}

export const length = (h: History) => Math.max(0, ...Object.values(h.columns).map((c) => c.length));

/** What was known with what is new, which counts where both have a step; no more than the last `keep` steps. */
export function merge(past: History | null, fresh: History, keep: number): History {
  if (!past || past.step !== fresh.step || !length(past)) return trim(fresh, keep);
  if (!length(fresh)) return past;
  const begin = Math.min(past.begin, fresh.begin);
  const end = Math.max(past.begin + length(past) * past.step, fresh.begin + length(fresh) * fresh.step);
  const steps = Math.round((end - begin) / past.step);
  // A clock that was set makes a gap that nobody can fill: begin anew.
  if (steps > 4 * keep) return trim(fresh, keep);
  const columns: Record<string, Column> = {};
  for (const name of new Set([...Object.keys(past.columns), ...Object.keys(fresh.columns)])) {
    const column: Column = new Array(steps).fill(null);
    for (const h of [past, fresh]) {
      const at = Math.round((h.begin - begin) / h.step);
      h.columns[name]?.forEach((v, i) => {
        column[at + i] = v;
      });
    }
    columns[name] = column;
  }
  return trim({ step: past.step, begin, columns }, keep);
}

function trim(h: History, keep: number): History {
  const cut = length(h) - keep;
  if (cut <= 0) return h;
  const columns = Object.fromEntries(Object.entries(h.columns).map(([name, c]) => [name, c.slice(cut)]));
  return { step: h.step, begin: h.begin + cut * h.step, columns };
}

/** The begin of the first step of which something is known. */
export function firstKnown(h: History): number | null {
  const known = Object.values(h.columns).map((c) => c.findIndex((v) => v != null));
  const first = Math.min(...known.filter((i) => i >= 0));
  return Number.isFinite(first) ? h.begin + first * h.step : null;
}

/**
 * Longer steps as short ones, for the time before `until` that has none: each short step has the figure of the long one it is
 * part of. A long step that goes on after `until` is left out, since it is of that time, too.
 */
export function spread(long: History, step: number, from: number, until: number): History {
  const whole = Math.min(length(long), Math.floor((until - long.begin) / long.step));
  const begin = Math.max(long.begin, Math.ceil(from / step) * step);
  const steps = Math.max(0, Math.floor((long.begin + whole * long.step - begin) / step));
  const at = (i: number) => Math.floor((begin + i * step - long.begin) / long.step);
  const columns = Object.fromEntries(
    Object.entries(long.columns).map(([name, c]) => [name, Array.from({ length: steps }, (_, i) => c[at(i)] ?? null)]),
  );
  return { step, begin, columns };
}

/** Where a figure is known and none beside it: no line leads there. */
export const alone = (values: ArrayLike<number | null | undefined>): number[] =>
  Array.from({ length: values.length }, (_, i) => i).filter(
    (i) => values[i] != null && values[i - 1] == null && values[i + 1] == null,
  );

export const times = (h: History): number[] => Array.from({ length: length(h) }, (_, i) => h.begin + i * h.step);

/** The latest figure of a column; the last step may not be over yet. */
export function latest(h: History | null, name: string): number | null {
  const column = h?.columns[name];
  if (!column) return null;
  for (let i = column.length - 1; i >= Math.max(0, column.length - 3); i--) if (column[i] != null) return column[i]!;
  return null;
}

/** The history of `/history`, or of a volume or drive below it, kept up to date while it is seen. */
export function useHistory(path: string, range: Range): { history: History | null; failed: boolean } {
  const [history, set] = useState<History | null>(null);
  const [failed, fail] = useState(false);
  useEffect(() => {
    const fine = range === '10m';
    const system = path === '/history';
    /** A step that is on the disk, and kept for an hour at least. */
    const long = 60;
    const step = fine ? (system ? 1 : 5) : system || range === '1h' ? long : 600;
    const keep = Math.ceil(RANGES[range].seconds / step) + 2;
    let known: History | null = null;
    /** Steps of before a restart are long ones alone: they were kept on the disk. */
    let filled = !fine;
    let over = false;
    let asking = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turn = async () => {
      if (asking || over) return;
      asking = true;
      if (!document.hidden) {
        const begin = Math.floor(Date.now() / 1000) - RANGES[range].seconds;
        // The last two steps again: they may not have been over.
        const since: number = known && length(known) ? known.begin + (length(known) - 2) * known.step : begin;
        try {
          const answer = await get<Record<string, unknown>>(`${path}${query({ step, since: Math.max(begin, since) })}`);
          if (over) return;
          const fresh = read(answer);
          if (!filled) {
            const until = firstKnown(fresh) ?? fresh.begin + length(fresh) * step;
            if (until > begin + 2 * step) {
              const old = read(await get(`${path}${query({ step: long, since: begin - long })}`));
              if (over) return;
              known = spread(old, step, begin, until);
            }
            filled = true;
          }
          known = merge(known, fresh, keep);
          set(known);
          fail(false);
        } catch {
          if (over) return;
          fail(true);
        }
      }
      asking = false;
      timer = setTimeout(turn, Math.min(step, 20) * 1000);
    };
    set(null);
    void turn();
    const seenAgain = visible.subscribe((v) => {
      if (v && timer) {
        clearTimeout(timer);
        void turn();
      }
    });
    return () => {
      over = true;
      clearTimeout(timer);
      seenAgain();
    };
  }, [path, range]);
  return { history, failed };
}
