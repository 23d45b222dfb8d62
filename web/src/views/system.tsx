// The system: its heads, the link, voters and fences, portals, shards, tokens and alarms.
import { useAnswer } from '../data/ask';
import { duration, plural, size, whole } from '../format';
import { Card, Empty, Facts, Level, Next, State, Time } from '../parts';
import { status } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Alarms, Receiver, Token, Tokens } from '../data/asked';
import type { Cluster, Head } from '../data/types';
import { Portals, Shards } from './portals';

export function System() {
  const s = status.value!;
  return (
    <>
      <div class="head-line">
        <h1>System</h1>
      </div>
      {s.cluster ? <Heads c={s.cluster} /> : null}
      <div class="cards">
        <div class="stack">
          {s.cluster ? (
            <Link c={s.cluster} />
          ) : (
            <Card title="Heads">
              <Empty>
                This head is alone. A second one takes over if it fails:{' '}
                <code>millrace system create --link ADDRESS:PORT</code>
              </Empty>
            </Card>
          )}
          <AlarmCard />
        </div>
        <div class="stack">
          <Card title="This head">
            <Facts
              of={[
                ['Version', s.daemon.version],
                ['Up', duration(s.uptime_seconds)],
                ['Process', String(s.daemon.pid)],
                ['State directory', <code>{s.daemon.state_dir}</code>],
                ['Memory for data', size(s.daemon.memory_data_bytes)],
                ['Memory resident', `${size(s.daemon.memory_resident_bytes)} of ${size(s.daemon.memory_bytes)}`],
              ]}
            />
            {s.daemon.management_only && (
              <p class="why-not">
                The pools were not imported at the start, because the head had crashed three times in a minute:{' '}
                <code>millrace serve --import</code>
              </p>
            )}
          </Card>
          <TokenCard />
        </div>
        <Card title="Names">
          <Facts
            of={[
              ['NVMe subsystem', <code>{s.system.nqn}</code>],
              ['iSCSI target', <code>{s.system.iqn}</code>],
              ['UUID', <code>{s.system.uuid}</code>],
              ['Serial', <code>{s.system.serial}</code>],
              ['Model', `${s.system.model} ${s.system.firmware}`],
            ]}
          />
        </Card>
      </div>
      <Portals s={s} />
      <Shards s={s} />
    </>
  );
}

function Heads({ c }: { c: Cluster }) {
  return (
    <div class="cards heads-cards">
      {c.heads.map((h) => (
        <OneHead key={h.head} h={h} c={c} />
      ))}
    </div>
  );
}

function OneHead({ h, c }: { h: Head; c: Cluster }) {
  return (
    <Card
      title={`Head ${h.head}${h.name ? ` · ${h.name}` : ''}`}
      aside={<State word={h.state === 'none' ? 'not there yet' : h.state} />}
    >
      {h.out && (
        <p class="why-not">
          Out since <Time at={h.out.since} absent="a time not known here" />
          {h.out.reason && `: ${h.out.reason}`}. It is shut off {h.out.shut_off} of {plural(h.out.drives, 'drive')}
          {h.out.lives ? ', and lives' : ''}.
        </p>
      )}
      <Facts
        of={[
          ['Ready', h.state === 'leads' ? 'it leads' : h.ready ? 'to take over' : 'no'],
          ['Answers this page', h.head === c.me ? 'yes' : 'no'],
          [
            'Drives reached',
            h.reaches == null ? 'not known here' : `${h.reaches}${c.drives != null ? ` of ${c.drives}` : ''}`,
          ],
          ['In since epoch', String(h.since_epoch)],
          ['Hosts', h.serves ? String(h.serves.hosts) : '–'],
          ['Commands', h.serves ? whole(h.serves.commands) : '–'],
          [
            'Lanes',
            h.serves ? `${h.serves.lanes} of ${h.serves.lanes_all}` : '–',
            'Sixteenths of mirrors whose writes it carries out',
          ],
          [
            'Addresses',
            h.addresses?.length
              ? h.addresses.map((a) => `${a.address}${a.on ? ` on ${a.on}` : ''}`).join(', ')
              : 'none that move',
          ],
        ]}
      />
    </Card>
  );
}

type Network = NonNullable<Cluster['networks']>[number];
type Fence = NonNullable<Cluster['fences']>[number];

const NETWORKS: ColumnOf<Network>[] = [
  { key: 'address', title: 'Network', value: (n) => n.address, cell: (n) => <code>{n.address}</code> },
  { key: 'state', title: 'State', value: (n) => (n.up ? 'up' : 'down'), cell: (n) => <State word={n.up ? 'up' : 'down'} /> },
  {
    key: 'heartbeat',
    title: 'Last heartbeat',
    num: true,
    value: (n) => n.heartbeat_ms,
    cell: (n) => (n.heartbeat_ms == null ? 'none' : `${whole(n.heartbeat_ms)} ms ago`),
  },
];

const FENCES: ColumnOf<Fence>[] = [
  { key: 'drive', title: 'Fence of', value: (f) => f.drive },
  {
    key: 'trial',
    title: 'Trial',
    value: (f) => f.state,
    cell: (f) => <State word={f.state} title={f.reason ?? undefined} />,
  },
  {
    key: 'took',
    title: 'Took',
    num: true,
    value: (f) => f.took_ms,
    cell: (f) => (f.took_ms == null ? '–' : `${f.took_ms} ms`),
  },
];

const RECEIVERS: ColumnOf<Receiver>[] = [
  {
    key: 'name',
    title: 'Receiver',
    value: (r) => r.name,
    cell: (r) => (
      <>
        {r.name} <span class="dim">{r.kind}</span>
      </>
    ),
  },
  { key: 'state', title: 'State', value: (r) => r.state, cell: (r) => <State word={r.state} title={r.reason} /> },
  { key: 'from', title: 'From', value: (r) => r.level, cell: (r) => <Level weight={r.level} />, rank: 2 },
  { key: 'waiting', title: 'Waiting', num: true, value: (r) => r.waiting, rank: 2 },
  { key: 'sent', title: 'Last sent', value: (r) => r.sent, cell: (r) => <Time at={r.sent} absent="never" /> },
];

const TOKENS: ColumnOf<Token>[] = [
  { key: 'name', title: 'Token', value: (x) => x.name },
  { key: 'rights', title: 'Rights', value: (x) => x.rights },
  { key: 'used', title: 'Last used', value: (x) => x.used, cell: (x) => <Time at={x.used} absent="never" /> },
  { key: 'expires', title: 'Expires', value: (x) => x.expires, cell: (x) => <Time at={x.expires} absent="never" /> },
];

function Link({ c }: { c: Cluster }) {
  return (
    <Card
      title="Link and voters"
      aside={<State word={c.linked ? 'link up' : 'link down'} tone={c.linked ? 'good' : 'bad'} />}
    >
      {c.refused && (
        <p class="why-not">
          {c.refused.reason} <Next text={c.refused.next} />
        </p>
      )}
      <Facts
        of={[
          ['Epoch', String(c.epoch)],
          ['Voters reached', `${c.voters_reached ?? '–'} of ${c.voters}`],
          [
            'Heartbeat on drives',
            c.heartbeat_on_drives_ms == null ? 'none seen' : `${whole(c.heartbeat_on_drives_ms)} ms ago`,
          ],
          ['UUID', <code>{c.uuid}</code>],
        ]}
      />
      {c.blind && <p class="why-not">Most voters are not seen: reads wait, and hosts are told to come again.</p>}
      <Table
        name="Networks of the link"
        one="network"
        prefix="n."
        rows={c.networks ?? []}
        columns={NETWORKS}
        rowKey={(n) => n.address}
        sort="address"
        empty="No network of the link is known."
      />
      {(c.fences?.length ?? 0) > 0 && (
        <Table
          name="Fences"
          one="fence"
          prefix="f."
          rows={c.fences!}
          columns={FENCES}
          rowKey={(f) => f.drive}
          sort="drive"
          empty=""
        />
      )}
      {c.late.length > 0 && <p class="why-not">Not known to be shut off: {c.late.join(', ')}</p>}
      {(c.unreached?.length ?? 0) > 0 && (
        <p class="why-not">
          The head that follows does not reach {c.unreached!.join(', ')}: it would take over without them.
        </p>
      )}
    </Card>
  );
}

function AlarmCard() {
  const { value: a, error } = useAnswer<Alarms>('/alarms', 15_000);
  return (
    <Card title="Alarms">
      {error?.code === 'alarms_off' ? (
        <Empty>
          Nobody is told: head.toml names no receiver. <code>millrace serve --example</code> shows one.
        </Empty>
      ) : (
        error && <Empty>{error.message}</Empty>
      )}
      {a && !error && (
        <Table
          name="Alarm receivers"
          one="receiver"
          prefix="a."
          rows={a.receivers}
          columns={RECEIVERS}
          rowKey={(r) => r.name}
          sort="name"
          empty="No receiver is named."
        />
      )}
      {a && a.standing.length > 0 && (
        <ul class="events">
          {a.standing.map((x, i) => (
            <li key={i}>
              <Time at={x.since ?? x.at} />
              <Level weight={x.level} />
              <span>
                <b>{x.subject}</b>: {x.message}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function TokenCard() {
  const { value: t, error } = useAnswer<Tokens>('/tokens', 30_000);
  return (
    <Card
      title="Tokens"
      aside={t?.address ? <span class="dim">API at {t.address}</span> : <span class="dim">by the socket alone</span>}
    >
      {error && <Empty>{error.message}</Empty>}
      {t && t.tokens.length === 0 && (
        <Empty>
          There is no token: <code>millrace token add NAME</code>
        </Empty>
      )}
      {t && t.tokens.length > 0 && (
        <Table
          name="Tokens"
          one="token"
          prefix="t."
          rows={t.tokens}
          columns={TOKENS}
          rowKey={(x) => x.name}
          sort="name"
          empty=""
        />
      )}
      {t?.fingerprint && (
        <p class="dim break">
          Certificate, SHA-256: <code>{t.fingerprint}</code>
        </p>
      )}
    </Card>
  );
}
