import { answered, api, type Resource, type Schema } from "../api";
import { useAnswer } from "../ask";
import { date } from "../text";
import { AsOf } from "./AsOf";
import { Time } from "./Time";

/** asked is how many entries of the audit log are read, refusals among them; shown is how many of them are shown. */
const asked = 200;
const shown = 20;

/** History tells who changed a resource on this server, when, and what: from the audit log, newest first. */
export function History({ of: r }: { of: Resource }) {
  const query = { type: r.type, mesh: r.mesh, namespace: r.namespace, name: r.name, last: String(asked) };
  const log = useAnswer(`history ${r.kri} ${r.modificationTime}`, (signal) => answered(api.GET("/_audit", { params: { query }, signal })));
  const all = log.data === undefined ? [] : changes(log.data.entries, r).reverse();
  return (
    <>
      <h2>History</h2>
      {log.refusal?.status === 403 ? <p className="note">It is in the audit log, which you may not read: {log.refusal.message}</p> : <AsOf answer={log} />}
      {log.data !== undefined && all.length === 0 && <p>{log.data.entries.length < asked ? "The audit log of this server has" : `The newest ${asked} entries about it in the audit log of this server have`} no change of it. What came from elsewhere is in the log of the server where it was written; old entries go.</p>}
      <ol className="history">
        {all.slice(0, shown).map(({ entry, change }) => (
          <li key={entry.seq}>
            <b>{change.result}</b> by {entry.user ?? "an unknown user"} <Time at={date(entry.time)} />
            {entry.outcome !== "done" && <>: {entry.outcome}{entry.reason !== undefined && `, ${entry.reason}`}</>}
            <Difference change={change} />
          </li>
        ))}
      </ol>
      {all.length > shown && <p className="note">Older changes: <code>causewayctl audit --type {r.type} --name {r.name} -o wide</code>.</p>}
    </>
  );
}

interface Change {
  entry: Schema["AuditEntry"];
  change: Schema["AuditChange"];
}

/** changes selects what entries tell of one resource: the log may have others of that name. */
function changes(entries: Schema["AuditEntry"][], r: Resource): Change[] {
  return entries.flatMap((entry) =>
    (entry.changes ?? [])
      .filter((c) => c.type === r.type && c.name === r.name && (c.mesh ?? "") === (r.mesh ?? "") && (c.namespace ?? "") === (r.namespace ?? ""))
      .map((change) => ({ entry, change })),
  );
}

function Difference({ change }: { change: Schema["AuditChange"] }) {
  const fields = change.diff ?? [];
  if (fields.length === 0 && change.cut !== true) return null;
  return (
    <details>
      <summary>{fields.length} {fields.length === 1 ? "field" : "fields"}{change.cut === true && ", and more that the log does not hold"}</summary>
      <div className="scroll" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
          <tbody>
            {fields.map((f) => (
              <tr key={f.path}><th scope="row"><code>{f.path}</code></th><td><Value value={f.from} hidden={f.hidden} /></td><td><Value value={f.to} hidden={f.hidden} /></td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function Value({ value, hidden }: { value: unknown; hidden: boolean | undefined }) {
  if (hidden === true) return <>not shown: it may be secret</>;
  return value === undefined ? <>none</> : <code>{JSON.stringify(value)}</code>;
}
