// Requests to the head that served this page, and nothing else: every answer is JSON, every refusal an `ApiError`.
import type { ApiError } from './types';

/** A request that was not carried out: the API's refusal, or no answer at all (`status` 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly error: ApiError,
  ) {
    super(error.message);
  }
}

/** How long a head may take to answer before it counts as silent. */
const PATIENCE_MS = 8000;

/** What helps on the head's machine. */
const SILENT = 'systemctl status millrace, or millrace status';

export async function ask<T>(method: string, path: string, body?: unknown, patience = PATIENCE_MS): Promise<T> {
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), patience);
  try {
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const answer = await fetch(`/api/v1${path}`, {
      method,
      headers,
      signal: cut.signal,
      credentials: 'same-origin',
      cache: 'no-store',
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.ok) return (text ? JSON.parse(text) : undefined) as T;
    throw new Refusal(answer.status, refusalOf(answer.status, text));
  } catch (e) {
    if (e instanceof Refusal) throw e;
    throw new Refusal(0, { kind: 'unreachable', code: 'no_answer', message: 'the head does not answer', next: SILENT });
  } finally {
    clearTimeout(timer);
  }
}

/** What a refusal says; a proxy in between may answer with something else than the API's body. */
function refusalOf(status: number, text: string): ApiError {
  try {
    const error = (JSON.parse(text) as { error?: ApiError }).error;
    if (error?.message) return error;
  } catch {
    /* not JSON */
  }
  return { kind: 'internal', code: 'no_reason', message: `the head answered with HTTP status ${status} and no reason` };
}

export const get = <T>(path: string, patience?: number) => ask<T>('GET', path, undefined, patience);

/** A name as a part of a path: drives are paths, and contain slashes. */
export const part = (name: string) => encodeURIComponent(name);

/** `pool/volume` as two parts of a path. */
export const volumePath = (name: string) => name.split('/').map(part).join('/');

/** `?a=1&b=2` of what is set. */
export function query(values: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(values).filter(([, v]) => v !== undefined && v !== false);
  return set.length ? `?${set.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join('&')}` : '';
}
