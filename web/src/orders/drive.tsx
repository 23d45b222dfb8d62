// Orders about a drive and a pool's scrub: fail, return, replace, locate, start and stop.
import { useEffect, useState } from 'preact/hooks';
import { ask, get, part, query } from '../data/api';
import { size } from '../format';
import type { Created, Drive, Pool } from '../data/types';
import * as commands from './commands';
import { Choice, Field, OrderDialog, Text } from './dialog';

export function FailDrive({ drive, pool }: { drive: string; pool: string }) {
  return (
    <OrderDialog
      title={`Fail drive ${drive}`}
      verb="Fail"
      danger
      forces={['force']}
      said={`Drive ${drive} is out of its mirror.`}
      name={drive}
      command={(forced) => commands.failDrive(drive, forced)}
      run={(forced) => ask('POST', `/drives/${part(drive)}/fail${query({ force: forced.has('force') })}`)}
    >
      <p>
        It is taken out of its mirror of pool {pool} and gets no more writes. Hosts go on by the other legs. “Return” is
        the opposite.
      </p>
    </OrderDialog>
  );
}

export function ReturnDrive({ drive }: { drive: string }) {
  return (
    <OrderDialog
      title={`Return drive ${drive}`}
      verb="Return"
      said={`Drive ${drive} is back in its mirror.`}
      name={drive}
      command={() => commands.returnDrive(drive)}
      run={() => ask('POST', `/drives/${part(drive)}/return`)}
    >
      <p>Only what was written meanwhile is copied to it.</p>
    </OrderDialog>
  );
}

export function ReplaceDrive({ drive }: { drive: string }) {
  const [next, setNext] = useState('');
  const [free, setFree] = useState<Drive[]>([]);
  useEffect(() => {
    get<Drive[]>('/drives').then(
      (all) => setFree(all.filter((d) => ['free', 'foreign', 'labelled'].includes(d.role) && d.path)),
      () => {},
    );
  }, []);
  const chosen = next.trim();
  return (
    <OrderDialog
      title={`Replace drive ${drive}`}
      verb="Replace"
      danger
      forces={['force']}
      said={`Drive ${chosen} takes the place of ${drive}.`}
      name={chosen || drive}
      ready={!!chosen}
      command={(forced) => commands.replaceDrive(drive, chosen, forced)}
      run={(forced) =>
        ask<Created>('POST', `/drives/${part(drive)}/replace`, {
          new: chosen,
          ...(forced.has('force') ? { force: true } : {}),
        })
      }
    >
      <p>All data is copied. If the old drive is in sync, it serves until that is done; then it leaves the pool.</p>
      <Field label="New drive" at="new" hint={free.length ? 'One of those below, or another path' : 'Its path'}>
        <Text value={next} set={setNext} placeholder="/dev/nvme7n1" />
      </Field>
      {free.length > 0 && (
        <fieldset class="group">
          <legend>Drives of this machine that no pool has</legend>
          {free.map((d) => (
            <label class="check" key={d.path}>
              <input type="radio" name="candidate" checked={chosen === d.path} onChange={() => setNext(d.path)} />
              {d.path}{' '}
              <span class="dim">
                {size(d.bytes)} {d.model} {d.role === 'free' ? '' : d.role}
              </span>
            </label>
          ))}
        </fieldset>
      )}
    </OrderDialog>
  );
}

export function LocateDrive({ drive }: { drive: string }) {
  const [on, setOn] = useState('on');
  return (
    <OrderDialog
      title={`Locate drive ${drive}`}
      verb={on === 'on' ? 'Switch on' : 'Switch off'}
      said={`The light of drive ${drive} is ${on}.`}
      name={drive}
      command={() => commands.locateDrive(drive, on === 'on')}
      run={() => ask('POST', `/drives/${part(drive)}/locate`, { on: on === 'on' })}
    >
      <Field label="The light at its bay">
        <Choice
          value={on}
          set={setOn}
          of={[
            ['on', 'On'],
            ['off', 'Off'],
          ]}
        />
      </Field>
    </OrderDialog>
  );
}

export function StartScrub({ pool }: { pool: Pool }) {
  const [repair, setRepair] = useState(false);
  const [prefer, setPrefer] = useState<string[]>([]);
  const mirrors = pool.arrays.filter((a) => a.layout === 'mirror');
  const toggle = (path: string, on: boolean) => setPrefer(on ? [...prefer, path] : prefer.filter((p) => p !== path));
  return (
    <OrderDialog
      title={`Scrub pool ${pool.name}`}
      verb="Start"
      said={`The scrub of pool ${pool.name} runs.`}
      name={pool.name}
      command={() => commands.startScrub(pool.name, repair, repair ? prefer : [])}
      run={() =>
        ask<Created>('POST', `/pools/${part(pool.name)}/scrub`, {
          action: 'start',
          repair,
          ...(repair && prefer.length ? { prefer } : {}),
        })
      }
    >
      <p>
        All legs are read and compared while hosts are served, and give way to them. What a leg cannot read is written
        again from another.
      </p>
      <label class="check">
        <input type="checkbox" checked={repair} onChange={(e) => setRepair(e.currentTarget.checked)} />
        Make legs equal where they differ
      </label>
      {repair && (
        <fieldset class="group">
          <legend>Drives that hold the right data, one of each mirror</legend>
          {mirrors.some((m) => m.legs.length === 2 && !m.legs.some((l) => prefer.includes(l.path))) && (
            <small class="wrong">
              Of two legs nobody can tell which is right: where no drive is chosen, differences are only reported.
            </small>
          )}
          {mirrors.map((m, i) =>
            m.legs.map((leg) => (
              <label class="check" key={leg.uuid}>
                <input
                  type="checkbox"
                  checked={prefer.includes(leg.path)}
                  onChange={(e) => toggle(leg.path, e.currentTarget.checked)}
                />
                {leg.path} <span class="dim">mirror-{i}</span>
              </label>
            )),
          )}
        </fieldset>
      )}
    </OrderDialog>
  );
}

export function StopScrub({ pool }: { pool: Pool }) {
  return (
    <OrderDialog
      title={`Stop the scrub of pool ${pool.name}`}
      verb="Stop"
      said={`The scrub of pool ${pool.name} is stopped.`}
      name={pool.name}
      command={() => commands.stopScrub(pool.name)}
      run={() => ask<Created>('POST', `/pools/${part(pool.name)}/scrub`, { action: 'stop' })}
    >
      <p>What it found so far stays.</p>
    </OrderDialog>
  );
}
