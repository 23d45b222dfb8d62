// The top of the page, always there: health with the next action, the heads, who is signed in, and whether the head answers.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from './data/api';
import { duration, localTime, plural } from './format';
import { Icon, Next, ReasonLine, State, Time, toneOf } from './parts';
import { OrderButton, done } from './orders/dialog';
import { ReplaceDrive, ReturnDrive } from './orders/drive';
import { link, route } from './route';
import { now, old, session, signedOut, status, statusAt, trouble } from './data/state';
import { type Theme, setTheme, theme } from './theme';
import type { Cluster, Head } from './data/types';

export function Top({ skip }: { skip: (e: MouseEvent) => void }) {
  const s = status.value;
  return (
    <header class={`top${old.value ? ' old' : ''}`}>
      <a class="skip" href="#/" onClick={skip}>
        Skip to the view
      </a>
      <a class="brand" href="#/">
        <img src="/assets/icon.svg" alt="" width="20" height="20" />
        Millrace
      </a>
      {s && (
        <a class={`health ${trouble.value ? 'none' : toneOf(s.health)}`} href="#/">
          <Icon tone={trouble.value ? 'none' : toneOf(s.health)} />
          {trouble.value && 'was '}
          {s.health}
        </a>
      )}
      {s && <Heads cluster={s.cluster ?? null} />}
      <span class="spring" />
      <Connection />
      <Who />
      <Themes />
    </header>
  );
}

function Heads({ cluster }: { cluster: Cluster | null }) {
  if (!cluster)
    return (
      <a class="head" href="#/system">
        one head
      </a>
    );
  const heads = cluster.heads.filter((h) => h.state !== 'none');
  return (
    <span class="heads">
      {heads.map((h) => (
        <HeadChip key={h.head} head={h} cluster={cluster} />
      ))}
      {heads.length > 1 && (
        <span class="head">
          <State word={cluster.linked ? 'link up' : 'link down'} tone={cluster.linked ? 'good' : 'bad'} />
        </span>
      )}
    </span>
  );
}

function HeadChip({ head, cluster }: { head: Head; cluster: Cluster }) {
  const reached =
    head.reaches == null || cluster.drives == null
      ? ''
      : `, reaches ${head.reaches} of ${plural(cluster.drives, 'drive')}`;
  const short = head.reaches != null && cluster.drives != null && head.reaches < cluster.drives;
  const word = head.state === 'follows' && !head.ready ? 'follows, not ready' : head.state;
  return (
    <a
      class="head"
      href="#/system"
      title={`Head ${head.head} (${head.name}) ${word}${reached}${head.head === cluster.me ? '; it answers' : ''}`}
    >
      <State
        word={`${head.head} ${word}`}
        tone={short || (head.state === 'follows' && !head.ready) ? 'warn' : toneOf(head.state)}
      />
    </a>
  );
}

function Connection() {
  const where = location.host;
  if (trouble.value)
    return (
      <span class="conn bad" title={trouble.value.message}>
        <Icon tone="bad" />
        no answer
      </span>
    );
  if (!status.value) return null;
  return (
    <span class="conn" title={`Head at ${where}; the status is of ${localTime(status.value.at)}`}>
      <span class="beat" />
      {where}
    </span>
  );
}

function Who() {
  const s = session.value;
  if (!s) return null;
  const out = async () => {
    try {
      await ask('DELETE', '/session');
    } finally {
      signedOut();
    }
  };
  return (
    <details
      class="who"
      onFocusOut={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) e.currentTarget.open = false;
      }}
    >
      <summary>
        <span class="name">{s.name}</span>
        {s.rights === 'read' && <span class="tag">read-only</span>}
      </summary>
      <div class="menu">
        <p>{s.rights === 'read' ? 'This token may look and give no orders.' : 'May give all orders.'}</p>
        {s.expires && (
          <p class="dim">
            Signed in until <Time at={s.expires} />
          </p>
        )}
        {s.expires ? (
          <button type="button" onClick={out}>
            Sign out
          </button>
        ) : (
          <p class="dim">By the socket of the head: no token is needed.</p>
        )}
      </div>
    </details>
  );
}

function Themes() {
  const next: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };
  return (
    <button
      type="button"
      class="quiet theme"
      onClick={() => setTheme(next[theme.value])}
      title="Switch between the machine's, light and dark"
    >
      <span class="theme-word">theme: </span>
      {theme.value}
    </button>
  );
}

/** That the head is silent, and how old what is shown is. */
export function Silence() {
  if (!trouble.value || (status.value && !old.value)) return null;
  const t = trouble.value;
  return (
    <div class="silence">
      <Icon tone="bad" />
      {/* The age counts on, and is not to be said aloud each second. */}
      <span role="alert">
        {t.code === 'no_answer' ? `The head at ${location.host} does not answer.` : `${t.message}.`}
      </span>
      {status.value ? (
        <span>
          What is shown is of {localTime(status.value.at)}, <b>{duration((now.value - statusAt.value) / 1000)} old</b>.
        </span>
      ) : (
        <span>The page asks again every second.</span>
      )}
      {t.code === 'no_answer' && <span>On its machine:</span>}
      <Next text={t.next} />
      <OtherHead />
    </div>
  );
}

/** Of two heads the other one goes on, and has a page of its own. */
function OtherHead() {
  const cluster = status.value?.cluster;
  const other = cluster?.heads.find((h) => h.head !== cluster.me && h.state !== 'none');
  return other ? (
    <span>
      Head {other.head} ({other.name}) has a page of its own.
    </span>
  ) : null;
}

/** The order of the page that does what a reason's command does. */
function OrderOf({ next }: { next: string | null | undefined }) {
  const [, verb, drive] = /^millrace drive (return|replace) ([^\s']+)/.exec(next ?? '') ?? [];
  if (!drive) return null;
  return verb === 'return' ? (
    <OrderButton small order={() => <ReturnDrive drive={drive} />}>
      Return
    </OrderButton>
  ) : (
    <OrderButton small order={() => <ReplaceDrive drive={drive} />}>
      Replace
    </OrderButton>
  );
}

/** Why the system is not optimal; the first reasons, and the others on request. */
export function Reasons() {
  const s = status.value;
  const [all, setAll] = useState(false);
  if (!s || !s.reasons.length) return null;
  // A phone has room for one and the view.
  const few = innerWidth > 800 ? 2 : 1;
  const shown = all ? s.reasons : s.reasons.slice(0, few);
  const more = s.reasons.length - few;
  return (
    <section class={`reasons ${toneOf(s.health)}${old.value ? ' old' : ''}`} aria-label="Reasons">
      <ul>
        {shown.map((r, i) => (
          <ReasonLine key={`${r.what} ${r.code} ${i}`} reason={r} order={<OrderOf next={r.next} />} />
        ))}
      </ul>
      {more > 0 && (
        <button type="button" class="quiet small" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Fewer' : `${more} more`}
        </button>
      )}
    </section>
  );
}

/** Says changes of health to those who do not see them, and what an order did to everybody. */
export function Live() {
  const s = status.value;
  const before = useRef('');
  const [text, setText] = useState('');
  // A sentence may count seconds: it is said again only if there is another reason.
  const key = s ? [s.health, ...s.reasons.map((r) => `${r.what} ${r.code}`)].join() : '';
  useEffect(() => {
    const first = s?.reasons[0];
    const why = first ? `${first.what}: ${first.message}` : 'all is well';
    if (s && before.current && before.current !== key) setText(`Health is ${s.health}: ${why}`);
    if (key) before.current = key;
  }, [key]);
  useEffect(() => {
    if (!done.value) return;
    const timer = setTimeout(() => {
      done.value = '';
    }, 6000);
    return () => clearTimeout(timer);
  }, [done.value]);
  return (
    <>
      <div class="hidden" role="status" aria-live="polite">
        {text}
      </div>
      <div class={`toast${done.value ? ' shown' : ''}`} role="status">
        {done.value && (
          <>
            <Icon tone="good" />
            {done.value}
          </>
        )}
      </div>
    </>
  );
}

const VIEWS: [string, string][] = [
  ['', 'Overview'],
  ['pools', 'Pools'],
  ['volumes', 'Volumes'],
  ['hosts', 'Hosts'],
  ['drives', 'Drives'],
  ['system', 'System'],
  ['machine', 'Machine'],
  ['events', 'Events'],
];

export function Nav() {
  const s = status.value;
  const here = route.value.path[0] ?? '';
  const box = useRef<HTMLElement>(null);
  // On a phone not all of them are seen at once.
  useEffect(() => {
    box.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [here]);
  const counts: Record<string, number | undefined> = {
    pools: s?.pools.length,
    volumes: s?.volumes.length,
    hosts: s?.hosts.length,
    drives: s?.drives.length,
  };
  return (
    <nav aria-label="Views" ref={box}>
      {VIEWS.map(([path, title]) => (
        <a key={path} href={link(path ? [path] : [])} aria-current={here === path ? 'page' : undefined}>
          {title}
          {counts[path] !== undefined && <span class="n">{counts[path]}</span>}
        </a>
      ))}
    </nav>
  );
}
