// The system: its heads, the link, voters and fences, portals, shards, tokens and alarms.
import { useAnswer } from '../data/ask';
import { duration, plural, size, whole } from '../format';
import { Card, Empty, Facts, Level, Next, State, Time } from '../parts';
import { status } from '../data/state';
import type { Alarms, Tokens } from '../data/asked';
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
      <table class="mini">
        <thead>
          <tr>
            <th scope="col">Network</th>
            <th scope="col">State</th>
            <th scope="col" class="num">
              Last heartbeat
            </th>
          </tr>
        </thead>
        <tbody>
          {(c.networks ?? []).map((n) => (
            <tr key={n.address}>
              <th scope="row">
                <code>{n.address}</code>
              </th>
              <td>
                <State word={n.up ? 'up' : 'down'} />
              </td>
              <td class="num">{n.heartbeat_ms == null ? 'none' : `${whole(n.heartbeat_ms)} ms ago`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(c.fences?.length ?? 0) > 0 && (
        <table class="mini">
          <thead>
            <tr>
              <th scope="col">Fence of</th>
              <th scope="col">Trial</th>
              <th scope="col" class="num">
                Took
              </th>
            </tr>
          </thead>
          <tbody>
            {c.fences!.map((f) => (
              <tr key={f.drive}>
                <th scope="row">{f.drive}</th>
                <td>
                  <State word={f.state} title={f.reason ?? undefined} />
                </td>
                <td class="num">{f.took_ms == null ? '–' : `${f.took_ms} ms`}</td>
              </tr>
            ))}
          </tbody>
        </table>
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
        <table class="mini">
          <thead>
            <tr>
              <th scope="col">Receiver</th>
              <th scope="col">State</th>
              <th scope="col" class="rank2">
                From
              </th>
              <th scope="col" class="num rank2">
                Waiting
              </th>
              <th scope="col">Last sent</th>
            </tr>
          </thead>
          <tbody>
            {a.receivers.map((r) => (
              <tr key={r.name}>
                <th scope="row">
                  {r.name} <span class="dim">{r.kind}</span>
                </th>
                <td>
                  <State word={r.state} title={r.reason} />
                </td>
                <td class="rank2">
                  <Level weight={r.level} />
                </td>
                <td class="num rank2">{r.waiting}</td>
                <td>
                  <Time at={r.sent} absent="never" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
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
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Tokens, table">
          <table class="mini">
            <thead>
              <tr>
                <th scope="col">Token</th>
                <th scope="col">Rights</th>
                <th scope="col">Last used</th>
                <th scope="col">Expires</th>
              </tr>
            </thead>
            <tbody>
              {t.tokens.map((x) => (
                <tr key={x.name}>
                  <th scope="row">{x.name}</th>
                  <td>{x.rights}</td>
                  <td>
                    <Time at={x.used} absent="never" />
                  </td>
                  <td>
                    <Time at={x.expires} absent="never" />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {t?.fingerprint && (
        <p class="dim break">
          Certificate, SHA-256: <code>{t.fingerprint}</code>
        </p>
      )}
    </Card>
  );
}
