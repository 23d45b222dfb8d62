// All drives, with slot, temperature, wear, latency and errors; and one drive, with its charts.
import { useMemo } from 'preact/hooks';
import { useAnswer } from '../data/ask';
import { latency, perSecond, shortPath, size, throughput, whole } from '../format';
import { Card, Facts, NotThere, State } from '../parts';
import { OrderButton, WhyNoOrders } from '../orders/dialog';
import { FailDrive, LocateDrive, ReplaceDrive, ReturnDrive } from '../orders/drive';
import { link } from '../route';
import { driveKey, driveRates, status } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Topology } from '../data/asked';
import type { Drive, Times } from '../data/types';
import { Figures, Ranges } from './figures';

interface Row {
  key: string;
  path: string;
  slot: string;
  role: string;
  state: string;
  pool: string;
  bytes: number;
  model: string;
  serial: string;
  celsius: number | null;
  used: number | null;
  spare: number | null;
  reads: number | null;
  writes: number | null;
  data: number | null;
  readNs: number | null;
  readP99: number | null;
  writeNs: number | null;
  errors: number;
  reason: string;
  warns: boolean;
}

const timed = (t: Times | null | undefined, key: 'p50_ns' | 'p99_ns') => (t?.timed ? t[key] : null);

/** Drives outside of pools have a role instead of a state. */
const wordOf = (d: Drive) =>
  d.slow && d.state === 'optimal' ? 'slow' : d.role === 'leg' ? (d.state ?? 'leg') : d.role;
const toneFor = (word: string) => (word === 'slow' ? ('warn' as const) : undefined);

function rowOf(d: Drive, slots: Map<string, string>): Row {
  const r = driveRates.value.get(driveKey(d));
  return {
    key: driveKey(d),
    path: d.path || d.uuid || '',
    slot: slots.get(shortPath(d.path)) ?? '',
    role: d.role,
    state: wordOf(d),
    pool: d.pool ?? '',
    bytes: d.bytes,
    model: d.model || d.kind,
    serial: d.serial,
    celsius: d.health?.celsius ?? null,
    used: d.health?.used_percent ?? null,
    spare: d.health?.spare_percent ?? null,
    reads: r?.reads ?? null,
    writes: r?.writes ?? null,
    data: r ? r.readBytes + r.writeBytes : null,
    readNs: timed(d.read_times, 'p50_ns'),
    readP99: timed(d.read_times, 'p99_ns'),
    writeNs: timed(d.write_times, 'p50_ns'),
    errors: d.errors,
    reason: d.reason,
    warns: d.health?.warns ?? false,
  };
}

const COLUMNS: ColumnOf<Row>[] = [
  {
    key: 'drive',
    title: 'Drive',
    value: (r) => r.path,
    cell: (r) => (
      <a href={link(['drives', r.key])} title={r.path}>
        {shortPath(r.path)}
      </a>
    ),
  },
  { key: 'slot', title: 'Slot', value: (r) => r.slot, rank: 2 },
  {
    key: 'state',
    title: 'State',
    value: (r) => r.state,
    cell: (r) => <State word={r.state} tone={toneFor(r.state)} title={r.reason || undefined} />,
  },
  { key: 'pool', title: 'Pool', value: (r) => r.pool },
  {
    key: 'size',
    title: 'Size',
    num: true,
    value: (r) => r.bytes || null,
    cell: (r) => (r.bytes ? size(r.bytes) : '–'),
    rank: 2,
  },
  {
    key: 'celsius',
    title: 'Temperature',
    num: true,
    value: (r) => r.celsius,
    cell: (r) => (r.celsius == null ? '–' : `${Math.round(r.celsius)} °C`),
    title2: 'It is asked once a minute',
  },
  {
    key: 'used',
    title: 'Wear',
    num: true,
    value: (r) => r.used,
    cell: (r) => (r.used == null ? '–' : `${r.used} %`),
    title2: 'Part of its rated life that is used',
  },
  { key: 'reads', title: 'Reads', num: true, value: (r) => r.reads, cell: (r) => perSecond(r.reads), rank: 2 },
  { key: 'writes', title: 'Writes', num: true, value: (r) => r.writes, cell: (r) => perSecond(r.writes), rank: 2 },
  { key: 'data', title: 'Data', num: true, value: (r) => r.data, cell: (r) => throughput(r.data), rank: 3 },
  { key: 'rlat', title: 'Read p50', num: true, value: (r) => r.readNs, cell: (r) => latency(r.readNs), rank: 2 },
  { key: 'rp99', title: 'Read p99', num: true, value: (r) => r.readP99, cell: (r) => latency(r.readP99), rank: 3 },
  { key: 'wlat', title: 'Write p50', num: true, value: (r) => r.writeNs, cell: (r) => latency(r.writeNs), rank: 2 },
  {
    key: 'errors',
    title: 'Errors',
    num: true,
    value: (r) => r.errors,
    cell: (r) =>
      r.errors || r.warns ? <State word={r.warns ? `${r.errors}, warns` : String(r.errors)} tone="warn" /> : '0',
    title2: 'Operations that failed or were late since the start',
  },
  { key: 'model', title: 'Model', value: (r) => r.model, rank: 3 },
  { key: 'serial', title: 'Serial', value: (r) => r.serial, cell: (r) => <code>{r.serial || '–'}</code>, rank: 3 },
];

/** Slots are the machine's to know; it is asked seldom, since asking measures. */
function useSlots(): Map<string, string> {
  const { value } = useAnswer<Topology>('/topology', 60_000);
  return useMemo(() => new Map((value?.drives ?? []).filter((d) => d.slot).map((d) => [d.name, d.slot!])), [value]);
}

export function Drives() {
  const s = status.value!;
  const slots = useSlots();
  const { value: machine } = useAnswer<Drive[]>('/drives', 30_000);
  const ours = new Set(s.drives.map(driveKey));
  // The status has the drives of pools; candidates of the machine come beside them.
  const rows = [
    ...s.drives,
    ...(machine ?? []).filter(
      (d) => !ours.has(driveKey(d)) && d.role !== 'leg' && d.role !== 'spare' && d.role !== 'missing',
    ),
  ].map((d) => rowOf(d, slots));
  return (
    <>
      <div class="head-line">
        <h1>Drives</h1>
        <WhyNoOrders />
      </div>
      <Table
        name="Drives"
        one="drive"
        rows={rows}
        columns={COLUMNS}
        rowKey={(r) => r.key}
        text={(r) => `${r.path} ${r.pool} ${r.state} ${r.role} ${r.slot} ${r.model} ${r.serial}`}
        sort="drive"
        empty="No drive is known."
      />
    </>
  );
}

export function OneDrive({ name }: { name: string }) {
  const { value: machine } = useAnswer<Drive[]>('/drives', 30_000);
  const slots = useSlots();
  const find = (d: Drive) => driveKey(d) === name || d.path === name || d.uuid === name;
  const d = status.value!.drives.find(find) ?? machine?.find(find);
  if (!d)
    return <NotThere kind="drive" name={name} title={shortPath(name)} />;
  const r = driveRates.value.get(driveKey(d));
  const h = d.health;
  const word = wordOf(d);
  const array = status.value!.pools.flatMap((p) => p.arrays).find((a) => a.legs.some((l) => l.uuid === d.uuid));
  const leg = array?.legs.find((l) => l.uuid === d.uuid);
  const mirrored = array?.layout === 'mirror';
  const dash = (n: number | null | undefined, unit: string) => (n == null ? '–' : `${whole(n)}${unit}`);
  return (
    <>
      <div class="head-line">
        <h1 title={d.path}>
          <a href="#/drives">Drives</a> / {shortPath(d.path || name)}
        </h1>
        <State word={word} tone={toneFor(word)} />
        <span class="spring" />
        <span class="actions">
          <WhyNoOrders />
          {d.path && <OrderButton order={() => <LocateDrive drive={d.path} />}>Locate</OrderButton>}
          {mirrored && leg?.state === 'optimal' && (
            <OrderButton danger order={() => <FailDrive drive={d.path} pool={d.pool ?? ''} />}>
              Fail
            </OrderButton>
          )}
          {mirrored && leg && leg.state !== 'optimal' && leg.state !== 'rebuilding' && (
            <OrderButton order={() => <ReturnDrive drive={driveKey(d)} />}>Return</OrderButton>
          )}
          {leg && <OrderButton order={() => <ReplaceDrive drive={driveKey(d)} />}>Replace</OrderButton>}
        </span>
      </div>
      {(d.reason || leg?.reason) && <p class="why-not">{d.reason || leg?.reason}</p>}
      <Facts
        of={[
          ['Path', <code>{d.path || 'not known'}</code>],
          ['Slot', slots.get(shortPath(d.path)) ?? '–'],
          ['Pool', d.pool ? <a href="#/pools">{d.pool}</a> : 'none'],
          ['Size', size(d.bytes), `${whole(d.bytes)} bytes`],
          ['Model', d.model || d.kind || '–'],
          ['Serial', d.serial || '–'],
          ['Reads', `${perSecond(r?.reads)}, ${throughput(r?.readBytes)}`],
          ['Writes', `${perSecond(r?.writes)}, ${throughput(r?.writeBytes)}`],
          ['Read p50, p99', `${latency(timed(d.read_times, 'p50_ns'))}, ${latency(timed(d.read_times, 'p99_ns'))}`],
          ['Write p50, p99', `${latency(timed(d.write_times, 'p50_ns'))}, ${latency(timed(d.write_times, 'p99_ns'))}`],
          ['Temperature', dash(h?.celsius, ' °C')],
          ['Wear', dash(h?.used_percent, ' %')],
          ['Spare blocks', dash(h?.spare_percent, ' %')],
          ['Media errors', dash(h?.media_errors, '')],
          ['Hours with power', dash(h?.hours, ' h')],
          ['Slowed by heat', dash(h?.throttled_seconds, ' s')],
          ['Errors', whole(d.errors)],
          ['Smallest write', `${whole(d.block_bytes)} bytes`],
          ['Volatile cache', d.volatile_cache ? 'yes, flushed' : 'no'],
          ['UUID', d.uuid ? <code>{d.uuid}</code> : '–'],
        ]}
      />
      {h?.warns && (
        <p class="why-not">
          The drive warns of something: <code>millrace topology</code> says of what.
        </p>
      )}
      {d.shape && (
        <Card title="Artificial behaviour">
          <p>
            This drive is made to behave artificially, to test what happens:{' '}
            {Object.entries(d.shape)
              .filter(([, v]) => v)
              .map(([k, v]) => `${k.replace(/_/g, ' ')} ${String(v)}`)
              .join(', ') || 'nothing set'}
            .
          </p>
        </Card>
      )}
      {d.role === 'leg' && d.path && (
        <>
          <div class="head-line sub">
            <h2>Figures</h2>
            <Ranges />
          </div>
          <Figures path={`/history/drives/${encodeURIComponent(d.path)}`} />
        </>
      )}
    </>
  );
}
