// Answers that are not part of the status, asked again at times and after each order, while they are seen.
import { useEffect, useState } from 'preact/hooks';
import { Refusal, get } from './api';
import { orders, visible } from './state';
import type { ApiError } from './types';

export interface Asked<T> {
  value: T | null;
  error: ApiError | null;
}

export function useAnswer<T>(path: string, everyMs: number, patience = 20_000): Asked<T> {
  const [asked, set] = useState<Asked<T>>({ value: null, error: null });
  const order = orders.value;
  const shown = visible.value;
  useEffect(() => {
    if (!shown) return;
    let over = false;
    let timer: ReturnType<typeof setTimeout>;
    const turn = async () => {
      try {
        const value = await get<T>(path, patience);
        if (!over) set({ value, error: null });
      } catch (e) {
        // What was known stays, beside why it is not known now.
        if (!over && e instanceof Refusal) set((was) => ({ value: was.value, error: e.error }));
      }
      if (!over) timer = setTimeout(turn, everyMs);
    };
    void turn();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [path, order, shown]);
  return asked;
}
