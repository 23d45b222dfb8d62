// Asks for a token: over TCP the head must know who looks.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal, ask } from '../data/api';
import { duration } from '../format';
import { Command, Icon } from '../parts';
import { ended, now, session } from '../data/state';
import type { Session } from '../data/asked';
import type { ApiError } from '../data/types';

/** Why one must sign in again. */
function whyAgain(why: ApiError): string {
  if (why.code === 'token_expired') return 'The token has expired: sign in with another one.';
  if (why.code === 'session_ended')
    return 'The session has ended: the daemon was restarted, the token was removed, or 12 hours are over. Sign in again.';
  return `${why.message}. Sign in again.`;
}

/** A refusal for whoever types a token: what the API says is for programs. */
function wrong(why: ApiError, left: number): string {
  if (why.code === 'token_wrong' || why.code === 'token_expired') return 'This token is wrong, expired or removed.';
  if (why.code !== 'api_throttled') return `${why.message}.`;
  return left > 0
    ? `Too many wrong tokens came from this address: try again in ${duration(left)}.`
    : 'Too many wrong tokens came from this address: you can try again now.';
}

export function SignIn() {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  /** When the head takes tokens of this address again. */
  const [opens, setOpens] = useState(0);
  const left = Math.ceil((opens - now.value) / 1000);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      session.value = await ask<Session>('POST', '/session', { token: token.trim() });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setRefusal(error.error);
      setOpens(Date.now() + 1000 * Number(error.error.fields?.['seconds'] ?? 0));
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <form class="signin card" onSubmit={submit}>
      <h1>Sign in</h1>
      {ended.value && !refusal && (
        <p class="why-not" role="status">
          {whyAgain(ended.value)}
        </p>
      )}
      <label class="field">
        <span>Token of the head at {location.host}</span>
        <input
          ref={field}
          type="password"
          value={token}
          autocomplete="current-password"
          spellcheck={false}
          required
          onInput={(e) => setToken(e.currentTarget.value)}
        />
      </label>
      {refusal && (
        <div class="refusal bad" role="alert">
          <p>
            <Icon tone="bad" />
            <span>{wrong(refusal, left)}</span>
          </p>
        </div>
      )}
      <button type="submit" class="primary" disabled={busy || left > 0 || !token.trim()}>
        {busy ? 'Waiting for the head…' : 'Sign in'}
      </button>
      <p class="dim">
        On the head, this makes one; with <code>--read</code> it may look and give no orders.
      </p>
      <Command text="millrace token add NAME" />
    </form>
  );
}
