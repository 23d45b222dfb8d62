// What a table does without a document: filter, sort, and which rows of many are seen.

export type Cell = string | number | null | undefined;

/** `-reads` is by reads, the greatest first. */
export interface Sorting {
  key: string;
  down: boolean;
}

export function parseSorting(text: string): Sorting {
  return text.startsWith('-') ? { key: text.slice(1), down: true } : { key: text, down: false };
}

export const sortingText = (s: Sorting) => (s.down ? `-${s.key}` : s.key);

const names = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Numbers by size, names as people count (`vm2` before `vm10`), and what is not known behind both ways. */
export function compare(a: Cell, b: Cell, down = false): number {
  const [noA, noB] = [a == null || a === '', b == null || b === ''];
  if (noA || noB) return Number(noA) - Number(noB);
  const order = typeof a === 'number' && typeof b === 'number' ? a - b : names.compare(String(a), String(b));
  return down ? -order : order;
}

/** Sorted, and what is equal by `tie`, so that rows with the same figure do not change places. */
export function sorted<T>(rows: readonly T[], value: (row: T) => Cell, down: boolean, tie: (row: T) => string): T[] {
  const keyed = rows.map((row) => ({ row, value: value(row), tie: tie(row) }));
  keyed.sort((a, b) => compare(a.value, b.value, down) || (a.tie < b.tie ? -1 : a.tie > b.tie ? 1 : 0));
  return keyed.map((k) => k.row);
}

/** Whether all words of a filter are somewhere in a text. */
export function matches(text: string, filter: string): boolean {
  const low = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}

export interface Seen {
  first: number;
  end: number;
  before: number;
  behind: number;
}

/** Which rows of a scrolled list are drawn, and how much room stands for those before and behind. */
export function seen(rows: number, rowHeight: number, top: number, height: number, extra = 8): Seen {
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - extra, rows - 1));
  // An even first row keeps what is drawn the same for small movements.
  const even = first - (first % 2);
  const end = Math.min(rows, Math.ceil((top + height) / rowHeight) + extra);
  return {
    first: even,
    end: Math.max(even, end),
    before: even * rowHeight,
    behind: Math.max(0, rows - Math.max(even, end)) * rowHeight,
  };
}

/** Whether two rows of plain values are the same. */
export function same(a: object, b: object): boolean {
  if (a === b) return true;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((k) => Object.is(x[k], y[k]));
}
