// A chart over time: lines or a stack, its figures as text beside it, read by mouse, touch or arrow keys.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { type Column, alone } from './data/history';
import { painted } from './theme';

export interface Line {
  label: string;
  color: string;
  dash?: boolean;
  values: Column;
}

interface Props {
  title: string;
  lines: Line[];
  times: number[];
  /** The time that is shown, in seconds since 1970. */
  from: number;
  to: number;
  format: (n: number | null | undefined) => string;
  stacked?: boolean;
  /** The axis goes at least so far: without a load it has sensible marks, too. */
  least: number;
  empty?: string | undefined;
}

const sync = uPlot.sync('time');

export function Chart(props: Props) {
  const { title, lines, times, format, stacked } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);

  useEffect(() => {
    const element = box.current!;
    const made = new uPlot(options(element, latest, setAt), data(latest.current), element);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      sync.unsub(made);
      made.destroy();
      plot.current = null;
    };
    // Colours and the number of lines are fixed when a plot is made.
  }, [painted.value, lines.length, stacked]);

  useEffect(() => {
    plot.current?.setData(data(props), true);
  }, [times, props.from, props.to, lines.map((l) => l.values.length).join()]);

  const shown = at != null && at < times.length ? at : lastFigure(lines);
  const key = (e: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[e.key];
    const chart = plot.current;
    if (!step || !chart) return;
    e.preventDefault();
    const index = Math.max(0, Math.min(times.length - 1, (at ?? times.length - 1) + step));
    chart.setCursor({ left: chart.valToPos(times[index] ?? 0, 'x'), top: 10 });
  };
  const figures = lines.map((l) => `${l.label} ${format(shown == null ? null : l.values[shown])}`).join(', ');
  const nothing = !lines.some((l) => l.values.some((v) => v != null));
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {lines.map((l) => (
            <li key={l.label}>
              <span class={`swatch${l.dash ? ' dashed' : ''}`} style={{ background: `var(${l.color})` }} />
              {l.label} <b>{format(shown == null ? null : l.values[shown])}</b>
            </li>
          ))}
          {at != null && times[at] != null && <li class="at">{clock(times[at]!)}</li>}
        </ul>
      </figcaption>
      <div
        ref={box}
        class="plot"
        tabIndex={0}
        role="img"
        onKeyDown={key}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
        aria-label={`${title}: ${figures}. Arrow keys read earlier figures.`}
      />
      {nothing && <p class="nothing">{props.empty ?? 'No figures of this time'}</p>}
    </figure>
  );
}

const clock = (seconds: number) =>
  new Date(seconds * 1000).toLocaleString('en', {
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });

function lastFigure(lines: Line[]): number | null {
  const n = lines[0]?.values.length ?? 0;
  for (let i = n - 1; i >= Math.max(0, n - 3); i--) if (lines.some((l) => l.values[i] != null)) return i;
  return null;
}

/** Of a stack, each line lies on the sum of those before it. The topmost is drawn first, the others over it. */
function data({ lines, times, stacked }: Props): uPlot.AlignedData {
  if (!stacked) return [times, ...lines.map((l) => l.values)] as uPlot.AlignedData;
  const sums: Column[] = [];
  let below: Column | null = null;
  for (const l of lines) {
    const under: Column | null = below;
    below = l.values.map((v, i) => (v == null ? null : v + (under?.[i] ?? 0)));
    sums.push(below);
  }
  return [times, ...sums.reverse()] as uPlot.AlignedData;
}

function options(box: HTMLElement, props: { current: Props }, setAt: (at: number | null) => void): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const { lines, stacked } = props.current;
  const drawn = stacked ? [...lines].reverse() : lines;
  const axis = {
    stroke: color('--dim'),
    font: `11px ${style.fontFamily}`,
    ticks: { show: false },
    grid: { stroke: color('--grid'), width: 1 },
  };
  return {
    width: Math.max(100, box.clientWidth),
    height: Math.max(60, box.clientHeight),
    legend: { show: false },
    padding: [6, 18, 0, 0],
    cursor: {
      sync: { key: 'time', setSeries: false },
      points: { show: false },
      y: false,
      drag: { x: false, y: false },
    },
    scales: {
      x: { time: true, range: () => [props.current.from, props.current.to] },
      // From zero, always: a chart that cuts its foot off makes much of little.
      y: { range: (_u, _min, max) => [0, Math.max((max || 0) * 1.1, props.current.least)] },
    },
    axes: [
      { ...axis, size: 22, space: 56, gap: 4, values: (_u, splits, _i, _s, incr) => splits.map((s) => tick(s, incr)) },
      { ...axis, size: 64, space: 26, gap: 6, values: (_u, splits) => splits.map((s) => props.current.format(s)) },
    ],
    series: [
      {},
      ...drawn.map((l) => ({
        label: l.label,
        stroke: color(l.color),
        width: stacked ? 0 : 1.5,
        points: {
          show: false,
          size: 5,
          width: 0,
          fill: color(l.color),
          filter: (u: uPlot, series: number) => alone(u.data[series] ?? []),
        },
        spanGaps: false,
        ...(l.dash ? { dash: [4, 3] } : {}),
        ...(stacked ? { fill: color(l.color) } : {}),
      })),
    ],
    hooks: { setCursor: [(u) => setAt(u.cursor.left != null && u.cursor.left >= 0 ? (u.cursor.idx ?? null) : null)] },
  };
}

function tick(seconds: number, incr: number): string {
  const at = new Date(seconds * 1000);
  if (incr >= 86400) return at.toLocaleDateString('en', { weekday: 'short', day: 'numeric' });
  return at.toLocaleTimeString('en', {
    hour: '2-digit',
    minute: '2-digit',
    ...(incr < 60 ? { second: '2-digit' } : {}),
    hourCycle: 'h23',
  });
}
