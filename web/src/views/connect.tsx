// The lines that a host runs to connect, each to be copied.
import { useAnswer } from '../data/ask';
import type { HostConnect } from '../data/asked';
import { Command } from '../parts';

export function HowToConnect({ host }: { host: string }) {
  const { value: way } = useAnswer<HostConnect>(`/hosts/${encodeURIComponent(host)}/connect`, 30_000);
  if (!way) return null;
  return (
    <div class="connect">
      {way.commands.length > 0 && (
        <p>
          On <b>{host}</b>, as root, if it runs Linux:
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
      {way.next.map((c) => (
        <p key={c}>
          No portal of this protocol is open: <Command text={c} />
        </p>
      ))}
    </div>
  );
}
