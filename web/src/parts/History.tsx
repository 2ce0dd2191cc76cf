import { useRef } from "react";
import { answered, api, type Resource, type Schema } from "../api";
import { useAnswer } from "../ask";
import { changesOf, longer, type Past } from "../past";
import { date } from "../text";
import { AsOf } from "./AsOf";
import { Time } from "./Time";

/** asked is how many entries of the audit log are read, refusals among them; shown is how many of them are kept and shown. */
const asked = 200;
const shown = 20;

/** History tells who changed a resource on this server, when, and what: from the audit log, newest first. */
export function History({ of: r }: { of: Resource }) {
  const known = useRef<{ kri?: string; log?: Past }>({});
  const log = useAnswer(`history ${r.kri}`, async (signal) => {
    const before = known.current.kri === r.kri ? known.current.log : undefined;
    const newer = await pastOf(r, before, signal);
    known.current = { kri: r.kri, log: newer };
    return newer;
  }, r.modificationTime);
  const all = [...(log.data?.changes ?? [])].reverse();
  return (
    <>
      <h2>History</h2>
      {log.refusal?.status === 403 ? <p className="note">It is in the audit log, which you may not read: {log.refusal.message}</p> : <AsOf answer={log} />}
      {log.data !== undefined && all.length === 0 && <p>{log.data.read < asked ? "The audit log of this server has" : `The newest ${asked} entries about it in the audit log of this server have`} no change of it. What came from elsewhere is in the log of the server where it was written; old entries go.</p>}
      <ol className="history">
        {all.map((p) => (
          <li key={p.seq}>
            <b>{p.change.result}</b> by {p.user ?? "an unknown user"} <Time at={date(p.time)} />
            {p.outcome !== "done" && <>: {p.outcome}{p.reason !== undefined && `, ${p.reason}`}</>}
            <Difference change={p.change} />
          </li>
        ))}
      </ol>
      {log.data?.more === true && <p className="note">Older changes: <code>causewayctl audit --type {r.type} --name {r.name} -o wide</code>.</p>}
    </>
  );
}

/**
 * pastOf reads what the audit log has of a resource. After a change it reads only what is new: to go through the whole log
 * costs the server more than everything else that an open page asks. Of what it reads it keeps what is shown: an entry of a
 * large batch tells of thousands of other resources.
 */
async function pastOf(r: Resource, before: Past | undefined, signal: AbortSignal): Promise<Past> {
  const about = { type: r.type, mesh: r.mesh, namespace: r.namespace, name: r.name };
  const query = before === undefined ? { ...about, last: String(asked) } : { ...about, after: String(before.next) };
  const page = await answered(api.GET("/_audit", { params: { query }, signal }));
  return longer(before, { next: page.next, read: page.entries.length, changes: changesOf(page.entries, r), more: false }, shown);
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
