// Hosts: what they use, each path and each connection, and whether they prove who they are.
import { latency, perSecond, plural, throughput } from '../format';
import { Card, Empty, Facts, NotThere, State } from '../parts';
import { AddHost, ExportVolume, RemoveHost, SetHostNames, UnexportVolume } from '../orders/access';
import { OrderButton, WhyNoOrders } from '../orders/dialog';
import { link } from '../route';
import { status } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Connection, Host, HostPath } from '../data/types';
import { HowToConnect } from './connect';

interface Row {
  name: string;
  proof: string;
  names: string;
  volumes: number;
  list: string;
  connections: number;
  paths: number;
  reads: number;
  writes: number;
  bytes: number;
}

const sum = (h: Host, key: keyof HostPath['rates']) => (h.paths ?? []).reduce((n, p) => n + p.rates[key], 0);

const IDENTIFIED = 'identified, not authenticated';

/** CHAP proves the iSCSI name; the NVMe name of the same host may be used by anybody. As `millrace host ls` says it. */
const proofOf = (h: Host) => {
  if (!h.authenticated) return IDENTIFIED;
  if (h.nqns.length) return `iscsi authenticated, nvme ${IDENTIFIED}`;
  return h.mutual ? 'authenticated, both ways' : 'authenticated';
};

/** The same of what comes by one protocol. */
const proofBy = (h: Host | undefined, protocol: string) => {
  if (!h) return '';
  if (protocol !== 'iscsi' || !h.authenticated) return IDENTIFIED;
  return h.mutual ? 'authenticated, both ways' : 'authenticated';
};

const PROOF = 'A host that proves a secret is authenticated, another is identified by its name alone';

const rowOf = (h: Host): Row => ({
  name: h.name,
  proof: proofOf(h),
  names: [...h.nqns, ...h.iqns].join(' '),
  volumes: h.exports.length,
  list: h.exports.map((e) => e.volume).join(', '),
  connections: h.connections,
  paths: (h.paths ?? []).filter((p) => p.connections > 0).length,
  reads: sum(h, 'reads'),
  writes: sum(h, 'writes'),
  bytes: sum(h, 'read_bytes') + sum(h, 'write_bytes'),
});

const HOSTS: ColumnOf<Row>[] = [
  { key: 'name', title: 'Host', value: (r) => r.name, cell: (r) => <a href={link(['hosts', r.name])}>{r.name}</a> },
  {
    key: 'state',
    title: 'State',
    value: (r) => (r.connections ? 'connected' : 'away'),
    cell: (r) => <State word={r.connections ? 'connected' : 'away'} tone={r.connections ? 'good' : 'none'} />,
  },
  {
    key: 'proof',
    title: 'Proof',
    value: (r) => r.proof,
    title2: PROOF,
    rank: 2,
  },
  { key: 'paths', title: 'Paths', num: true, value: (r) => r.paths },
  { key: 'connections', title: 'Connections', num: true, value: (r) => r.connections, rank: 2 },
  { key: 'reads', title: 'Reads', num: true, value: (r) => r.reads, cell: (r) => perSecond(r.reads), rank: 2 },
  { key: 'writes', title: 'Writes', num: true, value: (r) => r.writes, cell: (r) => perSecond(r.writes), rank: 2 },
  { key: 'bytes', title: 'Data', num: true, value: (r) => r.bytes, cell: (r) => throughput(r.bytes), rank: 2 },
  {
    key: 'volumes',
    title: 'Volumes',
    num: true,
    value: (r) => r.volumes,
    cell: (r) => (
      <a href={link(['volumes'], { q: r.name })} title={r.list}>
        {r.volumes}
      </a>
    ),
  },
  {
    key: 'names',
    title: 'NQNs and IQNs',
    value: (r) => r.names,
    cell: (r) => (
      <code class="long" title={r.names}>
        {r.names}
      </code>
    ),
    rank: 3,
  },
];

interface PathRow {
  key: string;
  host: string;
  proof: string;
  portal: string;
  protocol: string;
  head: string;
  connections: number;
  inFlight: number;
  reads: number;
  writes: number;
  bytes: number;
  readNs: number | null;
  writeNs: number | null;
}

const PATHS: ColumnOf<PathRow>[] = [
  { key: 'host', title: 'Host', value: (r) => r.host },
  { key: 'portal', title: 'Portal', value: (r) => r.portal, cell: (r) => <code>{r.portal}</code> },
  { key: 'protocol', title: 'Protocol', value: (r) => r.protocol, rank: 2 },
  { key: 'proof', title: 'Proof', value: (r) => r.proof, title2: PROOF, rank: 3 },
  { key: 'head', title: 'Head', value: (r) => r.head, rank: 2 },
  {
    key: 'state',
    title: 'State',
    value: (r) => (r.connections ? 'connected' : 'left'),
    cell: (r) => <State word={r.connections ? 'connected' : 'left'} tone={r.connections ? 'good' : 'none'} />,
  },
  { key: 'connections', title: 'Connections', num: true, value: (r) => r.connections },
  { key: 'inflight', title: 'Under way', num: true, value: (r) => r.inFlight, title2: 'Commands under way', rank: 2 },
  { key: 'reads', title: 'Reads', num: true, value: (r) => r.reads, cell: (r) => perSecond(r.reads) },
  { key: 'writes', title: 'Writes', num: true, value: (r) => r.writes, cell: (r) => perSecond(r.writes) },
  { key: 'bytes', title: 'Data', num: true, value: (r) => r.bytes, cell: (r) => throughput(r.bytes), rank: 2 },
  { key: 'rlat', title: 'Read p50', num: true, value: (r) => r.readNs, cell: (r) => latency(r.readNs), rank: 3 },
  { key: 'wlat', title: 'Write p50', num: true, value: (r) => r.writeNs, cell: (r) => latency(r.writeNs), rank: 3 },
];

const pathRow = (h: Host, p: HostPath): PathRow => ({
  key: `${h.name} ${p.head ?? ''} ${p.protocol} ${p.portal}`,
  host: h.name,
  proof: proofBy(h, p.protocol),
  portal: p.portal,
  protocol: p.protocol,
  head: p.head ?? '',
  connections: p.connections,
  inFlight: p.in_flight,
  reads: p.rates.reads,
  writes: p.rates.writes,
  bytes: p.rates.read_bytes + p.rates.write_bytes,
  readNs: p.read_times?.timed ? p.read_times.p50_ns : null,
  writeNs: p.write_times?.timed ? p.write_times.p50_ns : null,
});

interface ConnectionRow {
  key: string;
  host: string;
  proof: string;
  peer: string;
  protocol: string;
  queue: number;
  session: number | null;
  head: string;
  shard: number;
  commands: number;
  inFlight: number;
  digests: string;
}

const CONNECTIONS: ColumnOf<ConnectionRow>[] = [
  {
    key: 'host',
    title: 'Host',
    value: (r) => r.host,
    cell: (r) => r.host || <State word="not authenticated" tone="warn" />,
  },
  { key: 'peer', title: 'From', value: (r) => r.peer, cell: (r) => <code>{r.peer}</code> },
  { key: 'protocol', title: 'Protocol', value: (r) => r.protocol },
  { key: 'proof', title: 'Proof', value: (r) => r.proof, title2: PROOF, rank: 3 },
  {
    key: 'session',
    title: 'Session',
    num: true,
    value: (r) => r.session,
    title2: 'NVMe controller id or iSCSI session',
    rank: 3,
  },
  {
    key: 'queue',
    title: 'Queue',
    num: true,
    value: (r) => r.queue,
    title2: 'NVMe queue id (0: admin) or iSCSI connection id',
    rank: 2,
  },
  { key: 'shard', title: 'Shard', num: true, value: (r) => r.shard, cell: (r) => `${r.head}${r.shard}`, rank: 2 },
  {
    key: 'commands',
    title: 'Commands',
    num: true,
    value: (r) => r.commands,
    cell: (r) => r.commands.toLocaleString('en'),
  },
  { key: 'inflight', title: 'Under way', num: true, value: (r) => r.inFlight },
  { key: 'digests', title: 'Digests', value: (r) => r.digests, rank: 3 },
];

const connectionRow = (c: Connection, h: Host | undefined): ConnectionRow => ({
  key: `${c.head ?? ''} ${c.peer} ${c.protocol}`,
  host: c.host ?? '',
  proof: proofBy(h, c.protocol),
  peer: c.peer,
  protocol: c.protocol,
  queue: c.queue,
  session: c.session ?? null,
  head: c.head ?? '',
  shard: c.shard,
  commands: c.commands,
  inFlight: c.in_flight,
  digests: [c.header_digest && 'header', c.data_digest && 'data'].filter(Boolean).join(', ') || 'none',
});

export function OneHost({ name }: { name: string }) {
  const s = status.value!;
  const h = s.hosts.find((x) => x.name === name);
  if (!h)
    return <NotThere kind="host" name={name} />;
  const row = rowOf(h);
  return (
    <>
      <div class="head-line">
        <h1>
          <a href="#/hosts">Hosts</a> / {h.name}
        </h1>
        <State word={h.connections ? 'connected' : 'away'} tone={h.connections ? 'good' : 'none'} />
        <span class="spring" />
        <span class="actions">
          <WhyNoOrders />
          <OrderButton order={() => <ExportVolume host={h.name} />}>Export a volume</OrderButton>
          <OrderButton order={() => <SetHostNames host={h} />}>Names</OrderButton>
          <OrderButton danger order={() => <RemoveHost host={h} />}>
            Remove
          </OrderButton>
        </span>
      </div>
      <Facts
        of={[
          ['Proof', row.proof],
          ['Reads', perSecond(row.reads)],
          ['Writes', perSecond(row.writes)],
          ['Data', throughput(row.bytes)],
          ['NQNs', h.nqns.length ? h.nqns.map((n) => <code key={n}>{n} </code>) : 'none'],
          ['IQNs', h.iqns.length ? h.iqns.map((n) => <code key={n}>{n} </code>) : 'none'],
        ]}
      />
      <Card title="Exports">
        {h.exports.length === 0 ? (
          <Empty>It sees no volume.</Empty>
        ) : (
          <table class="mini">
            <thead>
              <tr>
                <th scope="col">Volume</th>
                <th scope="col" class="num">
                  LUN
                </th>
                <th scope="col">
                  <span class="hidden">Orders</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {h.exports.map((e) => (
                <tr key={e.volume}>
                  <th scope="row">
                    <a href={link(['volumes', ...e.volume.split('/')])}>{e.volume}</a>
                  </th>
                  <td class="num">{e.lun}</td>
                  <td class="num">
                    <OrderButton small danger order={() => <UnexportVolume volume={e.volume} host={h.name} />}>
                      Unexport
                    </OrderButton>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <HowToConnect host={h.name} />
      </Card>
      <Card title="Paths">
        <Table
          name="Paths"
          one="path"
          prefix="p."
          rows={(h.paths ?? []).map((p) => pathRow(h, p))}
          columns={PATHS}
          rowKey={(r) => r.key}
          sort="portal"
          empty="It has not connected since the head started."
        />
      </Card>
      <Card title="Connections">
        <Table
          name="Connections"
          one="connection"
          prefix="c."
          rows={s.connections.filter((c) => c.host === h.name).map((c) => connectionRow(c, h))}
          columns={CONNECTIONS}
          rowKey={(r) => r.key}
          sort="peer"
          empty="It is not connected."
        />
      </Card>
    </>
  );
}

export function Hosts() {
  const s = status.value!;
  const paths = s.hosts.flatMap((h) => (h.paths ?? []).map((p) => pathRow(h, p)));
  const known = new Map(s.hosts.map((h) => [h.name, h]));
  const connections = s.connections.map((c) => connectionRow(c, known.get(c.host ?? '')));
  const unknown = s.connections.filter((c) => !c.host).length;
  return (
    <>
      <div class="head-line">
        <h1>Hosts</h1>
      </div>
      <Table
        name="Hosts"
        one="host"
        rows={s.hosts.map(rowOf)}
        columns={HOSTS}
        rowKey={(r) => r.name}
        text={(r) => `${r.name} ${r.names} ${r.list} ${r.proof}`}
        sort="name"
        empty="No host is registered yet."
        actions={
          <>
            <WhyNoOrders />
            <OrderButton order={() => <AddHost />}>Add host</OrderButton>
            {s.hosts.length > 0 && s.volumes.length > 0 && (
              <OrderButton order={() => <ExportVolume />}>Export a volume</OrderButton>
            )}
          </>
        }
      />
      <Card title="Paths" aside={<span class="dim">all that a host has over one portal</span>}>
        <Table
          name="Paths"
          one="path"
          prefix="p."
          rows={paths}
          columns={PATHS}
          rowKey={(r) => r.key}
          text={(r) => r.key}
          sort="host"
          empty="No host has connected since the head started."
        />
      </Card>
      <Card
        title="Connections"
        aside={unknown > 0 ? <span class="dim">{plural(unknown, 'connection')} before login</span> : null}
      >
        <Table
          name="Connections"
          one="connection"
          prefix="c."
          rows={connections}
          columns={CONNECTIONS}
          rowKey={(r) => r.key}
          text={(r) => `${r.host} ${r.peer} ${r.protocol}`}
          sort="host"
          empty="Nobody is connected."
        />
      </Card>
    </>
  );
}
