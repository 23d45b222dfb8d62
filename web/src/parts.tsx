// Small parts that all views use: states, times, bars, commands to copy.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { duration, localTime, percent, size, throughput } from './format';
import type { Noticed, Reason, Weight } from './data/types';

/** Each state has a word and a shape of its own: colour says nothing alone. */
const SHAPES: Record<string, string> = {
  good: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.6 5.1-4.3 5a.9.9 0 0 1-1.3.1L4.2 9.5l1.1-1.2 1.3 1.1 3.7-4.3z',
  busy: 'M8 1a7 7 0 1 0 7 7h-2a5 5 0 1 1-5-5v3l5-4-5-4z',
  warn: 'M7.1 1.6a1 1 0 0 1 1.8 0l6.4 12a1 1 0 0 1-.9 1.4H1.6a1 1 0 0 1-.9-1.4zM7.1 5.5v4.3h1.8V5.5zm0 5.6v1.8h1.8v-1.8z',
  bad: 'M5 1h6l4 4v6l-4 4H5l-4-4V5zm.9 3.6L4.6 5.9 6.7 8l-2.1 2.1 1.3 1.3L8 9.3l2.1 2.1 1.3-1.3L9.3 8l2.1-2.1-1.3-1.3L8 6.7z',
  none: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 2a5 5 0 1 1 0 10A5 5 0 0 1 8 3Zm-3 4v2h6V7z',
};
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'none';

const TONES: Record<string, Tone> = {
  optimal: 'good',
  rebuilding: 'busy',
  degraded: 'warn',
  offline: 'bad',
  failed: 'bad',
  leads: 'good',
  follows: 'good',
  starts: 'busy',
  out: 'bad',
  none: 'none',
  note: 'none',
  warning: 'warn',
  error: 'bad',
  well: 'good',
  failing: 'warn',
  dead: 'bad',
  leg: 'good',
  spare: 'none',
  'removed-failed': 'bad',
  'optimal, no spare': 'warn',
  free: 'none',
  missing: 'bad',
  foreign: 'none',
  labelled: 'none',
  unusable: 'bad',
  up: 'good',
  down: 'bad',
  listening: 'good',
  'not listening': 'bad',
  holds: 'good',
  fails: 'bad',
  untried: 'warn',
};
export const toneOf = (word: string): Tone => TONES[word] ?? 'none';

export function Icon({ tone }: { tone: Tone }) {
  return (
    <svg class={`icon ${tone}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={SHAPES[tone]} fill-rule="evenodd" />
    </svg>
  );
}

export function State({ word, tone, title }: { word: string; tone?: Tone | undefined; title?: string | undefined }) {
  const t = tone ?? toneOf(word);
  return (
    <span class={`state ${t}`} title={title}>
      <Icon tone={t} />
      {word}
    </span>
  );
}

/** A pool's state: one that is optimal may have used up its spares. */
export const poolWord = (p: { state: string; no_spare?: boolean }) =>
  p.state === 'optimal' && p.no_spare ? 'optimal, no spare' : p.state;

export const Level = ({ weight }: { weight: Weight }) => <State word={weight} />;

/** A time of the reader's zone; the exact one in UTC is its title. */
export function Time({ at, absent = '–' }: { at: string | null | undefined; absent?: string }) {
  return at ? (
    <time dateTime={at} title={at.replace('T', ' ').replace('Z', ' UTC')}>
      {localTime(at)}
    </time>
  ) : (
    <>{absent}</>
  );
}

/** How full something is. */
export function Bar({ part, whole, label, tone = '' }: { part: number; whole: number; label: string; tone?: string }) {
  const width = whole > 0 ? Math.max(0, Math.min(100, (100 * part) / whole)) : 0;
  return (
    <span class={`bar ${tone}`} role="img" aria-label={`${label}: ${percent(part, whole)}`}>
      <span style={{ width: `${width}%` }} />
    </span>
  );
}

/** Work under way: what, how far, how fast and how long yet. */
export function Progress({
  what,
  done,
  total,
  rate,
  left,
}: {
  what: string;
  done: number;
  total: number;
  rate: number;
  left?: number | null | undefined;
}) {
  return (
    <div class="progress">
      <State word={what} tone="busy" />
      <Bar part={done} whole={total} label={what} tone="busy" />
      <span class="num">{percent(done, total)}</span>
      <span class="dim">
        {size(total - done)} to go · {throughput(rate)}
        {left != null && ` · ${duration(left)} left`}
      </span>
    </div>
  );
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP to another machine there is no clipboard: the older way needs a field.
    const field = document.createElement('textarea');
    field.value = text;
    (document.querySelector('dialog[open]') ?? document.body).append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}

/** A command to copy. What is no command stands as it is. */
export function Command({ text }: { text: string }) {
  const [said, say] = useState('Copy');
  const click = async () => {
    say((await copy(text)) ? 'Copied' : 'Not copied');
    setTimeout(() => say('Copy'), 1500);
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="small" onClick={click} aria-label={`${said} ${text}`}>
        {said}
      </button>
    </span>
  );
}

const isCommand = (text: string) =>
  /^(millrace|systemctl|journalctl|ip|ss|nvme|iscsiadm|chmod) /.test(text) && !/, |…/.test(text);

/** The command that helps, or two of which one does. Some are advice in words, and nothing to paste. */
export function Next({ text }: { text: string | null | undefined }) {
  if (!text) return null;
  const parts = text.split(', or ');
  if (!parts.every(isCommand)) return <span class="advice">Next: {text}</span>;
  return (
    <span class="nexts">
      {parts.map((p, i) => (
        <span key={p}>
          {i > 0 && <span class="dim">or </span>}
          <Command text={p} />
        </span>
      ))}
    </span>
  );
}

export function ReasonLine({ reason, order }: { reason: Reason; order?: ComponentChildren }) {
  return (
    <li class="reason">
      <State word={reason.state} />
      <span>
        <b>{reason.what}</b>: {reason.message}
      </span>
      <Next text={reason.next} />
      {order}
    </li>
  );
}

export function Notices({ of }: { of: Noticed[] }) {
  return (
    <ul class="notices">
      {of.map((n, i) => (
        <li key={i}>
          <Icon tone="none" />
          <span>{n.message}</span>
          <Next text={n.next} />
        </li>
      ))}
    </ul>
  );
}

/** Names and values, in columns where there is room. */
export function Facts({ of }: { of: [string, ComponentChildren, string?][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value, title]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={title}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Card({
  title,
  children,
  aside,
  wide,
  id,
}: {
  title: string;
  children: ComponentChildren;
  aside?: ComponentChildren;
  wide?: boolean;
  id?: string;
}) {
  return (
    <section class={`card${wide ? ' wide' : ''}`} aria-label={title} id={id}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;

/** The view of one thing that is not, or no more, there. */
export function NotThere({ kind, name, title }: { kind: 'drive' | 'host' | 'volume'; name: string; title?: string }) {
  return (
    <>
      <div class="head-line">
        <h1>{title ?? name}</h1>
      </div>
      <Empty>
        There is no {kind} {name}. <a href={`#/${kind}s`}>All {kind}s</a>
      </Empty>
    </>
  );
}
