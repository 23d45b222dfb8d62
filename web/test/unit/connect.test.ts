// What a host is told to connect is what the command line prints.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ownAddress, wayOf } from '../../src/data/connect';
import type { Host, Portal, Status } from '../../src/data/types';

const system = { nqn: 'nqn.a', iqn: 'iqn.a', model: 'Millrace' } as Status['system'];
const portal = (protocol: string, address: string, listening = true) => ({ protocol, address, listening }) as Portal;
const host = (more: Partial<Host>) => ({ name: 'h', nqns: [], iqns: [], chap_user: '', ...more }) as unknown as Host;

test('each portal is a line for NVMe, and iSCSI has its secrets', () => {
  const portals = [portal('nvme', '10.0.0.1:4420'), portal('nvme', '[fd00::1]:4420'), portal('iscsi', '10.0.0.1:3260')];
  assert.deepEqual(wayOf({ portals, system }, host({ nqns: ['n'] }), null).commands, [
    'nvme connect -t tcp -a 10.0.0.1 -s 4420 -n nqn.a --ctrl-loss-tmo=-1',
    'nvme connect -t tcp -a fd00::1 -s 4420 -n nqn.a --ctrl-loss-tmo=-1',
  ]);
  const node = 'iscsiadm -m node -T iqn.a -p 10.0.0.1:3260';
  assert.deepEqual(wayOf({ portals, system }, host({ iqns: ['i'] }), null).commands, [
    'iscsiadm -m discovery -t sendtargets -p 10.0.0.1:3260',
    `${node} --login`,
  ]);
  assert.deepEqual(wayOf({ portals, system }, host({ iqns: ['i'], authenticated: true }), null).commands, [
    `${node} -o new`,
    `${node} -o update -n node.session.auth.authmethod -v CHAP`,
    `${node} -o update -n node.session.auth.username -v i`,
    `${node} -o update -n node.session.auth.password -v SECRET`,
    `${node} --login`,
  ]);
});

test('an address that is not known stands as a word, and a closed portal is opened', () => {
  const way = wayOf({ portals: [portal('nvme', '0.0.0.0:4420')], system }, host({ nqns: ['n'], iqns: ['i'] }), null);
  assert.match(way.commands[0]!, / -a ADDRESS -s 4420 /);
  assert.match(way.notes[0]!, /^ADDRESS is/);
  assert.deepEqual(way.closed, ['millrace portal add iscsi ADDRESS:3260']);
  assert.equal(ownAddress('10.1.2.3'), '10.1.2.3');
  for (const none of ['127.0.0.1', '[::1]', 'head.example', 'localhost']) assert.equal(ownAddress(none), null);
});
