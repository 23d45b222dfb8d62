// What `millrace explain` says now: what limits, the arithmetic behind it, and what to do.
import { useAnswer } from '../data/ask';
import { Card, Empty, Icon, Next } from '../parts';
import type { Explanation } from '../data/asked';

export function Explain({ full }: { full?: boolean }) {
  // It measures for one second each time, so it is asked seldom.
  const { value: found, error } = useAnswer<Explanation>('/explain', 10_000);
  const some = full ? undefined : 3;
  return (
    <Card title="What limits now">
      {error && <Empty>Not known: {error.message}.</Empty>}
      {!found && !error && <Empty>Measuring…</Empty>}
      {found && !error && (
        <div class="explain">
          <p>{found.load.message}</p>
          {found.findings.length === 0 && (
            <p class="dim">
              <Icon tone="good" />
              Nothing limits it.
            </p>
          )}
          <ol>
            {found.findings.slice(0, some).map((f, i) => (
              <li key={`${f.code}${i}`}>
                <b>{f.message}</b>
                <ul class="arithmetic">
                  {f.arithmetic.slice(0, full ? undefined : 2).map((a, j) => (
                    <li key={j}>{a.message}</li>
                  ))}
                </ul>
                <Next text={f.next} />
              </li>
            ))}
          </ol>
          {!full && found.findings.length > 3 && <a href="#/machine">{found.findings.length - 3} more</a>}
          {found.next_limit && <p class="dim">The next limit: {found.next_limit.message}.</p>}
        </div>
      )}
    </Card>
  );
}
