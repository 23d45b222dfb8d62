// What happened: all events that the head keeps, filtered by level, text and code; new ones come by themselves.
import { useEffect, useState } from 'preact/hooks';
import { Refusal, get, query } from '../data/api';
import { Level, Time } from '../parts';
import { param, setParam } from '../route';
import { status, visible } from '../data/state';
import { type ColumnOf, Table } from '../table';
import type { Event, Events as Answer, Weight } from '../data/types';

/** As many as the page keeps; the head keeps more: `millrace events`. */
const MOST = 5000;
/** A head holds the request until something happens, at most so long. */
const WAIT_SECONDS = 25;

interface Row {
  key: string;
  number: number;
  at: string;
  weight: Weight;
  what: string;
  code: string;
  message: string;
  head: string;
  who: string;
}

const LEVELS: Weight[] = ['note', 'warning', 'error'];

/** Orders have who gave them in their fields. */
function whoOf(e: Event): string {
  const who = e.fields?.['who'] as { fields?: { name?: string; user?: string } } | undefined;
  return String(who?.fields?.name ?? who?.fields?.user ?? '');
}

const rowOf = (e: Event): Row => ({
  key: `${e.head ?? ''}${e.number} ${e.at}`,
  number: e.number,
  at: e.at,
  weight: e.weight,
  what: e.what,
  code: e.code,
  message: e.message,
  head: e.head ?? '',
  who: whoOf(e),
});

const COLUMNS: ColumnOf<Row>[] = [
  {
    key: 'time',
    title: 'Time',
    value: (r) => `${r.at} ${String(r.number).padStart(12, '0')}`,
    cell: (r) => <Time at={r.at} />,
  },
  { key: 'level', title: 'Level', value: (r) => LEVELS.indexOf(r.weight), cell: (r) => <Level weight={r.weight} /> },
  { key: 'what', title: 'About', value: (r) => r.what, rank: 2 },
  {
    key: 'message',
    title: 'Event',
    value: (r) => r.message,
    cell: (r) => (
      <span class="message" title={r.message}>
        {r.message}
      </span>
    ),
  },
  {
    key: 'code',
    title: 'Code',
    value: (r) => r.code,
    cell: (r) => (
      <a href={`#/events?code=${r.code}`}>
        <code>{r.code}</code>
      </a>
    ),
    rank: 2,
  },
  { key: 'head', title: 'Head', value: (r) => r.head, rank: 3 },
  { key: 'who', title: 'By', value: (r) => r.who, rank: 3 },
];

export function Events() {
  const [rows, set] = useState<Row[]>([]);
  const [why, setWhy] = useState('');
  const follow = param('follow') !== 'no';
  const [level, code] = [param('level', 'note') as Weight, param('code')];
  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout>;
    let next: number | null = null;
    let own: number | undefined;
    const turn = async () => {
      let pause = 1000;
      if (visible.value) {
        try {
          const wait = next == null ? undefined : WAIT_SECONDS;
          const path = `/events${query(next == null ? { last: MOST } : { since: next, own, wait })}`;
          const answer = await get<Answer>(path, (WAIT_SECONDS + 8) * 1000);
          if (over) return;
          next = answer.next;
          own = answer.next_own ?? undefined;
          if (answer.events.length)
            set((was) => {
              const seen = new Set(was.map((r) => r.key));
              return [...was, ...answer.events.map(rowOf).filter((r) => !seen.has(r.key))].slice(-MOST);
            });
          setWhy('');
          pause = wait && answer.events.length === 0 ? 0 : 300;
        } catch (e) {
          if (!over && e instanceof Refusal) setWhy(e.message);
        }
      }
      if (!over) timer = setTimeout(turn, pause);
    };
    if (follow || !rows.length) void turn();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [follow]);

  const least = Math.max(0, LEVELS.indexOf(level));
  const shown = rows.filter((r) => LEVELS.indexOf(r.weight) >= least && (!code || r.code === code));
  const codes = [...new Set(rows.map((r) => r.code))].sort();
  return (
    <>
      <div class="head-line">
        <h1>Events</h1>
        {why && <span class="dim">Not up to date: {why}.</span>}
      </div>
      <Table
        name="Events"
        one="event"
        rows={shown}
        columns={COLUMNS}
        rowKey={(r) => r.key}
        text={(r) => `${r.what} ${r.message} ${r.code} ${r.who} ${r.head}`}
        sort="-time"
        empty={status.value ? 'No event of this kind.' : ''}
        filters={
          <>
            <label class="inline">
              Level{' '}
              <select
                value={level}
                onChange={(e) => setParam('level', e.currentTarget.value === 'note' ? '' : e.currentTarget.value)}
              >
                <option value="note">all</option>
                <option value="warning">warning and error</option>
                <option value="error">error</option>
              </select>
            </label>
            <label class="inline">
              Code{' '}
              <select value={code} onChange={(e) => setParam('code', e.currentTarget.value)}>
                <option value="">all</option>
                {code && !codes.includes(code) && <option value={code}>{code}</option>}
                {codes.map((c) => (
                  <option key={c} value={c}>
                    {c}
                  </option>
                ))}
              </select>
            </label>
            <label class="inline check">
              <input
                type="checkbox"
                checked={follow}
                onChange={(e) => setParam('follow', e.currentTarget.checked ? '' : 'no')}
              />
              Follow
            </label>
          </>
        }
      />
    </>
  );
}
