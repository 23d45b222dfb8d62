// The command beside an order is one that a shell takes and the command line knows.
import assert from 'node:assert/strict';
import test from 'node:test';
import * as c from '../../src/orders/commands';
import { link, parseRoute } from '../../src/route';

test('commands are those of the command line', () => {
  assert.equal(
    c.createVolume('tank/vm1', 400 * 2 ** 30, 512),
    'millrace volume create tank/vm1 --size 400G --block 512',
  );
  assert.equal(c.createVolume('', null, null), 'millrace volume create POOL/VOLUME --size SIZE');
  assert.equal(
    c.removeVolume('tank/vm1', new Set(['force', 'disconnect'])),
    'millrace volume rm tank/vm1 --force --yes',
  );
  assert.equal(c.capVolume('tank/vm1', 0, 200, null), 'millrace volume set tank/vm1 --iops-max none --mbps-max 200');
  assert.equal(
    c.addHost('web1', ['nqn.2014-08.org.example:a'], [], true),
    'millrace host add web1 --nqn nqn.2014-08.org.example:a --chap-secret-file FILE',
  );
  assert.equal(c.startScrub('tank', true, ['/dev/nvme1n1']), 'millrace pool scrub tank --repair --prefer /dev/nvme1n1');
  assert.equal(c.locateDrive('/dev/nvme1n1', false), 'millrace drive locate /dev/nvme1n1 --off');
});

test('what a shell would read otherwise is quoted', () => {
  assert.equal(c.failDrive("/dev/it's here", c.NOTHING), `millrace drive fail '/dev/it'\\''s here'`);
});

test('an address shows the same again', () => {
  const hash = link(['drives', '/dev/nvme1n1'], { range: '1h', q: 'a b', sort: '' });
  const { path, params } = parseRoute(hash);
  assert.deepEqual(
    [path, params.get('range'), params.get('q'), params.get('sort')],
    [['drives', '/dev/nvme1n1'], '1h', 'a b', null],
  );
  assert.deepEqual(parseRoute('').path, []);
});
