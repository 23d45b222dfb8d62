// A table that sorts, filters, keeps both in the address, and draws no more rows than are seen.
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { plural } from './format';
import { param, setParam } from './route';
import { type Cell, matches, parseSorting, same, seen, sorted, sortingText } from './rows';

export interface ColumnOf<T> {
  key: string;
  title: string;
  value: (row: T) => Cell;
  /** What is shown; the value itself if absent. */
  cell?: (row: T) => ComponentChildren;
  /** A figure: to the right, and the greatest first. */
  num?: boolean;
  /** 1: always there. 2: not on a phone. 3: on a wide screen alone. */
  rank?: 2 | 3;
  title2?: string;
}

interface Props<T> {
  name: string;
  rows: T[];
  columns: ColumnOf<T>[];
  rowKey: (row: T) => string;
  /** What the filter looks in. */
  text?: (row: T) => string;
  sort: string;
  prefix?: string;
  empty: ComponentChildren;
  one: string;
  actions?: ComponentChildren;
  filters?: ComponentChildren;
}

const ROW = 32;
/** Fewer rows than this are all drawn. */
const FEW = 60;

export function Table<T extends object>(props: Props<T>) {
  const { name, rows, columns, rowKey, text, prefix = '' } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const [sortKey, filterKey] = [`${prefix}sort`, `${prefix}q`];
  const sorting = parseSorting(param(sortKey, props.sort));
  const filter = param(filterKey);
  const column = columns.find((c) => c.key === sorting.key) ?? columns[0]!;
  const shown = useMemo(() => {
    const found = filter && text ? rows.filter((r) => matches(text(r), filter)) : rows;
    return sorted(found, column.value, sorting.down, rowKey);
  }, [rows, filter, sorting.key, sorting.down]);

  useEffect(() => {
    const box = scroll.current;
    if (!box) return;
    const observer = new ResizeObserver(() =>
      setView((v) => (v.height === box.clientHeight ? v : { ...v, height: box.clientHeight })),
    );
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  const part =
    shown.length <= FEW
      ? { first: 0, end: shown.length, before: 0, behind: 0 }
      : seen(shown.length, ROW, view.top, view.height);
  const onScroll = () => {
    const top = scroll.current!.scrollTop;
    if (Math.abs(top - view.top) >= ROW) setView((v) => ({ ...v, top }));
  };
  const order = (c: ColumnOf<T>) => {
    const next = sorting.key === c.key ? { key: c.key, down: !sorting.down } : { key: c.key, down: c.num === true };
    setParam(sortKey, sortingText(next));
  };
  return (
    <div class="table">
      {(text || props.actions || props.filters) && (
        <div class="tools">
          {text && (
            <input
              type="search"
              value={filter}
              placeholder="Filter"
              aria-label={`Filter ${name}`}
              spellcheck={false}
              onInput={(e) => setParam(filterKey, e.currentTarget.value)}
            />
          )}
          {props.filters}
          <span class="dim count" role="status">
            {filter ? `${shown.length} of ${plural(rows.length, props.one)}` : plural(rows.length, props.one)}
          </span>
          {props.actions && <span class="actions">{props.actions}</span>}
        </div>
      )}
      <div class="scroll" ref={scroll} onScroll={onScroll} tabIndex={0} role="region" aria-label={`${name}, table`}>
        <table aria-rowcount={shown.length + 1}>
          <caption class="hidden">{name}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((c) => (
                <th
                  key={c.key}
                  scope="col"
                  class={classOf(c)}
                  aria-sort={c.key !== column.key ? undefined : sorting.down ? 'descending' : 'ascending'}
                >
                  <button type="button" onClick={() => order(c)} title={c.title2}>
                    {c.title}
                    <span class="arrow" aria-hidden="true">
                      {c.key !== column.key ? '' : sorting.down ? '▼' : '▲'}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {part.before > 0 && (
              <tr class="room" aria-hidden="true" style={{ height: `${part.before}px` }}>
                <td colSpan={columns.length} />
              </tr>
            )}
            {shown.slice(part.first, part.end).map((row, i) => (
              <Row key={rowKey(row)} row={row} columns={columns as ColumnOf<object>[]} index={part.first + i + 2} />
            ))}
            {part.behind > 0 && (
              <tr class="room" aria-hidden="true" style={{ height: `${part.behind}px` }}>
                <td colSpan={columns.length} />
              </tr>
            )}
          </tbody>
        </table>
        {shown.length === 0 && <p class="empty">{filter ? `Nothing here matches “${filter}”.` : props.empty}</p>}
      </div>
    </div>
  );
}

const textOf = (value: Cell) => (value == null || value === '' ? '–' : value);

const classOf = (c: { num?: boolean; rank?: number }) => `${c.num ? 'num' : ''}${c.rank ? ` rank${c.rank}` : ''}`;

/** A row is drawn again only if a value of it changed: rows hold plain values. */
class Row extends Component<{ row: object; columns: ColumnOf<object>[]; index: number }> {
  override shouldComponentUpdate(next: this['props']) {
    return next.index !== this.props.index || !same(next.row, this.props.row);
  }
  override render() {
    const { row, columns, index } = this.props;
    return (
      <tr aria-rowindex={index}>
        {columns.map((c, i) => {
          const shown = c.cell ? c.cell(row) : textOf(c.value(row));
          return i === 0 ? (
            <th key={c.key} scope="row" class={classOf(c)}>
              {shown}
            </th>
          ) : (
            <td key={c.key} class={classOf(c)}>
              {shown}
            </td>
          );
        })}
      </tr>
    );
  }
}
