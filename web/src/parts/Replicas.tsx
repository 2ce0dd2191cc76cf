import { answered, api, type Schema } from "../api";
import { useAnswer } from "../ask";
import { date } from "../text";
import { AsOf } from "./AsOf";
import { Time } from "./Time";

type Replica = Schema["Replicas"]["items"][number];

/** Replicas are the globals of one store, with what each has of it. */
export function Replicas() {
  const replicas = useAnswer("replicas", (signal) => answered(api.GET("/_replicas", { signal })));
  const all = replicas.data?.items ?? [];
  return (
    <>
      <h2>Replicas of the global</h2>
      <AsOf answer={replicas} />
      {all.length > 0 && (
        <div className="scroll" tabIndex={0}>
          <table>
            <caption className="hidden">Replicas of the global</caption>
            <thead><tr><th scope="col">Replica</th><th scope="col">Version</th><th scope="col">Zones</th><th scope="col">Revision</th><th scope="col">Store</th><th scope="col">Started</th></tr></thead>
            <tbody>{all.map((r) => <Row key={r.instance} replica={r} />)}</tbody>
          </table>
        </div>
      )}
    </>
  );
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
