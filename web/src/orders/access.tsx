// Orders about who may use what: export, unexport, and add a host.
import { useState } from 'preact/hooks';
import { ask, part, query, volumePath } from '../data/api';
import { status } from '../data/state';
import type { Created, Host } from '../data/types';
import * as commands from './commands';
import { HowToConnect } from '../views/connect';
import { Choice, Field, OrderDialog, Text } from './dialog';

export function ExportVolume({ volume: given = '', host: givenHost = '' }: { volume?: string; host?: string }) {
  const [volumes, hosts] = [status.value?.volumes ?? [], status.value?.hosts ?? []];
  const [volume, setVolume] = useState(given || volumes[0]?.name || '');
  const has = new Set(volumes.find((v) => v.name === volume)?.exports.map((e) => e.host));
  const free = hosts.filter((h) => !has.has(h.name));
  const [chosen, setHost] = useState(givenHost);
  const host = chosen || free[0]?.name || '';
  const [lun, setLun] = useState('');
  const wrong = lun.trim() !== '' && !/^[0-9]+$/.test(lun.trim()) && 'This is no number.';
  return (
    <OrderDialog
      title={given ? `Export volume ${given}` : 'Export a volume'}
      verb="Export"
      said={`Volume ${volume} is exported to host ${host}.`}
      name={volume}
      ready={!!volume && !!host && !wrong}
      command={() => commands.exportVolume(volume, host, lun)}
      after={() => <HowToConnect host={host} />}
      run={() => {
        // It is free no longer once this is done, and still the one that is spoken of.
        setHost(host);
        return ask<Created>('POST', '/exports', { volume, host, ...(lun.trim() ? { lun: Number(lun) } : {}) });
      }}
    >
      {!given && (
        <Field label="Volume" at="volume">
          <Choice value={volume} set={setVolume} of={volumes.map((v) => [v.name, v.name])} />
        </Field>
      )}
      <Field
        label="Host"
        at="host"
        hint={free.length ? 'It sees the volume at once.' : undefined}
        wrong={!free.length && 'Every host has this volume already, or there is none: add one first.'}
      >
        <Choice value={host} set={setHost} of={free.map((h) => [h.name, h.name])} />
      </Field>
      <Field label="LUN" at="lun" hint="For iSCSI; empty for the lowest free one" wrong={wrong}>
        <Text value={lun} set={setLun} inputMode="numeric" />
      </Field>
    </OrderDialog>
  );
}

export function UnexportVolume({ volume, host }: { volume: string; host: string }) {
  return (
    <OrderDialog
      title={`Stop exporting ${volume} to ${host}`}
      verb="Unexport"
      danger
      forces={['disconnect']}
      said={`Volume ${volume} is not exported to host ${host} any more.`}
      name={volume}
      command={(forced) => commands.unexportVolume(volume, host, forced)}
      run={(forced) =>
        ask('DELETE', `/exports/${volumePath(volume)}/${part(host)}${query({ disconnect: forced.has('disconnect') })}`)
      }
    >
      <p>The host loses access at once. The data of the volume stays.</p>
    </OrderDialog>
  );
}

const lines = (text: string) => text.split(/[\s,]+/).filter(Boolean);

const area = (value: string, set: (v: string) => void, placeholder: string) => (
  <textarea
    rows={2}
    value={value}
    placeholder={placeholder}
    spellcheck={false}
    onInput={(e) => set(e.currentTarget.value)}
  />
);

/** All names of a protocol are given anew; one whose names are as before is left out of the order. */
export function SetHostNames({ host }: { host: Host }) {
  const [nqns, setNqns] = useState(host.nqns.join('\n'));
  const [iqns, setIqns] = useState(host.iqns.join('\n'));
  const changed = (text: string, was: string[]) => (lines(text).join(' ') === was.join(' ') ? [] : lines(text));
  const [n, i] = [changed(nqns, host.nqns), changed(iqns, host.iqns)];
  const empty = (text: string, was: string[]) =>
    !lines(text).length && was.length > 0 && 'The last name of a protocol goes with the host alone.';
  const wrong = empty(nqns, host.nqns) || empty(iqns, host.iqns);
  return (
    <OrderDialog
      title={`Names of host ${host.name}`}
      verb="Set"
      forces={['disconnect']}
      said={`Host ${host.name} is changed.`}
      name={host.name}
      ready={!wrong && n.length + i.length > 0}
      command={(forced) => commands.setHost(host.name, n, i, forced)}
      run={(forced) =>
        ask('PATCH', `/hosts/${part(host.name)}${query({ disconnect: forced.has('disconnect') })}`, {
          ...(n.length ? { nqns: n } : {}),
          ...(i.length ? { iqns: i } : {}),
        })
      }
    >
      <Field label="NQNs, for NVMe/TCP" at="nqns" hint="One a line" wrong={empty(nqns, host.nqns)}>
        {area(nqns, setNqns, 'nqn.2014-08.org.nvmexpress:uuid:…')}
      </Field>
      <Field label="IQNs, for iSCSI" at="iqns" hint="One a line" wrong={empty(iqns, host.iqns)}>
        {area(iqns, setIqns, 'iqn.1993-08.org.debian:01:…')}
      </Field>
    </OrderDialog>
  );
}

export function RemoveHost({ host }: { host: Host }) {
  return (
    <OrderDialog
      title={`Remove host ${host.name}`}
      verb="Remove"
      danger
      forces={['force', 'disconnect']}
      said={`Host ${host.name} is removed.`}
      name={host.name}
      command={(forced) => commands.removeHost(host.name, forced)}
      run={async (forced) => {
        const how = query({ force: forced.has('force'), disconnect: forced.has('disconnect') });
        await ask('DELETE', `/hosts/${part(host.name)}${how}`);
        location.hash = '#/hosts';
      }}
    >
      <p>Its connections end. The data of volumes stays.</p>
    </OrderDialog>
  );
}

export function AddHost() {
  const [name, setName] = useState('');
  const [nqns, setNqns] = useState('');
  const [iqns, setIqns] = useState('');
  const [secret, setSecret] = useState('');
  const short = name.trim();
  return (
    <OrderDialog
      title="Add a host"
      verb="Add"
      said={`Host ${short} is registered.`}
      name={short}
      ready={!!short && !!(nqns.trim() || iqns.trim())}
      command={() => commands.addHost(short, lines(nqns), lines(iqns), !!secret)}
      run={() =>
        ask<Created>('POST', '/hosts', {
          name: short,
          nqns: lines(nqns),
          iqns: lines(iqns),
          ...(secret ? { chap_secret: secret } : {}),
        })
      }
    >
      <Field label="Short name" at="name" hint="What you call it here">
        <Text value={name} set={setName} placeholder="web1" />
      </Field>
      <Field label="NQNs, for NVMe/TCP" at="nqns" hint="One a line; on Linux in /etc/nvme/hostnqn">
        {area(nqns, setNqns, 'nqn.2014-08.org.nvmexpress:uuid:…')}
      </Field>
      <Field label="IQNs, for iSCSI" at="iqns" hint="One a line; on Linux in /etc/iscsi/initiatorname.iscsi">
        {area(iqns, setIqns, 'iqn.1993-08.org.debian:01:…')}
      </Field>
      <Field
        label="CHAP secret, for iSCSI"
        at="chap_secret"
        hint="12 to 128 characters; empty: the host is identified by its name, not authenticated"
      >
        <Text value={secret} set={setSecret} type="password" />
      </Field>
    </OrderDialog>
  );
}
