// Where the reader is: the part of the address behind `#`, so that a link shows the same view, filter, order and range.
import { signal } from '@preact/signals';

export interface Route {
  path: string[];
  params: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), params: new URLSearchParams(query) };
}

/** `#/volumes/tank/vm1?range=1h`. */
export function link(path: string[], params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== '')).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query ? `?${query}` : ''}`;
}

const here = () => parseRoute(typeof location === 'undefined' ? '' : location.hash);

export const route = signal<Route>(here());

export function listen() {
  addEventListener('hashchange', () => {
    route.value = here();
  });
}

/** A parameter of the view. It takes the place of the present entry in the history: typing is no navigation. */
export function setParam(key: string, value: string) {
  const params = Object.fromEntries(route.value.params);
  params[key] = value;
  history.replaceState(null, '', link(route.value.path, params));
  route.value = here();
}

export const param = (key: string, otherwise = '') => route.value.params.get(key) ?? otherwise;
