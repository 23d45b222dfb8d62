// All volumes, with their rates, latency, caps and hosts; and one volume, with its charts.
import { latency, perSecond, plural, size, throughput, whole } from '../format';
import { Card, Empty, Facts, NotThere, State } from '../parts';
import { ExportVolume, UnexportVolume } from '../orders/access';
import { OrderButton, WhyNoOrders } from '../orders/dialog';
import { CapVolume, CreateVolume, RemoveVolume, RenameVolume, ResizeVolume } from '../orders/volume';
import { link } from '../route';
import { status, volumeRates } from '../data/state';
import { type ColumnOf, Table } from '../table';
import { STAGES, type Stages, type Volume } from '../data/types';
import { HowToConnect } from './connect';
import { Figures, Ranges } from './figures';

interface ExportRow {
  volume: string;
  host: string;
  lun: number;
  names: string;
}

const EXPORTS: ColumnOf<ExportRow>[] = [
  {
    key: 'host',
    title: 'Host',
    value: (r) => r.host,
    cell: (r) => (r.host ? <a href={link(['hosts', r.host])}>{r.host}</a> : 'not known here'),
  },
  { key: 'lun', title: 'LUN', num: true, value: (r) => r.lun },
  {
    key: 'names',
    title: 'Names',
    value: (r) => r.names,
    cell: (r) => (
      <code class="long" title={r.names}>
        {r.names}
      </code>
    ),
  },
  {
    key: 'orders',
    title: 'Orders',
    value: () => null,
    cell: (r) =>
      r.host ? (
        <OrderButton small danger order={() => <UnexportVolume volume={r.volume} host={r.host} />}>
          Unexport
        </OrderButton>
      ) : null,
  },
];

interface Row {
  name: string;
  state: string;
  bytes: number;
  reads: number | null;
  writes: number | null;
  read: number | null;
  written: number | null;
  iops: number | null;
  readNs: number | null;
  writeNs: number | null;
  p99: number | null;
  caps: string;
  hosts: string;
  weight: number;
}

/** Latencies are of the last minutes; they say nothing of a volume at which nobody works now. */
function rowOf(v: Volume): Row {
  const r = volumeRates.value.get(v.uuid);
  const [rt, wt] = [v.read_times?.all, v.write_times?.all];
  return {
    name: v.name,
    state: v.state,
    bytes: v.bytes,
    reads: r?.reads ?? null,
    writes: r?.writes ?? null,
    read: r?.readBytes ?? null,
    written: r?.writeBytes ?? null,
    iops: r ? r.reads + r.writes : null,
    readNs: rt?.timed ? rt.p50_ns : null,
    writeNs: wt?.timed ? wt.p50_ns : null,
    p99: rt?.timed || wt?.timed ? Math.max(rt?.timed ? rt.p99_ns : 0, wt?.timed ? wt.p99_ns : 0) : null,
    caps: [v.iops_max ? `${whole(v.iops_max)} IOPS` : '', v.mbps_max ? `${whole(v.mbps_max)} MB/s` : '']
      .filter(Boolean)
      .join(', '),
    hosts: v.exports.map((e) => e.host ?? e.names[0] ?? '?').join(', '),
    weight: v.weight ?? 100,
  };
}

const COLUMNS: ColumnOf<Row>[] = [
  {
    key: 'name',
    title: 'Volume',
    value: (r) => r.name,
    cell: (r) => <a href={link(['volumes', ...r.name.split('/')])}>{r.name}</a>,
  },
  { key: 'state', title: 'State', value: (r) => r.state, cell: (r) => <State word={r.state} />, rank: 2 },
  { key: 'size', title: 'Size', num: true, value: (r) => r.bytes, cell: (r) => size(r.bytes) },
  {
    key: 'iops',
    title: 'IOPS',
    num: true,
    value: (r) => r.iops,
    cell: (r) => perSecond(r.iops),
    title2: 'Reads and writes together',
  },
  { key: 'reads', title: 'Reads', num: true, value: (r) => r.reads, cell: (r) => perSecond(r.reads), rank: 2 },
  { key: 'writes', title: 'Writes', num: true, value: (r) => r.writes, cell: (r) => perSecond(r.writes), rank: 2 },
  { key: 'read', title: 'Read', num: true, value: (r) => r.read, cell: (r) => throughput(r.read), rank: 3 },
  { key: 'written', title: 'Written', num: true, value: (r) => r.written, cell: (r) => throughput(r.written), rank: 3 },
  {
    key: 'rlat',
    title: 'Read p50',
    num: true,
    value: (r) => r.readNs,
    cell: (r) => latency(r.readNs),
    title2: 'Median latency of reads in the last one to two minutes',
    rank: 2,
  },
  {
    key: 'wlat',
    title: 'Write p50',
    num: true,
    value: (r) => r.writeNs,
    cell: (r) => latency(r.writeNs),
    title2: 'Median latency of writes in the last one to two minutes',
    rank: 2,
  },
  {
    key: 'p99',
    title: 'p99',
    num: true,
    value: (r) => r.p99,
    cell: (r) => latency(r.p99),
    title2: 'The greater p99 of reads and writes in the last one to two minutes',
    rank: 3,
  },
  { key: 'caps', title: 'Caps', value: (r) => r.caps, rank: 3 },
  { key: 'hosts', title: 'Hosts', value: (r) => r.hosts, rank: 2 },
];

export function Volumes() {
  const s = status.value!;
  return (
    <>
      <div class="head-line">
        <h1>Volumes</h1>
      </div>
      <Table
        name="Volumes"
        one="volume"
        rows={s.volumes.map(rowOf)}
        columns={COLUMNS}
        rowKey={(r) => r.name}
        text={(r) => `${r.name} ${r.state} ${r.hosts} ${r.caps}`}
        sort="name"
        empty="There is no volume yet."
        actions={
          <>
            <WhyNoOrders />
            {s.pools.length > 0 && <OrderButton order={() => <CreateVolume />}>Create volume</OrderButton>}
            {s.volumes.length > 0 && s.hosts.length > 0 && (
              <OrderButton order={() => <ExportVolume />}>Export</OrderButton>
            )}
          </>
        }
      />
    </>
  );
}

export function OneVolume({ name }: { name: string }) {
  const v = status.value!.volumes.find((x) => x.name === name);
  if (!v)
    return <NotThere kind="volume" name={name} />;
  const r = volumeRates.value.get(v.uuid);
  return (
    <>
      <div class="head-line">
        <h1>
          <a href="#/volumes">Volumes</a> / {v.name}
        </h1>
        <State word={v.state} />
        <span class="spring" />
        <span class="actions">
          <WhyNoOrders />
          <OrderButton order={() => <ExportVolume volume={v.name} />}>Export</OrderButton>
          <OrderButton order={() => <ResizeVolume volume={v} />}>Resize</OrderButton>
          <OrderButton order={() => <CapVolume volume={v} />}>Cap</OrderButton>
          <OrderButton order={() => <RenameVolume volume={v} />}>Rename</OrderButton>
          <OrderButton danger order={() => <RemoveVolume volume={v} />}>
            Remove
          </OrderButton>
        </span>
      </div>
      <Facts
        of={[
          ['Size', size(v.bytes), `${whole(v.bytes)} bytes`],
          ['Reads', `${perSecond(r?.reads)}, ${throughput(r?.readBytes)}`],
          ['Writes', `${perSecond(r?.writes)}, ${throughput(r?.writeBytes)}`],
          [
            'Caps',
            [v.iops_max ? `${whole(v.iops_max)} IOPS` : '', v.mbps_max ? `${whole(v.mbps_max)} MB/s` : '']
              .filter(Boolean)
              .join(', ') || 'none',
          ],
          ['Waited for caps', plural(v.capped ?? 0, 'command')],
          ['Weight', String(v.weight ?? 100)],
          ['Errors', whole(v.counters.errors)],
          ['Block size', `${whole(v.block_bytes)} bytes`],
          ['Namespace id', String(v.nsid)],
          ['NGUID', <code>{v.nguid}</code>],
          ['NAA', <code>{v.naa}</code>],
        ]}
      />
      <div class="head-line sub">
        <h2>Figures</h2>
        <Ranges />
      </div>
      <Figures path={`/history/volumes/${v.name.split('/').map(encodeURIComponent).join('/')}`} idle={v.counters.reads + v.counters.writes === 0} />
      <div class="cards">
        <Card title="Exports">
          {v.exports.length === 0 ? (
            <Empty>
              No host sees it.{' '}
              <OrderButton small order={() => <ExportVolume volume={v.name} />}>
                Export
              </OrderButton>
            </Empty>
          ) : (
            <Table
              name="Exports"
              one="export"
              prefix="x."
              rows={v.exports.map(
                (e): ExportRow => ({ volume: v.name, host: e.host ?? '', lun: e.lun, names: e.names.join(' ') }),
              )}
              columns={EXPORTS}
              rowKey={(r) => r.host || r.names}
              sort="host"
              empty=""
            />
          )}
          {v.exports.map(
            (e) =>
              e.host && (
                <details key={e.host}>
                  <summary>How {e.host} connects</summary>
                  <HowToConnect host={e.host} />
                </details>
              ),
          )}
        </Card>
        <Card title="Where the time goes">
          {v.read_times || v.write_times ? (
            <StageTable reads={v.read_times} writes={v.write_times} />
          ) : (
            <Empty>No command was timed yet; one in 64 is.</Empty>
          )}
        </Card>
      </div>
    </>
  );
}

const WORDS: Record<string, string> = {
  admitted: 'Memory and data',
  volume: 'Caps and credits',
  array: 'Array',
  drive: 'Drive',
  replied: 'Answer',
  all: 'All',
};

function StageTable({ reads, writes }: { reads?: Stages | null | undefined; writes?: Stages | null | undefined }) {
  const cells = (s: Stages | null | undefined, key: (typeof STAGES)[number] | 'all') =>
    [s?.[key].mean_ns, s?.[key].p50_ns, s?.[key].p99_ns].map((n, i) => (
      <td key={i} class="num">
        {s?.all.timed ? latency(n) : '–'}
      </td>
    ));
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Where the time goes, table">
      <table class="mini stages">
        <thead>
          <tr>
            <th scope="col" rowSpan={2}>
              Stage
            </th>
            <th scope="colgroup" colSpan={3} class="num">
              Reads
            </th>
            <th scope="colgroup" colSpan={3} class="num">
              Writes
            </th>
          </tr>
          <tr>
            {['mean', 'p50', 'p99', 'mean', 'p50', 'p99'].map((t, i) => (
              <th key={i} scope="col" class="num">
                {t}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[...STAGES, 'all' as const].map((key) => (
            <tr key={key} class={key === 'all' ? 'sum' : ''}>
              <th scope="row">{WORDS[key]}</th>
              {cells(reads, key)}
              {cells(writes, key)}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">Of the last one to two minutes; one command in 64 is timed.</p>
    </div>
  );
}
