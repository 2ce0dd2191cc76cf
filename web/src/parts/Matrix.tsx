import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { callerName, cellText, has, mark, named, windowOf, type Access, type Cell, type Kind } from "../calls";
import { amend } from "../view";

const side = 28;

// What could be seen of the last matrix: the next one probably has the same frame, and is drawn once.
let before = { height: 0, width: 0 };

interface Place {
  row: number;
  column: number;
}

interface Props {
  a: Access;
  only: Kind;
  /** row and column are those of the chosen cell, -1 if there is none. */
  row: number;
  column: number;
}

/**
 * Matrix has services as rows and callers as columns. It draws only what can be seen of it. One cell takes the focus, and
 * the arrow keys move it. A thousand cells are drawn again only when they may differ.
 */
export const Matrix = memo(function Matrix({ a, only, row, column }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, left: 0, ...before });
  const [cursor, setCursor] = useState<Place>({ row: Math.max(0, row), column: Math.max(0, column) });
  const moved = useRef(false);
  const cells = useMemo(() => a.services.map((s) => new Map(s.cells.map((c) => [c.caller, c]))), [a]);

  useLayoutEffect(() => {
    const at = frame.current;
    if (at === null) return;
    const measure = () => {
      const now = { top: at.scrollTop, left: at.scrollLeft, height: at.clientHeight, width: at.clientWidth };
      before = { height: now.height, width: now.width };
      setSeen((old) => (now.top === old.top && now.left === old.left && now.height === old.height && now.width === old.width ? old : now));
    };
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(at);
    at.addEventListener("scroll", measure, { passive: true });
    return () => {
      watcher.disconnect();
      at.removeEventListener("scroll", measure);
    };
  }, []);

  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    frame.current?.querySelector<HTMLElement>("[data-cursor]")?.focus();
  });

  const [top, bottom] = windowOf(seen.top, seen.height, side, a.services.length);
  const [left, right] = windowOf(seen.left, seen.width, side, a.callers.length);

  const onKeyDown = (e: KeyboardEvent) => {
    const step = steps[e.key];
    if (step === undefined) return;
    e.preventDefault();
    const next = {
      row: Math.min(a.services.length - 1, Math.max(0, cursor.row + step.row)),
      column: Math.min(a.callers.length - 1, Math.max(0, cursor.column + step.column)),
    };
    moved.current = true;
    setCursor(next);
    reveal(frame.current, next);
  };

  return (
    <div className="matrix" ref={frame}>
      <div className="whole" style={{ width: `calc(var(--names) + ${a.callers.length * side}px)`, height: `calc(var(--heads) + ${a.services.length * side}px)` }}>
        <table
          aria-rowcount={a.services.length + 1}
          aria-colcount={a.callers.length + 1}
          onKeyDown={onKeyDown}
          style={{ top: `${top * side}px`, left: `${left * side}px`, width: `calc(var(--names) + ${(right - left) * side}px)` }}
        >
          <caption className="hidden">Services and who may call them: arrow keys move, Enter tells who decides</caption>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" className="corner">Service</th>
              {a.callers.slice(left, right).map((c, i) => (
                <th key={c.spiffeId} scope="col" aria-colindex={left + i + 2} title={c.spiffeId}><span>{callerName(c)}</span></th>
              ))}
            </tr>
          </thead>
          <tbody>
            {a.services.slice(top, bottom).map((s, i) => (
              <tr key={s.kri} aria-rowindex={top + i + 2}>
                <th scope="row" title={s.kri}><div><span>{[s.zone, s.namespace].filter((p) => p !== undefined && p !== "").map((p) => `${p}/`).join("")}</span>{s.name}:{s.port}</div></th>
                {a.callers.slice(left, right).map((c, k) => {
                  const at = { row: top + i, column: left + k };
                  const cell = cells[at.row]?.get(at.column);
                  const here = cursor.row === at.row && cursor.column === at.column;
                  const text = cellText(s, cell, a.seen.unknown === undefined);
                  return (
                    <td key={c.spiffeId} aria-colindex={at.column + 2}>
                      <button
                        type="button"
                        tabIndex={here ? 0 : -1}
                        data-cursor={here || undefined}
                        aria-pressed={row === at.row && column === at.column}
                        className={look(cell, only, s.proxies)}
                        title={`${c.spiffeId} to ${s.name}: ${text}`}
                        aria-label={`${c.spiffeId} to ${s.name}: ${text}`}
                        onClick={() => {
                          setCursor(at);
                          amend(named(a, at.row, at.column));
                        }}
                      >{s.proxies === 0 ? "·" : mark(cell)}</button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
});

const steps: Record<string, Place> = {
  ArrowUp: { row: -1, column: 0 },
  ArrowDown: { row: 1, column: 0 },
  ArrowLeft: { row: 0, column: -1 },
  ArrowRight: { row: 0, column: 1 },
  PageUp: { row: -10, column: 0 },
  PageDown: { row: 10, column: 0 },
};

/** reveal scrolls so that a cell stands beside the headers and not behind them. */
function reveal(frame: HTMLElement | null, at: Place) {
  if (frame === null) return;
  const head = frame.querySelector<HTMLElement>(".corner");
  const width = frame.clientWidth - (head?.offsetWidth ?? 0);
  const height = frame.clientHeight - (head?.offsetHeight ?? 0);
  frame.scrollLeft = Math.min(at.column * side, Math.max(frame.scrollLeft, (at.column + 1) * side - width));
  frame.scrollTop = Math.min(at.row * side, Math.max(frame.scrollTop, (at.row + 1) * side - height));
}

function look(cell: Cell | undefined, only: Kind, proxies: number): string {
  if (cell === undefined || proxies === 0) return "cell";
  const words = ["cell", cell.verdict];
  if (cell.shadow !== undefined) words.push("shadow");
  if (cell.allowed !== undefined || cell.denied !== undefined) words.push("seen");
  if (!has(only, cell)) words.push("pale");
  return words.join(" ");
}
