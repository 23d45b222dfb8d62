// Figures as people read them: each with its unit, three digits at most, and times in the reader's zone.

/** No figure: nothing was measured, which is not zero. */
export const NONE = '–';

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** Three significant digits at most, no trailing zeros: 1.25, 12.5, 125. */
function digits(n: number): string {
  const fraction = n >= 100 || Number.isInteger(n) ? 0 : n >= 10 ? 1 : 2;
  return String(Number(n.toFixed(fraction)));
}

/** A size in powers of 1,024, as the command line takes it: `400 GiB`. */
export function size(bytes: number | null | undefined): string {
  if (bytes == null || !Number.isFinite(bytes)) return NONE;
  let [n, at] = [bytes, 0];
  while (at < SIZES.length - 1 && n >= 999.5) [n, at] = [n / 1024, at + 1];
  return `${digits(n)} ${SIZES[at]}`;
}

/** A rate of bytes in powers of 1,000: `1.25 GB/s`. */
export function throughput(bytes: number | null | undefined): string {
  if (bytes == null || !Number.isFinite(bytes)) return NONE;
  if (bytes < 1) return '0 MB/s';
  if (bytes < 999.5e3) return `${digits(bytes / 1e3)} kB/s`;
  if (bytes < 999.5e6) return `${digits(bytes / 1e6)} MB/s`;
  return `${digits(bytes / 1e9)} GB/s`;
}

/** A count of something each second: `12.4 k/s`. */
export function perSecond(n: number | null | undefined): string {
  return n == null || !Number.isFinite(n) ? NONE : `${count(n)}/s`;
}

/** A count, short: `12.4 k`, `3.1 M`. */
export function count(n: number): string {
  if (n < 999.5) return n > 0 && n < 10 && !Number.isInteger(n) ? String(Number(n.toFixed(1))) : String(Math.round(n));
  if (n < 999.5e3) return `${digits(n / 1e3)} k`;
  if (n < 999.5e6) return `${digits(n / 1e6)} M`;
  return `${digits(n / 1e9)} G`;
}

/** A count in full: `1,234,567`. */
export const whole = (n: number) => Math.round(n).toLocaleString('en');

/** How long a command took: `131 µs`, `1.25 ms`. */
export function latency(ns: number | null | undefined): string {
  if (ns == null || !Number.isFinite(ns)) return NONE;
  if (ns === 0) return '0 µs';
  if (ns < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** How long something takes or took: `42 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  const two = (n: number, of: number, a: string, b: string) => {
    const rest = Math.floor((s % n) / of);
    return rest ? `${Math.floor(s / n)} ${a} ${rest} ${b}` : `${Math.floor(s / n)} ${a}`;
  };
  if (s < 60) return `${s} s`;
  if (s < 3600) return two(60, 1, 'min', 's');
  if (s < 86400) return two(3600, 60, 'h', 'min');
  return two(86400, 3600, 'd', 'h');
}

export function percent(part: number, whole: number): string {
  if (!whole) return NONE;
  const p = (100 * part) / whole;
  // 100 % is said of what is whole, and of nothing else.
  return `${p > 0 && p < 10 ? p.toFixed(1) : p < 100 ? Math.min(99, Math.round(p)) : Math.round(p)} %`;
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };

/** A time of the API in the reader's zone: the clock alone if it is of today. */
export function localTime(at: string, now = new Date()): string {
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return at;
  const clock = then.toLocaleTimeString('en', CLOCK);
  if (then.toDateString() === now.toDateString()) return clock;
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${then.getFullYear()}-${pad(then.getMonth() + 1)}-${pad(then.getDate())} ${clock}`;
}

/** How long ago. */
export const ago = (at: string, now = Date.now()) => `${duration((now - Date.parse(at)) / 1000)} ago`;

const UNITS: Record<string, number> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40, p: 2 ** 50 };

/** A size as the command line takes it, in bytes: `400G`, `1.5T`, `64 MiB`. Null if it is none. */
export function parseSize(text: string): number | null {
  const found = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([bkmgtp]?)(?:i?b)?\s*$/i.exec(text);
  if (!found) return null;
  const bytes = Number(found[1]) * (UNITS[found[2]!.toLowerCase()] ?? 1);
  return Number.isSafeInteger(Math.round(bytes)) ? Math.round(bytes) : null;
}

/** A size as an argument of the command line, exact: `400G`, or bytes if it is no multiple. */
export function sizeArgument(bytes: number): string {
  for (const [unit, of] of [
    ['T', 2 ** 40],
    ['G', 2 ** 30],
    ['M', 2 ** 20],
    ['K', 2 ** 10],
  ] as const) {
    if (bytes >= of && bytes % of === 0) return `${bytes / of}${unit}`;
  }
  return String(bytes);
}

/** `1 volume`, `2 volumes`. */
export const plural = (n: number, one: string, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`;

/** The last part of a path: `nvme3n1`. */
export const shortPath = (path: string) => path.slice(path.lastIndexOf('/') + 1);
