import { useEffect, useMemo, useState } from "react";
import { answered, api, type Schema } from "../api";
import { useAgain, useAnswer, type Answer } from "../ask";
import { date } from "../text";
import { useFollowed } from "../watch";
import { AsOf } from "./AsOf";
import { Time } from "./Time";

type Replica = Schema["Replicas"]["items"][number];

// A replica that ended is listed until its lease ends: when the list is asked for again, in ms after zones have moved.
const settled = [5000, 15_000, 30_000];

/** Replicas are the globals of one store, with what each has of it. They are asked for again at each turn: zones that move tell of them. */
export function Replicas({ turn }: { turn: number }) {
  const replicas = useAnswer("replicas", (signal) => answered(api.GET("/_replicas", { signal })));
  useAgain(replicas, turn);
  const moved = useMemo(() => (turn === 0 ? undefined : new Date()), [turn]);
  const all = replicas.data?.items ?? [];
  useFollowed(`${turn}`, moved, all.every((r) => r.store.kind === "bolt"), replicas.again, settled);
  const gone = useGone(replicas);
  return (
    <>
      <h2>Replicas of the global</h2>
      <AsOf answer={replicas} />
      {all.length > 0 && (
        <div className="scroll" tabIndex={0}>
          <table>
            <caption className="hidden">Replicas of the global</caption>
            <thead><tr><th scope="col">Replica</th><th scope="col">Version</th><th scope="col">Zones</th><th scope="col">Revision</th><th scope="col">Store</th><th scope="col">Started</th></tr></thead>
            <tbody>
              {all.map((r) => <Row key={r.instance} replica={r} />)}
              {gone.map(([name, at]) => <tr key={name}><th scope="row">{name}</th><td colSpan={5}>gone, last listed <Time at={at} /></td></tr>)}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

// So many are remembered of those that are gone.
const most = 10;

/** useGone returns the replicas that an earlier answer had and the last one has not, with when they were last in one. */
function useGone({ data, at }: Answer<Schema["Replicas"]>): [string, Date][] {
  const [seen, setSeen] = useState<ReadonlyMap<string, Date>>(new Map());
  useEffect(() => {
    // Without an answer nothing may be shown of earlier ones.
    setSeen((old) => (data === undefined || at === undefined ? new Map() : new Map([...[...old].slice(-most), ...data.items.map((r) => [r.instance, at] as const)])));
  }, [data, at]);
  return data === undefined ? [] : [...seen].filter(([name]) => data.items.every((r) => r.instance !== name)).slice(-most);
}

function Row({ replica: r }: { replica: Replica }) {
  return (
    <tr>
      <th scope="row">{r.instance}{r.asked && " (this one)"}{r.leads && " (leader)"}</th>
      <td>{r.version}</td>
      <td>{r.zones}</td>
      <td>{r.revision}</td>
      <td>{store(r)}</td>
      <td>{date(r.unheard) === undefined ? <Time at={date(r.started)} /> : <>unheard <Time at={date(r.unheard)} lasts /></>}</td>
    </tr>
  );
}

export function store(r: Replica): string {
  const { kind, reachable, writable, error } = r.store;
  if (reachable === false) return `${kind}, does not answer${error === undefined ? "" : `: ${error}`}`;
  if (writable === false) return `${kind}, takes no writes${error === undefined ? "" : `: ${error}`}`;
  return kind;
}
