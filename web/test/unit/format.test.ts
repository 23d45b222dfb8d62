// Figures have their unit, three digits at most, and never say more than is known.
import assert from 'node:assert/strict';
import test from 'node:test';
import * as f from '../../src/format';

test('sizes are in powers of 1,024', () => {
  assert.deepEqual([0, 512, 1024, 1536, 2 ** 30, 1.25 * 2 ** 40, 1023 * 2 ** 30].map(f.size), [
    '0 B',
    '512 B',
    '1 KiB',
    '1.5 KiB',
    '1 GiB',
    '1.25 TiB',
    '1 TiB',
  ]);
  assert.equal(f.size(null), '–');
});

test('rates are in powers of 1,000', () => {
  assert.deepEqual([0, 4096, 16e6, 1.25e9].map(f.throughput), ['0 MB/s', '4.1 kB/s', '16 MB/s', '1.25 GB/s']);
  assert.deepEqual([0, 0.4, 12, 999.6, 12_400, 3.1e6].map(f.perSecond), [
    '0/s',
    '0.4/s',
    '12/s',
    '1 k/s',
    '12.4 k/s',
    '3.1 M/s',
  ]);
  assert.equal(f.perSecond(undefined), '–');
});

test('latencies go from microseconds to seconds', () => {
  assert.deepEqual([0, 850, 131_072, 1_250_000, 2e9, null].map(f.latency), [
    '0 µs',
    '0.85 µs',
    '131 µs',
    '1.25 ms',
    '2 s',
    '–',
  ]);
});

test('durations have two units at most', () => {
  assert.deepEqual([0, 42, 60, 200, 3600, 7500, 90_000].map(f.duration), [
    '0 s',
    '42 s',
    '1 min',
    '3 min 20 s',
    '1 h',
    '2 h 5 min',
    '1 d 1 h',
  ]);
});

test('a hundred percent is said of what is whole alone', () => {
  assert.deepEqual(
    [f.percent(999, 1000), f.percent(1000, 1000), f.percent(0, 5), f.percent(1, 40), f.percent(1, 0)],
    ['99 %', '100 %', '0 %', '2.5 %', '–'],
  );
});

test('a size that is typed is read as the command line reads it, and given back exactly', () => {
  assert.deepEqual(['400G', '1.5T', ' 64 MiB ', '4096', '7kb'].map(f.parseSize), [
    400 * 2 ** 30,
    1.5 * 2 ** 40,
    64 * 2 ** 20,
    4096,
    7168,
  ]);
  assert.deepEqual(['', 'G', '1,5T', '-1G', '1X', '99999999P'].map(f.parseSize), [null, null, null, null, null, null]);
  assert.deepEqual([400 * 2 ** 30, 1.5 * 2 ** 40, 4097].map(f.sizeArgument), ['400G', '1536G', '4097']);
});

test('times of another day have their date', () => {
  const now = new Date('2026-11-27T12:00:00Z');
  assert.equal(f.localTime('2026-11-27T08:01:02Z', now), '08:01:02');
  assert.equal(f.localTime('2026-11-26T08:01:02Z', now), '2026-11-26 08:01:02');
  assert.equal(f.localTime('never', now), 'never');
});
