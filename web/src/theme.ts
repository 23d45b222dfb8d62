// Light, dark, or as the machine has it; kept in this browser.
import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'millrace-theme';

const stored = (): Theme => {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto'; // A browser may refuse to keep anything.
  }
};

export const theme = signal<Theme>('auto');
/** Counts changes of what is drawn: charts are no part of the style sheet. */
export const painted = signal(0);

export function setTheme(next: Theme) {
  theme.value = next;
  if (next === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    /* as above */
  }
  painted.value += 1;
}

export function startTheme() {
  setTheme(stored());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    painted.value += 1;
  });
}
