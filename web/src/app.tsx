// The whole page: the top, the views, the order that is open, and what is said aloud.
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { current } from './orders/dialog';
import { route } from './route';
import { old, session, status, trouble } from './data/state';
import { Live, Nav, Reasons, Silence, Top } from './top';
import { OneDrive, Drives } from './views/drives';
import { Events } from './views/events';
import { Hosts, OneHost } from './views/hosts';
import { Machine } from './views/machine';
import { Overview } from './views/overview';
import { Pools } from './views/pools';
import { SignIn } from './views/signin';
import { System } from './views/system';
import { OneVolume, Volumes } from './views/volumes';

function view(path: string[]): { title: string; shown: VNode } {
  const [name, ...rest] = path;
  switch (name) {
    case undefined:
      return { title: 'Overview', shown: <Overview /> };
    case 'pools':
      return { title: 'Pools', shown: <Pools /> };
    case 'volumes':
      return rest.length > 1
        ? { title: rest.join('/'), shown: <OneVolume key={rest.join('/')} name={rest.join('/')} /> }
        : { title: 'Volumes', shown: <Volumes /> };
    case 'hosts':
      return rest[0]
        ? { title: rest[0], shown: <OneHost key={rest[0]} name={rest[0]} /> }
        : { title: 'Hosts', shown: <Hosts /> };
    case 'drives':
      return rest[0]
        ? { title: rest[0], shown: <OneDrive key={rest[0]} name={rest[0]} /> }
        : { title: 'Drives', shown: <Drives /> };
    case 'system':
      return { title: 'System', shown: <System /> };
    case 'machine':
      return { title: 'Machine', shown: <Machine /> };
    case 'events':
      return { title: 'Events', shown: <Events /> };
    default:
      return {
        title: 'Not found',
        shown: (
          <>
            <div class="head-line">
              <h1>Not found</h1>
            </div>
            <p class="empty">
              The page has no view “{path.join('/')}”. <a href="#/">Overview</a>
            </p>
          </>
        ),
      };
  }
}

export function App() {
  const here = view(route.value.path);
  const main = useRef<HTMLElement>(null);
  const path = route.value.path.join('/');
  const first = useRef(true);
  const signedIn = session.value && status.value;
  const out = session.value === null;
  useEffect(() => {
    if (out) current.value = null;
  }, [out]);
  useEffect(() => {
    current.value = null;
    // After a click on a link, keyboard and screen reader go on at the new view.
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);
  // So does who has just signed in.
  const asked = useRef(false);
  useEffect(() => {
    if (signedIn && asked.current) main.current?.focus({ preventScroll: true });
    asked.current = out || (asked.current && !signedIn);
  }, [out, !!signedIn]);
  const health = status.value?.health;
  const alert = trouble.value
    ? '! no answer: '
    : signedIn && health && health !== 'optimal'
      ? `! ${health}: `
      : '';
  useEffect(() => {
    document.title = `${alert}${here.title} · Millrace`;
  }, [alert, here.title]);
  const skip = (e: MouseEvent) => {
    e.preventDefault();
    main.current?.focus();
  };
  return (
    <>
      <div class="sticky">
        <Top skip={skip} />
        {signedIn && <Nav />}
      </div>
      <Silence />
      {signedIn && <Reasons />}
      <main ref={main} tabIndex={-1} class={old.value ? 'old' : ''} aria-busy={!signedIn && session.value !== null}>
        {out ? (
          <SignIn />
        ) : signedIn ? (
          here.shown
        ) : (
          !trouble.value && <p class="empty">Asking the head…</p>
        )}
      </main>
      {!out && current.value}
      <Live />
    </>
  );
}
