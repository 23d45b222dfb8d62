// The lines that a host runs to connect, each to be copied.
import { ownAddress, wayOf } from '../data/connect';
import { status } from '../data/state';
import { Command } from '../parts';

export function HowToConnect({ host: name }: { host: string }) {
  const s = status.value;
  const host = s?.hosts.find((h) => h.name === name);
  if (!s || !host) return null;
  const way = wayOf(s, host, ownAddress(location.hostname));
  return (
    <div class="connect">
      {way.commands.length > 0 && (
        <p>
          On <b>{name}</b>, as root, if it runs Linux:
        </p>
      )}
      {way.commands.map((c) => (
        <Command key={c} text={c} />
      ))}
      {way.notes.map((n) => (
        <p class="dim" key={n}>
          {n}
        </p>
      ))}
      {way.closed.map((c) => (
        <p key={c}>
          No portal of this protocol is open: <Command text={c} />
        </p>
      ))}
    </div>
  );
}
