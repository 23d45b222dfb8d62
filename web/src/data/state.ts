// What the page knows: who is signed in, the latest status with its age, and rates; asked once a second while it is seen.
import { batch, computed, signal } from '@preact/signals';
import { Refusal, get } from './api';
import { Meter, type Rates } from './rates';
import type { Session } from './asked';
import type { ApiError, Status } from './types';

const SECOND = 1000;
/** Without an answer for so long, what is shown is called old. */
const OLD_AFTER = 3500;

/** Undefined: not known yet. Null: nobody, a token is needed. */
export const session = signal<Session | null | undefined>(undefined);
export const status = signal<Status | null>(null);
/** When the status came, by this machine's clock. */
export const statusAt = signal(0);
/** Why the last request for the status gave none; null if it did. */
export const trouble = signal<ApiError | null>(null);
/** Why a session that this page had, or a cookie of it, is worth nothing any more. */
export const ended = signal<ApiError | null>(null);
export const now = signal(Date.now());
export const volumeRates = signal<Map<string, Rates>>(new Map());
export const driveRates = signal<Map<string, Rates>>(new Map());
export const visible = signal(typeof document === 'undefined' || !document.hidden);
/** Counts orders that were carried out: lists that are not of the status are asked for again. */
export const orders = signal(0);

export const old = computed(
  () => status.value !== null && trouble.value !== null && now.value - statusAt.value > OLD_AFTER,
);
export const readOnly = computed(() => session.value?.rights === 'read');

const volumes = new Meter();
const drives = new Meter();

/** What a drive is called: its path, or its identity where it is missing. */
export const driveKey = (d: { path: string; uuid?: string | null }) => d.path || d.uuid || '';

export function take(next: Status) {
  const at = Date.now();
  batch(() => {
    volumeRates.value = volumes.take(
      at,
      next.volumes.map((v) => [v.uuid, v.counters] as const),
    );
    driveRates.value = drives.take(
      at,
      next.drives.map((d) => [driveKey(d), d.counters] as const),
    );
    status.value = next;
    statusAt.value = at;
    trouble.value = null;
  });
}

async function askStatus() {
  try {
    take(await get<Status>('/status', 5 * SECOND));
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    if (e.status === 401) signedOut(e.error);
    else trouble.value = e.error;
  }
}

/** Nobody is signed in any more; `why` if that was not asked for. */
export function signedOut(why: ApiError | null = null) {
  batch(() => {
    ended.value = why;
    session.value = null;
    status.value = null;
    trouble.value = null;
  });
}

/** Asks who is signed in; false if the head does not answer. */
export async function askSession(): Promise<void> {
  try {
    session.value = await get<Session>('/session');
    trouble.value = null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    // Without a cookie nobody was signed in, and nothing has ended.
    if (e.status === 401) signedOut(e.error.code === 'token_wrong' ? null : e.error);
    else trouble.value = e.error;
  }
}

let wake: (() => void) | null = null;

/** Asks at once, as after an order. */
export function refresh() {
  orders.value += 1;
  wake?.();
}

const pause = (ms: number) =>
  new Promise<void>((done) => {
    const timer = setTimeout(done, ms);
    wake = () => {
      clearTimeout(timer);
      done();
    };
  });

/** Runs for ever; asks for nothing while the page is hidden or nobody is signed in. */
export async function poll() {
  document.addEventListener('visibilitychange', () => {
    visible.value = !document.hidden;
    if (visible.value) wake?.();
  });
  setInterval(() => {
    if (visible.value) now.value = Date.now();
  }, SECOND);
  for (;;) {
    const begin = Date.now();
    if (visible.value) {
      if (session.value === undefined) await askSession();
      if (session.value) await askStatus();
      now.value = Date.now();
    }
    await pause(Math.max(50, SECOND - (Date.now() - begin)));
  }
}
