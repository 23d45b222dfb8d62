// The overview: live charts, pools, the busiest volumes, the latest events and what limits now.
import { perSecond, percent, plural, size, throughput } from '../format';
import { Bar, Card, Empty, Level, Notices, poolWord, Progress, State, Time } from '../parts';
import { OrderButton } from '../orders/dialog';
import { CreateVolume } from '../orders/volume';
import { link } from '../route';
import { status, volumeRates } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Pool, Status } from '../data/types';
import { Explain } from './explain';
import { Figures, Ranges } from './figures';

export function Overview() {
  const s = status.value!;
  return (
    <>
      <div class="head-line">
        <h1>Overview</h1>
        <Now s={s} />
        <Ranges />
      </div>
      <h2 class="hidden">Figures</h2>
      <Figures path="/history" whole />
      <div class="cards">
        <div class="stack">
          <Card title="Pools" aside={<a href="#/pools">All</a>}>
            {s.pools.length === 0 ? (
              <NoPool />
            ) : (
              <ul class="pool-lines">
                {s.pools.map((p) => (
                  <PoolLine key={p.uuid} pool={p} />
                ))}
              </ul>
            )}
          </Card>
          <Explain />
        </div>
        <div class="stack">
          <Card title="Busiest volumes" aside={<a href="#/volumes?sort=-iops">All</a>}>
            <Busiest s={s} />
          </Card>
          {(s.notices.length > 0 || (s.minor_notices?.length ?? 0) > 0) && (
            <Card title="Worth knowing">
              <Notices of={[...s.notices, ...(s.minor_notices ?? [])]} />
            </Card>
          )}
        </div>
        <Card title="Latest events" aside={<a href="#/events">All</a>}>
          <Latest s={s} />
        </Card>
      </div>
    </>
  );
}

/** What hosts do in this moment. */
function Now({ s }: { s: Status }) {
  const known = volumeRates.value.size > 0 || s.volumes.length === 0;
  const sum = { reads: 0, writes: 0, bytes: 0 };
  for (const v of s.volumes) {
    const r = volumeRates.value.get(v.uuid);
    if (r) {
      sum.reads += r.reads;
      sum.writes += r.writes;
      sum.bytes += r.readBytes + r.writeBytes;
    }
  }
  const busy = s.hosts.filter((h) => h.connections > 0).length;
  return (
    <p class="now">
      <span>
        <b>{perSecond(known ? sum.reads : null)}</b> reads
      </span>
      <span>
        <b>{perSecond(known ? sum.writes : null)}</b> writes
      </span>
      <span>
        <b>{throughput(known ? sum.bytes : null)}</b>
      </span>
      <span>
        {busy} of {plural(s.hosts.length, 'host')} connected
      </span>
    </p>
  );
}

const NoPool = () => (
  <Empty>
    There is no pool yet: <code>millrace pool create tank mirror DRIVE DRIVE</code>
  </Empty>
);

function PoolLine({ pool: p }: { pool: Pool }) {
  const resync = p.arrays.find((a) => a.resync)?.resync;
  return (
    <li>
      <div class="line">
        <a href={link(['pools'])}>
          <b>{p.name}</b>
        </a>
        <State word={poolWord(p)} title={p.reason || undefined} />
        <span class="spring" />
        <span class="num">
          {size(p.bytes - p.used_bytes)} free of {size(p.bytes)}
        </span>
      </div>
      <Bar
        part={p.used_bytes}
        whole={p.bytes}
        label={`Space of pool ${p.name} in use`}
        tone={p.used_bytes > 0.9 * p.bytes ? 'warn' : ''}
      />
      {resync && (
        <Progress
          what="resync"
          done={resync.done_bytes}
          total={resync.total_bytes}
          rate={resync.rate}
          left={resync.seconds_left}
        />
      )}
      {p.scrub.running && (
        <Progress
          what="scrub"
          done={p.scrub.done_bytes}
          total={p.scrub.total_bytes}
          rate={p.scrub.rate}
          left={p.scrub.seconds_left}
        />
      )}
      {p.clearing && (
        <p class="dim">
          Clearing: {size(p.clearing.left_bytes)} to go, {percent(p.clearing.left_bytes, p.bytes)} of the pool
        </p>
      )}
    </li>
  );
}

interface Busy {
  name: string;
  reads: number;
  writes: number;
  bytes: number;
}

const BUSY: ColumnOf<Busy>[] = [
  {
    key: 'name',
    title: 'Volume',
    value: (r) => r.name,
    cell: (r) => <a href={link(['volumes', ...r.name.split('/')])}>{r.name}</a>,
  },
  { key: 'reads', title: 'Reads', num: true, value: (r) => r.reads, cell: (r) => perSecond(r.reads) },
  { key: 'writes', title: 'Writes', num: true, value: (r) => r.writes, cell: (r) => perSecond(r.writes) },
  { key: 'bytes', title: 'Data', num: true, value: (r) => r.bytes, cell: (r) => throughput(r.bytes) },
];

function Busiest({ s }: { s: Status }) {
  const rates = volumeRates.value;
  const busy = s.volumes
    .map((v) => ({ v, r: rates.get(v.uuid)! }))
    .filter(({ r }) => r && r.reads + r.writes >= 0.5)
    .sort((a, b) => b.r.reads + b.r.writes - a.r.reads - a.r.writes)
    .slice(0, 8);
  if (!s.volumes.length)
    return (
      <Empty>
        There is no volume yet.{' '}
        <OrderButton order={() => <CreateVolume />} small>
          Create volume
        </OrderButton>
      </Empty>
    );
  if (!rates.size) return <Empty>Measuring…</Empty>;
  if (!busy.length) return <Empty>No host reads or writes now.</Empty>;
  return (
    <Table
      name="Busiest volumes"
      one="volume"
      prefix="b."
      rows={busy.map(
        ({ v, r }): Busy => ({ name: v.name, reads: r.reads, writes: r.writes, bytes: r.readBytes + r.writeBytes }),
      )}
      columns={BUSY}
      rowKey={(r) => r.name}
      sort="-reads"
      empty=""
    />
  );
}

function Latest({ s }: { s: Status }) {
  const latest = s.events.slice(-8).reverse();
  if (!latest.length) return <Empty>Nothing has happened yet.</Empty>;
  return (
    <ul class="events">
      {latest.map((e) => (
        <li key={`${e.head ?? ''}${e.number}`}>
          <Time at={e.at} />
          <Level weight={e.weight} />
          <span>
            <b>{e.what}</b>: {e.message}
          </span>
        </li>
      ))}
    </ul>
  );
}
