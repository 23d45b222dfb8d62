// Pools as trees: arrays, legs and spares, with resync, scrub and clearing under way.
import { duration, percent, perSecond, plural, shortPath, size, throughput } from '../format';
import { Bar, Empty, Facts, poolWord, Progress, State, Time } from '../parts';
import { OrderButton, WhyNoOrders } from '../orders/dialog';
import { FailDrive, ReplaceDrive, ReturnDrive, StartScrub, StopScrub } from '../orders/drive';
import { CreateVolume } from '../orders/volume';
import { link } from '../route';
import { driveKey, driveRates, status } from '../data/state';
import type { ArrayOf, Drive, Leg, Pool, Spare } from '../data/types';

export function Pools() {
  const s = status.value!;
  const drives = new Map(s.drives.map((d) => [d.uuid ?? d.path, d]));
  return (
    <>
      <div class="head-line">
        <h1>Pools</h1>
        <WhyNoOrders />
      </div>
      {s.pools.length === 0 && (
        <Empty>
          There is no pool yet: <code>millrace pool create tank mirror DRIVE DRIVE</code>
        </Empty>
      )}
      <div class="pools">
        {s.pools.map((p) => (
          <OnePool key={p.uuid} pool={p} drives={drives} />
        ))}
      </div>
    </>
  );
}

function OnePool({ pool: p, drives }: { pool: Pool; drives: Map<string, Drive> }) {
  const volumes = status.value!.volumes.filter((v) => v.name.startsWith(`${p.name}/`)).length;
  return (
    <section class="card pool" aria-label={`Pool ${p.name}`}>
      <header>
        <h2>{p.name}</h2>
        <State word={poolWord(p)} />
        <span class="spring" />
        <span class="actions">
          <OrderButton order={() => <CreateVolume pool={p.name} />}>Create volume</OrderButton>
          {p.scrub.running ? (
            <OrderButton order={() => <StopScrub pool={p} />}>Stop scrub</OrderButton>
          ) : (
            <OrderButton order={() => <StartScrub pool={p} />}>Start scrub</OrderButton>
          )}
        </span>
      </header>
      {p.reason && <p class="why-not">{p.reason}</p>}
      <div class="pool-space">
        <Bar
          part={p.used_bytes}
          whole={p.bytes}
          label={`Space of pool ${p.name} in use`}
          tone={p.used_bytes > 0.9 * p.bytes ? 'warn' : ''}
        />
        <Facts
          of={[
            ['Used', `${size(p.used_bytes)} (${percent(p.used_bytes, p.bytes)})`],
            ['Free', size(p.bytes - p.used_bytes)],
            ['Size', size(p.bytes)],
            ['Volumes', <a href={link(['volumes'], { q: `${p.name}/` })}>{plural(volumes, 'volume')}</a>],
            ['Chunk', size(p.chunk_bytes)],
            ['Last scrub', <LastScrub pool={p} />],
            [
              'Next scrub',
              p.scrub.every_days
                ? `${plural(p.scrub.every_days, 'day')} after the last${p.scrub.schedule_repairs ? ', repairs' : ''}`
                : 'by order',
            ],
          ]}
        />
      </div>
      {p.scrub.running && (
        <Progress
          what={p.scrub.repair ? 'scrub, repairs' : 'scrub'}
          done={p.scrub.done_bytes}
          total={p.scrub.total_bytes}
          rate={p.scrub.rate}
          left={p.scrub.seconds_left}
        />
      )}
      {p.clearing && (
        <p class="progress">
          <State word="clearing" tone="busy" />
          <span class="dim">
            {size(p.clearing.left_bytes)} to go · {throughput(p.clearing.rate)}
            {p.clearing.seconds_left != null && ` · ${duration(p.clearing.seconds_left)} left`}
          </span>
        </p>
      )}
      {p.scrub.findings.length > 0 && (
        <ul class="notices">
          {p.scrub.findings.slice(0, 20).map((f, i) => (
            <li key={i}>
              <State word={f.repaired ? 'repaired' : 'differs'} tone={f.repaired ? 'good' : 'warn'} />
              <span>
                {f.volume ?? 'space of no volume'} at {size(f.at)}, {size(f.bytes)}: {f.what}
              </span>
            </li>
          ))}
        </ul>
      )}
      <ul class="tree" aria-label={`Arrays of pool ${p.name}`}>
        {p.arrays.map((a, i) => (
          <OneArray key={i} array={a} index={i} pool={p} drives={drives} />
        ))}
        {p.spares.length > 0 && (
          <li>
            <div class="node">
              <b>spares</b>
            </div>
            <ul>
              {p.spares.map((x) => (
                <OneSpare key={x.uuid} spare={x} />
              ))}
            </ul>
          </li>
        )}
      </ul>
    </section>
  );
}

function LastScrub({ pool: { scrub: s } }: { pool: Pool }) {
  if (!s.last_ended) return <>never</>;
  return (
    <>
      <Time at={s.last_ended} />
      {s.differed_bytes + s.unreadable_bytes === 0 ? ', no difference' : `, ${size(s.differed_bytes)} differed`}
    </>
  );
}

function OneArray({
  array: a,
  index,
  pool,
  drives,
}: {
  array: ArrayOf;
  index: number;
  pool: Pool;
  drives: Map<string, Drive>;
}) {
  return (
    <li>
      <div class="node">
        <b>
          {a.layout}-{index}
        </b>
        <State word={a.state} />
        <span class="dim">
          {size(a.bytes)}
          {a.regions_dirty > 0 && ` · ${a.regions_dirty} of ${plural(a.regions, 'region')} dirty`}
        </span>
      </div>
      {a.reason && <p class="why-not">{a.reason}</p>}
      {a.resync && (
        <Progress
          what={a.resync.partial ? 'resync of what was missed' : 'resync'}
          done={a.resync.done_bytes}
          total={a.resync.total_bytes}
          rate={a.resync.rate}
          left={a.resync.seconds_left}
        />
      )}
      <ul>
        {a.legs.map((leg) => (
          <OneLeg key={leg.uuid} leg={leg} drive={drives.get(leg.uuid)} pool={pool} mirror={a.layout === 'mirror'} />
        ))}
      </ul>
    </li>
  );
}

function OneLeg({ leg, drive, pool, mirror }: { leg: Leg; drive: Drive | undefined; pool: Pool; mirror: boolean }) {
  const name = leg.path || leg.uuid;
  const r = drive && driveRates.value.get(driveKey(drive));
  const well = leg.state === 'optimal';
  return (
    <li>
      <div class="node leg">
        <a href={link(['drives', name])} title={name}>
          {shortPath(name)}
        </a>
        <State word={leg.slow && well ? 'slow' : leg.state} tone={leg.slow && well ? 'warn' : undefined} />
        {drive && drive.role !== 'missing' && (
          <span class="dim">
            {size(drive.bytes)}
            {drive.model && ` · ${drive.model}`}
            {r && r.reads + r.writes > 0 && ` · ${perSecond(r.reads)} reads, ${perSecond(r.writes)} writes`}
          </span>
        )}
        <span class="spring" />
        <span class="actions">
          {mirror &&
            (well ? (
              <OrderButton small order={() => <FailDrive drive={name} pool={pool.name} />}>
                Fail
              </OrderButton>
            ) : (
              leg.state !== 'rebuilding' && (
                <OrderButton small order={() => <ReturnDrive drive={name} />}>
                  Return
                </OrderButton>
              )
            ))}
          <OrderButton small order={() => <ReplaceDrive drive={name} />}>
            Replace
          </OrderButton>
        </span>
      </div>
      {leg.reason && <p class="why-not">{leg.reason}</p>}
      {leg.replaces && <p class="dim">takes the place of {leg.replaces} once it is in sync</p>}
    </li>
  );
}

function OneSpare({ spare: x }: { spare: Spare }) {
  return (
    <li>
      <div class="node leg">
        <a href={link(['drives', x.path || x.uuid])} title={x.path}>
          {shortPath(x.path || x.uuid)}
        </a>
        <State word={x.ready ? 'ready' : 'not ready'} tone={x.ready ? 'good' : 'bad'} />
        <span class="dim">{size(x.bytes)}</span>
      </div>
      {(x.reason || x.fits) && <p class="why-not">{x.reason || x.fits}</p>}
    </li>
  );
}
