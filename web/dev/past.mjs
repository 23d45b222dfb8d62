// What a made-up head keeps of the past, and what limits it.
import { T0, wave } from './mock.mjs';

/** Figures of the past as the head would have kept them: `kind` empty has none. */
export function history(kind, path, step, since) {
  const now = Math.floor(Date.now() / 1000);
  const kept = { 1: 600, 5: 600, 60: 604800, 600: 604800 }[step] ?? 600;
  const begin = Math.ceil(Math.max(since, now - kept) / step) * step;
  const n = Math.max(0, Math.floor((now - begin) / step));
  const small = path.length > 0;
  const hole = (t) => step <= 60 && kind === 'degraded' && t > T0 - 200 && t < T0 - 185;
  const column = (seed, low, high) =>
    Array.from({ length: n }, (_, i) => {
      const t = begin + i * step;
      return kind === 'empty' ? 0 : hole(t) ? null : wave(seed, step > 1 ? t / step : t, low, high);
    });
  const lat = (seed, low, high) => (kind === 'empty' ? Array(n).fill(null) : column(seed, low, high));
  const all = {
    step_seconds: step,
    begin,
    reads: column(1, 3e4 / (small ? 4 : 1), 9e4 / (small ? 4 : 1)),
    writes: column(2, 1e4, 3.4e4),
    read_bytes: column(1, 2.4e8, 7e8),
    write_bytes: column(2, 8e7, 3e8),
    read_mean_ns: lat(3, 9e4, 1.6e5),
    write_mean_ns: lat(5, 4e4, 9e4),
  };
  if (small) return all;
  const parts = (of) =>
    Object.fromEntries(
      [
        ['admitted', 0.02],
        ['volume', 0.12],
        ['array', 0.08],
        ['drive', 0.58],
        ['replied', 0.2],
      ].map(([k, f], i) => [`${k}_ns`, lat(of + i, 9e4 * f, 1.6e5 * f)]),
    );
  return {
    ...all,
    times: {
      read_p50_ns: lat(3, 8e4, 1.1e5),
      read_p99_ns: lat(4, 2.4e5, 6.8e5),
      write_p50_ns: lat(5, 3e4, 6e4),
      write_p99_ns: lat(6, 1.2e5, 5e5),
      read_stages: parts(3),
      write_stages: parts(5),
    },
  };
}

const said = (code, message, next) => ({ code, message, ...(next ? { next } : {}) });
export const explanation = (kind) =>
  kind === 'empty'
    ? {
        load: said('all', 'Hardly anything is asked of it: 0 commands a second.'),
        findings: [],
        next_limit: null,
        elsewhere: 0,
      }
    : {
        load: said('all', '74 K reads and 22 K writes a second, 610 MB/s and 180 MB/s.'),
        findings: [
          {
            ...said(
              'link_full',
              'The uplink of the switch at 0000:17:00.0 is the limit: 8 drives share PCIe Gen 3 ×16.',
              'move drives to slots of the other node: millrace plan',
            ),
            kind: 'link',
            about: [],
            arithmetic: [
              said('a', '13.1 of 14.1 GB/s pass it downwards: 93 %'),
              said('b', 'the drives behind it could give 25.6 GB/s'),
            ],
          },
          ...(kind === 'degraded'
            ? [
                {
                  ...said('repair', 'A resync takes 1.1 GB/s of the drives of mirror-1.'),
                  kind: 'repair',
                  about: [],
                  arithmetic: [said('c', '40 min left at that rate')],
                },
              ]
            : []),
        ],
        next_limit: said('n', 'the shards, at about 260 K commands a second'),
        elsewhere: 0,
      };
