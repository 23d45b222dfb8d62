// Asks for a token: over TCP the head must know who looks.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal, ask } from '../data/api';
import { Command, Icon, Next } from '../parts';
import { ended, session } from '../data/state';
import type { Session } from '../data/asked';
import type { ApiError } from '../data/types';

/** Why one must sign in again. */
function whyAgain(why: ApiError): string {
  if (why.code === 'token_expired') return 'The token has expired: sign in with another one.';
  if (why.code === 'session_ended')
    return 'The session has ended: the daemon was restarted, the token was removed, or 12 hours are over. Sign in again.';
  return `${why.message}. Sign in again.`;
}

export function SignIn() {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
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
            <span>{refusal.message}</span>
          </p>
          <Next text={refusal.next} />
        </div>
      )}
      <button type="submit" class="primary" disabled={busy || !token.trim()}>
        {busy ? 'Waiting for the head…' : 'Sign in'}
      </button>
      <p class="dim">
        On the head, this makes one; with <code>--read</code> it may look and give no orders.
      </p>
      <Command text="millrace token add NAME" />
    </form>
  );
}
