// Orders about a volume: create, resize, rename, cap and remove.
import { useState } from 'preact/hooks';
import { ask, query, volumePath } from '../data/api';
import { parseSize, size, sizeArgument, whole } from '../format';
import { status } from '../data/state';
import type { Created, Volume } from '../data/types';
import * as commands from './commands';
import { Choice, Field, OrderDialog, Text } from './dialog';

const NO_SIZE = 'A size is written as 400G or 1.5T.';
/** The API's rule of names of volumes. */
const badName = (name: string) =>
  name.trim() !== '' &&
  !/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name.trim()) &&
  'A name has 1 to 63 characters: letters, digits, . _ - and begins with a letter or digit.';

/** A size that the pool cannot give, and the next one that it can. */
function Step({ bytes, step, set }: { bytes: number | null; step: number; set: (text: string) => void }) {
  if (!bytes || bytes % step === 0) return null;
  const next = Math.ceil(bytes / step) * step;
  return (
    <p class="why-not">
      The size must be a multiple of {whole(step)} bytes.{' '}
      <button type="button" class="small" onClick={() => set(String(next))}>
        Use {whole(next)} bytes
      </button>
    </p>
  );
}

const flags = (forced: commands.Forced) => query({ force: forced.has('force'), disconnect: forced.has('disconnect') });

export function CreateVolume({ pool = '' }: { pool?: string }) {
  const pools = status.value?.pools ?? [];
  const [where, setWhere] = useState(pool || pools[0]?.name || '');
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const [block, setBlock] = useState('');
  const bytes = parseSize(text);
  const chosen = pools.find((p) => p.name === where);
  const full = name.trim() ? `${where}/${name.trim()}` : '';
  return (
    <OrderDialog
      title="Create a volume"
      verb="Create"
      said={`Volume ${full} is created.`}
      name={full}
      ready={!!full && !badName(name) && !!bytes}
      command={() => commands.createVolume(full || (where && `${where}/VOLUME`), bytes, Number(block) || null)}
      run={() =>
        ask<Created>('POST', '/volumes', { name: full, bytes, ...(block ? { block_bytes: Number(block) } : {}) })
      }
    >
      <Field label="Pool" hint={chosen && `${size(chosen.bytes - chosen.used_bytes)} free of ${size(chosen.bytes)}`}>
        <Choice value={where} set={setWhere} of={pools.map((p) => [p.name, p.name])} />
      </Field>
      <Field label="Name" at="name" hint="1 to 63 characters: letters, digits, . _ -" wrong={badName(name)}>
        <Text value={name} set={setName} placeholder="vm1" />
      </Field>
      <Field
        label="Size"
        at="bytes"
        hint={
          bytes ? `${size(bytes)}, ${whole(bytes)} bytes` : 'Such as 400G or 1.5T; the pool gives it in steps of 4M'
        }
        wrong={text && !bytes && NO_SIZE}
      >
        <Text value={text} set={setText} placeholder="400G" />
      </Field>
      <Step bytes={bytes} step={Number(block) || chosen?.block_bytes || 512} set={setText} />
      <Field label="Block size" at="block_bytes" hint="It cannot be changed later.">
        <Choice
          value={block}
          set={setBlock}
          of={[
            ['', `The pool's (${chosen ? `${whole(chosen.block_bytes)} bytes` : '4,096 bytes'})`],
            ['512', '512 bytes'],
            ['4096', '4,096 bytes'],
          ]}
        />
      </Field>
    </OrderDialog>
  );
}

export function ResizeVolume({ volume }: { volume: Volume }) {
  const [text, setText] = useState(sizeArgument(volume.bytes));
  const bytes = parseSize(text);
  return (
    <OrderDialog
      title={`Resize volume ${volume.name}`}
      verb={bytes && bytes < volume.bytes ? 'Shrink' : 'Grow'}
      name={volume.name}
      ready={!!bytes && bytes !== volume.bytes}
      said={`Volume ${volume.name} has ${size(bytes)} now.`}
      danger={!!bytes && bytes < volume.bytes}
      forces={['force', 'disconnect']}
      command={(forced) => commands.resizeVolume(volume.name, bytes, forced)}
      run={(forced) =>
        ask('PATCH', `/volumes/${volumePath(volume.name)}${query({ disconnect: forced.has('disconnect') })}`, {
          bytes,
          ...(forced.has('force') ? { force: true } : {}),
        })
      }
    >
      <Field
        label="New size"
        at="bytes"
        hint={`${bytes ? `${size(bytes)}, ${whole(bytes)} bytes; now` : 'Now'} ${size(volume.bytes)}. Hosts see the new size at once.`}
        wrong={
          text && !bytes
            ? NO_SIZE
            : bytes && bytes < volume.bytes
              ? 'Smaller than now: what lies beyond is lost.'
              : null
        }
      >
        <Text value={text} set={setText} placeholder="800G" />
      </Field>
      <Step bytes={bytes} step={volume.block_bytes} set={setText} />
    </OrderDialog>
  );
}

export function RenameVolume({ volume }: { volume: Volume }) {
  const [pool, old] = [volume.name.split('/')[0], volume.name.split('/')[1] ?? ''];
  const [name, setName] = useState('');
  return (
    <OrderDialog
      title={`Rename volume ${volume.name}`}
      verb="Rename"
      name={volume.name}
      ready={!!name.trim() && name.trim() !== old && !badName(name)}
      said={`Volume ${volume.name} is ${pool}/${name.trim()} now.`}
      command={() => commands.renameVolume(volume.name, name)}
      run={async () => {
        await ask('PATCH', `/volumes/${volumePath(volume.name)}`, { name: name.trim() });
        location.hash = `#/volumes/${encodeURIComponent(pool ?? '')}/${encodeURIComponent(name.trim())}`;
      }}
    >
      <Field label={`New name, without ${pool}/`} at="name" hint="Hosts see no difference." wrong={badName(name)}>
        <Text value={name} set={setName} placeholder={old} />
      </Field>
    </OrderDialog>
  );
}

const figure = (text: string) => {
  const found = /^\s*([0-9]+(?:\.[0-9]+)?)\s*(k?)\s*$/i.exec(text);
  return found ? Math.round(Number(found[1]) * (found[2] ? 1000 : 1)) : null;
};

export function CapVolume({ volume }: { volume: Volume }) {
  const [iops, setIops] = useState(String(volume.iops_max || ''));
  const [mbps, setMbps] = useState(String(volume.mbps_max || ''));
  const [weight, setWeight] = useState(String(volume.weight ?? 100));
  // An empty cap is none; what is as it was is left out of the order.
  const change = (text: string, was: number) => {
    const n = text.trim() === '' ? 0 : figure(text);
    return n === was ? null : n;
  };
  const wrong = (text: string) => text.trim() !== '' && figure(text) == null && 'This is no number: 5000 or 5k';
  const [i, m, w] = [
    change(iops, volume.iops_max ?? 0),
    change(mbps, volume.mbps_max ?? 0),
    change(weight, volume.weight ?? 100),
  ];
  const ready = !wrong(iops) && !wrong(mbps) && !wrong(weight) && (i != null || m != null || w != null);
  return (
    <OrderDialog
      title={`Cap volume ${volume.name}`}
      verb="Set"
      said={`Volume ${volume.name} has its caps.`}
      name={volume.name}
      ready={ready}
      command={() => commands.capVolume(volume.name, i, m, w)}
      run={() =>
        ask('PATCH', `/volumes/${volumePath(volume.name)}`, {
          ...(i != null ? { iops_max: i } : {}),
          ...(m != null ? { mbps_max: m } : {}),
          ...(w != null ? { weight: w } : {}),
        })
      }
    >
      <Field label="Commands a second" at="iops_max" hint="10 or more; empty for no cap" wrong={wrong(iops)}>
        <Text value={iops} set={setIops} placeholder="no cap" inputMode="numeric" />
      </Field>
      <Field label="MB/s" at="mbps_max" hint="Megabytes (10⁶ bytes) a second; empty for no cap" wrong={wrong(mbps)}>
        <Text value={mbps} set={setMbps} placeholder="no cap" inputMode="numeric" />
      </Field>
      <Field
        label="Weight"
        at="weight"
        hint="1 to 1000, 100 is usual: its share where volumes compete for drives"
        wrong={wrong(weight)}
      >
        <Text value={weight} set={setWeight} inputMode="numeric" />
      </Field>
    </OrderDialog>
  );
}

export function RemoveVolume({ volume }: { volume: Volume }) {
  return (
    <OrderDialog
      title={`Remove volume ${volume.name}`}
      verb="Remove"
      danger
      forces={['force', 'disconnect']}
      said={`Volume ${volume.name} is removed.`}
      name={volume.name}
      command={(forced) => commands.removeVolume(volume.name, forced)}
      run={async (forced) => {
        await ask('DELETE', `/volumes/${volumePath(volume.name)}${flags(forced)}`);
        location.hash = '#/volumes';
      }}
    >
      <p>Its {size(volume.bytes)} are given back to the pool. What it holds is lost.</p>
    </OrderDialog>
  );
}
