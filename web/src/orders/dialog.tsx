// The frame of each order: its fields, the command that does the same, the API's refusal, and consent where it wants one.
import { signal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from '../data/api';
import { Command, Icon, Next, Notices } from '../parts';
import { old, readOnly, refresh } from '../data/state';
import type { ApiError, Created, Noticed } from '../data/types';
import { type Force, type Forced, NOTHING } from './commands';

/** The order that is open. */
export const current = signal<VNode | null>(null);
/** What was carried out last, as a sentence. */
export const done = signal('');

export const open = (order: VNode) => {
  current.value = order;
};
const close = () => {
  current.value = null;
};

/** A button that opens an order. It is not there for a token that may only read, and waits while the head is silent. */
export function OrderButton({
  order,
  children,
  danger,
  small,
}: {
  order: () => VNode;
  children: ComponentChildren;
  danger?: boolean;
  small?: boolean;
}) {
  if (readOnly.value) return null;
  return (
    <button
      type="button"
      class={`${danger ? 'danger' : ''}${small ? ' small' : ''}`}
      disabled={old.value}
      onClick={() => open(order())}
    >
      {children}
    </button>
  );
}

/** Why there are no orders. */
export function WhyNoOrders() {
  return readOnly.value ? (
    <span class="dim why">Orders need a token with all rights; this one is read-only.</span>
  ) : null;
}

interface Props {
  title: string;
  /** What the button says: `Create`. */
  verb: string;
  /** What is said when it is done: `Volume tank/vm1 is created.` */
  said: string;
  /** What must be typed where the API wants it forced. */
  name: string;
  /** What the order can be told, to do it all the same. */
  forces?: Force[];
  command: (forced: Forced) => string;
  run: (forced: Forced) => Promise<Created | undefined | void>;
  ready?: boolean;
  /** What is to be known once it is done: the dialog stays for it. */
  after?: () => ComponentChildren;
  danger?: boolean;
  children?: ComponentChildren;
}

export function OrderDialog(props: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [forced, setForced] = useState<Forced>(NOTHING);
  const [typed, setTyped] = useState('');
  const [notices, setNotices] = useState<Noticed[]>([]);
  const [over, setOver] = useState(false);

  useEffect(() => {
    const dialog = box.current!;
    const before = document.activeElement as HTMLElement | null;
    dialog.showModal();
    dialog.querySelector<HTMLElement>('input,select,textarea')?.focus();
    return () => before?.focus();
  }, []);

  // After a refusal, the keyboard goes on at the field that is at fault, or where consent is given.
  useLayoutEffect(() => {
    if (!refusal) return;
    const at = refusal.field?.replace(/[[.].*/, '') ?? '';
    const find = (where: string) => box.current?.querySelector<HTMLElement>(`${where}:is(input,select,textarea)`);
    const found = find('.refusal ') ?? find(`[data-at="${at}"] `) ?? find('') ?? box.current?.querySelector('button');
    found?.focus();
  }, [refusal]);

  // Whoever is in the way is sent away by `disconnect`, which such a refusal names; all else is overridden by `force`.
  const needed: Force | null =
    refusal?.kind !== 'unsafe' ? null : refusal.field === 'disconnect' ? 'disconnect' : 'force';
  const objection = needed && props.forces?.includes(needed) && !forced.has(needed) ? refusal : null;
  const next: Forced = objection && needed ? new Set([...forced, needed]) : forced;
  const agreed = !objection || typed === props.name;

  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy || !agreed || over) return;
    setBusy(true);
    try {
      const made = await props.run(next);
      done.value = props.said;
      refresh();
      if (made?.notices?.length || props.after) {
        setRefusal(null);
        setNotices(made?.notices ?? []);
        setOver(true);
      } else box.current?.close();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setForced(next);
      setRefusal(error.error);
      setTyped('');
    } finally {
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} class="order" aria-labelledby="order-title" onClose={close}>
      <form onSubmit={submit} method="dialog">
        <h2 id="order-title">{props.title}</h2>
        {over ? (
          <>
            <p class="done-line">
              <Icon tone="good" />
              {props.said}
            </p>
            <Notices of={notices} />
            {props.after?.()}
          </>
        ) : (
          <>
            <fieldset disabled={busy}>{props.children}</fieldset>
            {refusal && (
              <div class={`refusal ${objection ? 'warn' : 'bad'}`} role="alert">
                <p>
                  <Icon tone={objection ? 'warn' : 'bad'} />
                  <span>{refusal.message}</span>
                </p>
                <Next text={refusal.next} />
                {objection && (
                  <label class="field">
                    <span>
                      Type <b>{props.name}</b> to do it all the same
                    </span>
                    <input
                      value={typed}
                      autocomplete="off"
                      spellcheck={false}
                      onInput={(e) => setTyped(e.currentTarget.value)}
                    />
                  </label>
                )}
              </div>
            )}
          </>
        )}
        {!over && (
          <div class="same">
            <span class="dim">The same as</span>
            <Command text={props.command(next)} />
          </div>
        )}
        <footer>
          <button type="button" onClick={() => box.current?.close()}>
            {over ? 'Close' : 'Cancel'}
          </button>
          {!over && (
            <button
              type="submit"
              class={props.danger || objection ? 'primary danger' : 'primary'}
              disabled={busy || !agreed || props.ready === false}
            >
              {busy ? 'Waiting for the head…' : objection ? `${props.verb} all the same` : props.verb}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  );
}

/** A field with its name above and its rule below. */
export function Field({
  label,
  at,
  hint,
  wrong,
  children,
}: {
  label: string;
  /** What the API calls it in a refusal. */
  at?: string;
  hint?: string;
  wrong?: string | false | null;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const rule = wrong || hint;
  // The rule describes the field and is no part of its name.
  useEffect(() => {
    const control = box.current?.querySelector('input,select,textarea');
    if (rule) control?.setAttribute('aria-describedby', id);
    else control?.removeAttribute('aria-describedby');
  }, [rule, id]);
  return (
    <div class="field" ref={box} data-at={at}>
      <label>
        <span>{label}</span>
        {children}
      </label>
      {rule && (
        <small id={id} class={wrong ? 'wrong' : ''}>
          {rule}
        </small>
      )}
    </div>
  );
}

interface TextProps {
  value: string;
  set: (v: string) => void;
  placeholder?: string;
  list?: string;
  type?: 'text' | 'password';
  inputMode?: 'numeric';
}
export function Text({ value, set, placeholder, list, type = 'text', inputMode }: TextProps) {
  const common = {
    value,
    placeholder,
    inputMode,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    onInput: (e: { currentTarget: HTMLInputElement }) => set(e.currentTarget.value),
  } as const;
  return type === 'password' ? <input type="password" {...common} /> : <input type="text" list={list!} {...common} />;
}

export function Choice({ value, set, of }: { value: string; set: (v: string) => void; of: [string, string][] }) {
  return (
    <select value={value} onChange={(e) => set(e.currentTarget.value)}>
      {of.map(([v, text]) => (
        <option key={v} value={v}>
          {text}
        </option>
      ))}
    </select>
  );
}
