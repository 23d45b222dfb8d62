// Portals, where hosts connect, and shards, which serve them.
import { percent, size, whole } from '../format';
import { Bar, Card, State } from '../parts';
import { type ColumnOf, Table } from '../table';
import type { Status } from '../data/types';

interface PortalRow {
  key: string;
  address: string;
  protocol: string;
  head: string;
  state: string;
  on: string;
  connections: number;
  reason: string;
}
const PORTALS: ColumnOf<PortalRow>[] = [
  { key: 'address', title: 'Address', value: (r) => r.address, cell: (r) => <code>{r.address}</code> },
  { key: 'protocol', title: 'Protocol', value: (r) => r.protocol },
  { key: 'head', title: 'Head', value: (r) => r.head, rank: 2 },
  {
    key: 'state',
    title: 'State',
    value: (r) => r.state,
    cell: (r) => <State word={r.state} title={r.reason || undefined} tone={r.reason ? 'bad' : undefined} />,
  },
  { key: 'on', title: 'Interface', value: (r) => r.on, rank: 2 },
  { key: 'connections', title: 'Connections', num: true, value: (r) => r.connections },
  { key: 'reason', title: 'Why not', value: (r) => r.reason, rank: 3 },
];

export function Portals({ s }: { s: Status }) {
  const rows = s.portals.map(
    (p): PortalRow => ({
      key: `${p.protocol} ${p.address} ${p.head ?? ''}`,
      address: p.address,
      protocol: p.protocol,
      head: p.head ?? (p.prefix ? 'moves' : ''),
      on: p.on ?? p.interface ?? '',
      state: p.served_by ? `served by ${p.served_by}` : p.listening ? 'listening' : 'not listening',
      connections: p.connections,
      reason: p.reason,
    }),
  );
  return (
    <Card title="Portals" wide>
      <Table
        name="Portals"
        one="portal"
        prefix="p."
        rows={rows}
        columns={PORTALS}
        rowKey={(r) => r.key}
        text={(r) => `${r.address} ${r.protocol}`}
        sort="address"
        empty="No portal: millrace portal add nvme ADDRESS:4420"
      />
    </Card>
  );
}

interface ShardRow {
  key: string;
  shard: string;
  connections: number;
  commands: number;
  requests: number;
  ops: number;
  used: number;
  max: number;
  turn: number;
  long: number;
  faults: number;
  last: string;
}
const SHARDS: ColumnOf<ShardRow>[] = [
  { key: 'shard', title: 'Shard', value: (r) => r.shard },
  { key: 'connections', title: 'Connections', num: true, value: (r) => r.connections },
  { key: 'commands', title: 'Commands', num: true, value: (r) => r.commands, cell: (r) => whole(r.commands), rank: 2 },
  { key: 'requests', title: 'Under way', num: true, value: (r) => r.requests, title2: 'Requests under way' },
  {
    key: 'ops',
    title: 'Drive operations',
    num: true,
    value: (r) => r.ops,
    title2: 'Drive operations under way',
    rank: 2,
  },
  {
    key: 'used',
    title: 'Buffers',
    num: true,
    value: (r) => r.used,
    cell: (r) => (
      <span class="with-bar">
        <Bar part={r.used} whole={r.max} label={`Buffers of shard ${r.shard}`} />
        {percent(r.used, r.max)} of {size(r.max)}
      </span>
    ),
  },
  {
    key: 'turn',
    title: 'Longest turn',
    num: true,
    value: (r) => r.turn,
    cell: (r) => `${(r.turn / 1000).toFixed(1)} ms`,
    title2: 'Of the last one to two minutes; it should be below 5 ms',
    rank: 2,
  },
  {
    key: 'long',
    title: 'Long turns',
    num: true,
    value: (r) => r.long,
    cell: (r) => whole(r.long),
    title2: 'Turns of more than 5 ms since the start',
    rank: 3,
  },
  {
    key: 'faults',
    title: 'Protocol errors',
    num: true,
    value: (r) => r.faults,
    cell: (r) => <span title={r.last || undefined}>{r.faults}</span>,
    rank: 3,
  },
];

export function Shards({ s }: { s: Status }) {
  const rows = s.shards.map(
    (x): ShardRow => ({
      key: `${x.head ?? ''}${x.shard}`,
      shard: `${x.head ?? ''}${x.shard}`,
      connections: x.connections,
      commands: x.commands,
      requests: x.requests,
      ops: x.drive_ops,
      used: x.buffer_bytes,
      max: x.buffer_bytes_max,
      turn: x.longest_turn_us,
      long: x.long_turns,
      faults: x.protocol_errors,
      last: x.last_protocol_error,
    }),
  );
  return (
    <Card title="Shards" wide>
      <Table
        name="Shards"
        one="shard"
        prefix="s."
        rows={rows}
        columns={SHARDS}
        rowKey={(r) => r.key}
        sort="shard"
        empty="No shard"
      />
    </Card>
  );
}
