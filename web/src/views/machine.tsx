// The machine of the head that answers: drawn, with full links marked, and its drives and ports in figures.
import { useAnswer } from '../data/ask';
import { plural, size, throughput, whole } from '../format';
import { Card, Empty, Facts, State } from '../parts';
import { now } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Topology } from '../data/asked';
import { Explain } from './explain';

/** How often the drawing is made anew. */
const DRAWN_EVERY_MS = 15_000;

export function Machine() {
  const { value: t, error } = useAnswer<Topology>('/topology', DRAWN_EVERY_MS);
  const drawn = Math.floor(now.value / DRAWN_EVERY_MS);
  return (
    <>
      <div class="head-line">
        <h1>Machine</h1>
        {t && (
          <p class="now">
            <span>
              <b>{t.host}</b>
            </span>
            <span>{[t.product, t.processor].filter(Boolean).join(' · ')}</span>
            <span>{size(t.memory_kib * 1024)}</span>
            <span>{t.kernel}</span>
          </p>
        )}
      </div>
      {error && <Empty>The machine is not known: {error.message}.</Empty>}
      <div class="machine">
        <Card title="Drawn" aside={<span class="dim">what is at its limit now has a red ground</span>}>
          {error ? (
            <Empty>No drawing</Empty>
          ) : (
            <div class="scroll-x drawing" tabIndex={0} role="region" aria-label="Drawing of the machine">
              <img
                src={`/api/v1/topology.svg?turn=${drawn}`}
                alt={
                  t
                    ? `Machine ${t.host}: ${plural(t.nodes.length, 'node')}, ${plural(t.drives.length, 'drive')}, ${plural(t.ports.length, 'port')}. The tables below say the same.`
                    : 'Machine'
                }
              />
            </div>
          )}
          {t && t.gaps.length > 0 && (
            <ul class="dim gaps">
              {t.gaps.map((g, i) => (
                <li key={i}>Not seen: {g.message}</li>
              ))}
            </ul>
          )}
        </Card>
        <Explain full />
      </div>
      {t && <Tables t={t} />}
    </>
  );
}

interface LinkRow {
  key: string;
  name: string;
  what: string;
  slot: string;
  node: string;
  link: string;
  reduced: string;
  busy: number | null;
  depth: number;
  data: number | null;
  celsius: number | null;
  used: number | null;
}

/** Bytes a second that a lane of PCIe carries, headers taken off. */
const LANE: Record<number, number> = { 1: 0.22e9, 2: 0.44e9, 3: 0.88e9, 4: 1.76e9, 5: 3.5e9, 6: 7e9 };

const COLUMNS: ColumnOf<LinkRow>[] = [
  { key: 'name', title: 'Device', value: (r) => r.name },
  { key: 'what', title: 'What', value: (r) => r.what, rank: 2 },
  { key: 'slot', title: 'Slot', value: (r) => r.slot, rank: 2 },
  { key: 'node', title: 'Node', value: (r) => r.node, rank: 3 },
  { key: 'link', title: 'Link', value: (r) => r.link },
  {
    key: 'reduced',
    title: 'Could be',
    value: (r) => r.reduced,
    cell: (r) => (r.reduced ? <State word={r.reduced} tone="warn" /> : '–'),
    title2: 'A link that runs below what both its ends could do',
  },
  { key: 'data', title: 'Data', num: true, value: (r) => r.data, cell: (r) => throughput(r.data) },
  {
    key: 'depth',
    title: 'Link used',
    num: true,
    value: (r) => r.depth,
    cell: (r) =>
      r.depth >= 0.85 ? (
        <State word={`full, ${Math.round(r.depth * 100)} %`} tone="bad" />
      ) : r.depth >= 0 ? (
        `${Math.round(r.depth * 100)} %`
      ) : (
        '–'
      ),
  },
  {
    key: 'busy',
    title: 'Busy',
    num: true,
    value: (r) => r.busy,
    cell: (r) => (r.busy == null ? '–' : `${Math.round(r.busy * 100)} %`),
    title2: 'Part of the time with an operation under way',
    rank: 2,
  },
  {
    key: 'celsius',
    title: 'Temperature',
    num: true,
    value: (r) => r.celsius,
    cell: (r) => (r.celsius == null ? '–' : `${Math.round(r.celsius)} °C`),
    rank: 2,
  },
];

function Tables({ t }: { t: Topology }) {
  const devices = new Map(t.devices.map((d) => [d.address, d]));
  const row = (
    name: string,
    address: string | null,
    what: string,
    slot: string | null,
    data: number | null,
    more: Partial<LinkRow>,
  ): LinkRow => {
    const d = address ? devices.get(address) : undefined;
    const [l, most] = [d?.link?.now, d?.link?.below_max];
    const above = d?.link?.above_max;
    const lanes = Math.min(most?.width ?? 0, above?.width ?? most?.width ?? 0);
    const generation = Math.min(most?.generation ?? 0, above?.generation ?? most?.generation ?? 0);
    const slower = l && (l.width < lanes || l.generation < generation);
    const carries = l ? (LANE[l.generation] ?? 0) * l.width : 0;
    return {
      key: name,
      name,
      what,
      slot: slot ?? '',
      node: d?.node == null ? '' : String(d.node),
      link: l ? `Gen ${l.generation} ×${l.width}` : '',
      reduced: slower ? `Gen ${generation} ×${lanes}` : '',
      busy: null,
      celsius: null,
      used: null,
      data,
      depth: data != null && carries ? data / carries : -1,
      ...more,
    };
  };
  /** What drives below a switch move through its uplink, and how many there are. */
  const below = (port: number) => {
    const isBelow = (address: string | null) => {
      let at = t.devices.findIndex((d) => d.address === address);
      while (at >= 0 && at !== port) at = t.devices[at]?.parent ?? -1;
      return at === port;
    };
    const drives = t.drives.filter((d) => isBelow(d.device));
    const sum = (of: 'read_bytes' | 'write_bytes') => drives.reduce((n, d) => n + (d.activity?.[of] ?? 0), 0);
    const seen = drives.some((d) => d.activity);
    return { count: drives.length, data: seen ? Math.max(sum('read_bytes'), sum('write_bytes')) : null };
  };
  const switches = t.devices.flatMap((d, i) => {
    if (d.port !== 'switch-up') return [];
    const { count, data } = below(i);
    return [row(d.address, d.address, `uplink of a switch, ${plural(count, 'drive')} below it`, d.slot, data, {})];
  });
  const rows = [
    ...switches,
    ...t.drives.map((d) =>
      row(
        d.name,
        d.device,
        `${d.model ?? d.kind}, ${size(d.bytes)}`,
        d.slot,
        d.activity ? Math.max(d.activity.read_bytes, d.activity.write_bytes) : null,
        { busy: d.activity?.busy ?? null, celsius: d.temperature?.now ?? null },
      ),
    ),
    ...t.ports.map((p) => {
      const data = p.rx_bytes == null && p.tx_bytes == null ? null : Math.max(p.rx_bytes ?? 0, p.tx_bytes ?? 0);
      const speed = p.speed_mbit ? `${whole(p.speed_mbit / 1000)} Gbit/s` : 'speed not known';
      return row(
        p.name,
        p.device,
        `Ethernet ${speed}, ${p.state}, MTU ${p.mtu}`,
        null,
        data,
        p.speed_mbit && data != null ? { depth: data / (p.speed_mbit * 125_000) } : {},
      );
    }),
  ];
  return (
    <>
      <Card title="Links" aside={<span class="dim">rates of the busier direction</span>} wide>
        <Table
          name="Links"
          one="device"
          rows={rows}
          columns={COLUMNS}
          rowKey={(r) => r.key}
          text={(r) => `${r.name} ${r.what} ${r.slot} ${r.link}`}
          sort="name"
          empty="No device is seen."
        />
      </Card>
      {t.cpus.some((c) => c.busy != null) && (
        <Card
          title="Cores"
          aside={
            <span class="dim">
              {plural(t.cpus.length, 'thread')}, {plural(t.nodes.length, 'node')}
            </span>
          }
          wide
        >
          <div class="cores">
            {t.cpus.map((c) => (
              <Core key={c.id} id={c.id} busy={c.busy} />
            ))}
          </div>
          <Facts
            of={t.nodes.map((n) => [
              `Node ${n.id}`,
              `${plural(n.cpus.length, 'thread')}, ${size(n.memory_kib * 1024)}`,
            ])}
          />
        </Card>
      )}
    </>
  );
}

function Core({ id, busy }: { id: number; busy: number | null }) {
  const text = busy == null ? '–' : `${Math.round(busy * 100)} %`;
  return (
    <span class="core" title={`CPU ${id}: ${text} busy`}>
      <span class="fill" style={{ height: `${Math.round((busy ?? 0) * 100)}%` }} />
      <span class="text">
        {id}
        <br />
        {text}
      </span>
    </span>
  );
}
