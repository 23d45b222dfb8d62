// Charts of the head, a volume or a drive over a range of time, out of the history that the head keeps.
import { useMemo } from 'preact/hooks';
import { Chart, type Line } from '../chart';
import { latency, perSecond, throughput } from '../format';
import { type Column, type History, RANGES, type Range, firstKnown, isRange, times, useHistory } from '../data/history';
import { param, setParam } from '../route';
import { now, status } from '../data/state';
import { STAGES, type Stage } from '../data/types';

const STAGE_WORDS: Record<Stage, string> = {
  admitted: 'memory and data',
  volume: 'caps and credits',
  array: 'array',
  drive: 'drive',
  replied: 'answer',
};

export const range = (): Range => {
  const chosen = param('range', '10m');
  return isRange(chosen) ? chosen : '10m';
};

export function Ranges() {
  const chosen = range();
  return (
    <span class="segments" role="group" aria-label="Time shown">
      {Object.entries(RANGES).map(([key, r]) => (
        <button key={key} type="button" aria-pressed={chosen === key} onClick={() => setParam('range', key)}>
          {r.label}
        </button>
      ))}
    </span>
  );
}

/** Of what has done nothing since the head started: that is known, and is zero. */
function zeros(step: number, end: number, up: number, over: Range): History {
  const steps = Math.floor(Math.min(up, RANGES[over].seconds) / step);
  const begin = Math.floor(end / step - steps) * step;
  const column = () => new Array<number>(steps).fill(0);
  return { step, begin, columns: { reads: column(), writes: column(), read_bytes: column(), write_bytes: column() } };
}

/** `idle`: nothing was done since the head started. `whole`: percentiles and stages too, as the history of the head has them. */
export function Figures({ path, whole, idle }: { path: string; whole?: boolean; idle?: boolean }) {
  const chosen = range();
  const { history: told, failed } = useHistory(path, chosen);
  const up = status.value?.uptime_seconds ?? 0;
  const history = useMemo(
    () => (idle && told && firstKnown(told) == null ? zeros(told.step, now.value / 1000, up, chosen) : told),
    [told, idle, chosen],
  );
  const at = useMemo(() => (history ? times(history) : []), [history]);
  const end = Math.floor(now.value / 1000);
  const tick = chosen === '10m' ? end : Math.floor(end / 10) * 10;
  const charts = useMemo(() => (whole ? headCharts(history) : partCharts(history)), [history, whole]);
  const empty = failed
    ? 'The head gives no history'
    : history
      ? 'No figures of this time yet'
      : 'Waiting for the head…';
  return (
    <div class={`charts${whole ? ' whole' : ''}`}>
      {charts.map((c) => (
        <Chart key={c.title} {...c} times={at} from={tick - RANGES[chosen].seconds} to={tick} empty={empty} />
      ))}
    </div>
  );
}

interface ChartOf {
  title: string;
  lines: Line[];
  format: (n: number | null | undefined) => string;
  least: number;
  stacked?: boolean;
}

/** Nanoseconds: what is faster than this needs no magnifying glass. */
const FAST = 50_000;

const NONE: Column = [];
const columnOf = (h: History | null, name: string): Column => h?.columns[name] ?? NONE;

const iops = (h: History | null): ChartOf => ({
  title: 'IOPS',
  format: perSecond,
  least: 10,
  lines: [
    { label: 'Reads', color: '--read', values: columnOf(h, 'reads') },
    { label: 'Writes', color: '--write', values: columnOf(h, 'writes') },
  ],
});
const bytes = (h: History | null): ChartOf => ({
  title: 'Throughput',
  format: throughput,
  least: 1e6,
  lines: [
    { label: 'Read', color: '--read', values: columnOf(h, 'read_bytes') },
    { label: 'Written', color: '--write', values: columnOf(h, 'write_bytes') },
  ],
});

function headCharts(h: History | null): ChartOf[] {
  const latencies = (of: 'read' | 'write', color: string): Line[] => [
    { label: 'p99', color: `${color}-2`, values: columnOf(h, `${of}_p99_ns`) },
    { label: 'mean', color: `${color}-3`, dash: true, values: columnOf(h, `${of}_mean_ns`) },
    { label: 'p50', color, values: columnOf(h, `${of}_p50_ns`) },
  ];
  const stages = (of: 'read' | 'write'): Line[] =>
    STAGES.map((s, i) => ({
      label: STAGE_WORDS[s],
      color: `--stage-${i + 1}`,
      values: columnOf(h, `${of}_stages_${s}_ns`),
    }));
  return [
    iops(h),
    { title: 'Read latency', format: latency, least: FAST, lines: latencies('read', '--read') },
    { title: 'Where the time of reads goes', format: latency, least: FAST, lines: stages('read'), stacked: true },
    bytes(h),
    { title: 'Write latency', format: latency, least: FAST, lines: latencies('write', '--write') },
    { title: 'Where the time of writes goes', format: latency, least: FAST, lines: stages('write'), stacked: true },
  ];
}

const partCharts = (h: History | null): ChartOf[] => [
  iops(h),
  bytes(h),
  {
    title: 'Mean latency',
    format: latency,
    least: FAST,
    lines: [
      { label: 'Reads', color: '--read', values: columnOf(h, 'read_mean_ns') },
      { label: 'Writes', color: '--write', values: columnOf(h, 'write_mean_ns') },
    ],
  },
];
