// Tables: order, filter, and which rows of many are drawn.
import assert from 'node:assert/strict';
import test from 'node:test';
import { compare, matches, parseSorting, same, seen, sorted, sortingText } from '../../src/rows';

test('names are sorted as people count', () => {
  assert.deepEqual(
    ['vm10', 'vm2', 'VM1'].sort((a, b) => compare(a, b)),
    ['VM1', 'vm2', 'vm10'],
  );
});

test('what is not known is last both ways', () => {
  const by = (down: boolean) => [3, null, 1, undefined, 2].sort((a, b) => compare(a, b, down)).map((v) => v ?? null);
  assert.deepEqual(by(false), [1, 2, 3, null, null]);
  assert.deepEqual(by(true), [3, 2, 1, null, null]);
});

test('equal figures do not change places', () => {
  const rows = [
    { n: 'c', v: 0 },
    { n: 'a', v: 0 },
    { n: 'b', v: 1 },
  ];
  assert.deepEqual(
    sorted(
      rows,
      (r) => r.v,
      true,
      (r) => r.n,
    ).map((r) => r.n),
    ['b', 'a', 'c'],
  );
  assert.deepEqual(
    rows.map((r) => r.n),
    ['c', 'a', 'b'],
    'the rows themselves stay as they are',
  );
});

test('an order is a word in the address', () => {
  for (const text of ['name', '-iops']) assert.equal(sortingText(parseSorting(text)), text);
});

test('a filter wants all its words', () => {
  assert.ok(matches('tank/vm1 optimal esx1', 'ESX vm'));
  assert.ok(!matches('tank/vm1 optimal esx1', 'esx vm2'));
  assert.ok(matches('anything', ''));
});

test('rows before, in and behind the window are all rows', () => {
  for (const rows of [0, 1, 61, 1000]) {
    for (const top of [0, 31, 3200, 32 * rows, 1e6]) {
      const s = seen(rows, 32, top, 600);
      assert.equal(s.before + s.behind + (s.end - s.first) * 32, rows * 32, `${rows} rows at ${top}`);
      assert.ok(s.first >= 0 && s.end <= Math.max(rows, 0) && s.end - s.first <= 40);
    }
  }
  const middle = seen(1000, 32, 3200, 640);
  assert.ok(middle.first <= 100 && middle.end >= 120, 'what is in the window is drawn');
});

test('rows of the same values are the same', () => {
  assert.ok(same({ a: 1, b: 'x' }, { a: 1, b: 'x' }));
  assert.ok(!same({ a: 1 }, { a: 2 }) && !same({ a: 1 }, { a: 1, b: 2 }));
});
