// Histories are merged without a gap, an overlap or a step too many; rates come of counters.
import assert from 'node:assert/strict';
import test from 'node:test';
import { type History, alone, firstKnown, latest, merge, read, spread, times } from '../../src/data/history';
import { Meter } from '../../src/data/rates';

const of = (begin: number, ...reads: (number | null)[]): History => ({ step: 1, begin, columns: { reads } });

test('an answer has its columns by name, those of the times too', () => {
  const h = read({
    step_seconds: 60,
    begin: 1767225600,
    reads: [1, null],
    times: { read_p99_ns: [5, 6], read_stages: { drive_ns: [3, 4] } },
  });
  assert.deepEqual(h, {
    step: 60,
    begin: 1767225600,
    columns: { reads: [1, null], read_p99_ns: [5, 6], read_stages_drive_ns: [3, 4] },
  });
  assert.deepEqual(times(h), [1767225600, 1767225660]);
});

test('time without seconds shows its minutes, but not the one that is of both', () => {
  const minutes: History = { step: 60, begin: 600, columns: { reads: [1, null, 3, 4] } };
  // The seconds begin in the middle of the last minute.
  const seconds = of(800, null, 7, 8);
  const until = firstKnown(seconds)!;
  assert.equal(until, 801);
  const shown = spread(minutes, 1, 655, until);
  assert.deepEqual([shown.step, shown.begin], [1, 655]);
  const reads = [...Array(5).fill(1), ...Array(60).fill(null), ...Array(60).fill(3)];
  assert.deepEqual(shown.columns['reads'], reads);
  assert.deepEqual(merge(shown, seconds, 600).columns['reads'], [...reads, ...Array(20).fill(null), null, 7, 8]);
  assert.deepEqual(spread(minutes, 1, 900, 2000).columns['reads'], []);
  assert.equal(firstKnown(of(1, null)), null);
});

test('what is new counts where both have a step', () => {
  assert.deepEqual(merge(of(10, 1, 2, 3), of(12, 9, 4), 100), of(10, 1, 2, 9, 4));
});

test('steps in between that nobody saw are null', () => {
  assert.deepEqual(merge(of(10, 1), of(13, 4), 100), of(10, 1, null, null, 4));
});

test('no more than the last steps are kept', () => {
  assert.deepEqual(merge(of(10, 1, 2, 3), of(13, 4, 5), 3), of(12, 3, 4, 5));
});

test('another step, no past and no news', () => {
  assert.deepEqual(merge(null, of(1, 2), 9), of(1, 2));
  assert.deepEqual(merge({ step: 60, begin: 0, columns: { reads: [7] } }, of(1, 2), 9), of(1, 2));
  assert.deepEqual(merge(of(1, 2), of(5), 9), of(1, 2));
});

test('after the clock was set it begins anew', () => {
  assert.deepEqual(merge(of(10, 1, 2), of(1e6, 3), 600), of(1e6, 3));
});

test('a new column has no past', () => {
  const fresh: History = { step: 1, begin: 11, columns: { reads: [2], writes: [5] } };
  assert.deepEqual(merge(of(10, 1), fresh, 9).columns, { reads: [1, 2], writes: [null, 5] });
});

test('the latest figure may be a step or two old, and no older', () => {
  assert.equal(latest(of(1, 4, null), 'reads'), 4);
  assert.equal(latest(of(1, 4, null, null, null), 'reads'), null);
  assert.equal(latest(null, 'reads'), null);
});

const counters = (reads: number) => ({
  reads,
  read_bytes: reads * 10,
  writes: 0,
  write_bytes: 0,
  flushes: 0,
  errors: 0,
});

test('a rate needs two readings, and begins anew when counters do', () => {
  const meter = new Meter();
  assert.equal(meter.take(0, [['v', counters(100)]]).get('v'), undefined);
  assert.equal(meter.take(1000, [['v', counters(150)]]).get('v')?.reads, 50);
  assert.equal(meter.take(2000, [['v', counters(250)]]).get('v')?.reads, 75);
  assert.equal(meter.take(3000, [['v', counters(5)]]).get('v'), undefined, 'the head has started anew');
  assert.equal(meter.take(4000, [['v', counters(15)]]).get('v')?.readBytes, 100);
  assert.equal(meter.take(5000, []).size, 0);
});

test('a figure that is known alone is found, since no line leads there', () => {
  assert.deepEqual(alone([1, null, 2, 3, null, 4, undefined, 5]), [0, 5, 7]);
  assert.deepEqual(alone([]), []);
});
