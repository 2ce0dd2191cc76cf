import { answered, api, type Resource as Shown, type Schema } from "../api";
import { useAnswer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Rollout } from "../parts/Rollout";

/** Resource shows one resource: what it says, how it stands, and how far it has come. */
export function Resource({ kri }: { kri: string }) {
  const found = useAnswer(`kri ${kri}`, (signal) => answered(api.GET("/_kri/{kri}", { params: { path: { kri } }, signal })));
  const r = found.data as Shown | undefined;
  return (
    <section>
      <h1>{r === undefined ? kri : `${r.type} ${r.labels?.["kuma.io/display-name"] ?? r.name}`}</h1>
      <AsOf answer={found} />
      {r !== undefined && (
        <>
          <dl className="facts">
            <Fact name="KRI" value={r.kri} />
            <Fact name="Stored as" value={r.name} />
            <Fact name="Mesh" value={r.mesh} />
            <Fact name="Namespace" value={r.namespace} />
            <Fact name="Role" value={r.labels?.["kuma.io/policy-role"]} />
            <Fact name="From" value={r.labels?.["kuma.io/zone"] ?? r.labels?.["kuma.io/origin"]} />
          </dl>
          <Conditions conditions={r.status?.conditions ?? []} />
          {isPolicy(r) && <Rollout type={r.type ?? ""} mesh={r.mesh ?? "default"} kri={r.kri ?? ""} />}
          <h2>Source</h2>
          <pre tabIndex={0}>{source(r)}</pre>
        </>
      )}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string | undefined }) {
  return value === undefined || value === "" ? null : <div><dt>{name}</dt><dd>{value}</dd></div>;
}

function isPolicy(r: Shown): boolean {
  return r.labels?.["kuma.io/policy-role"] !== undefined;
}

function Conditions({ conditions }: { conditions: Schema["Condition"][] }) {
  if (conditions.length === 0) return null;
  return (
    <>
      <h2>Conditions</h2>
      <ul className="conditions">
        {conditions.map((c, i) => (
          <li key={i} className={`is-${c.status}`}><b>{c.type} {c.status}</b> {c.reason}: {c.message}</li>
        ))}
      </ul>
    </>
  );
}

/** source is the resource without what the server computes, as it could be applied again. */
function source(r: Shown): string {
  const { kri: _kri, status: _status, creationTime: _created, modificationTime: _modified, ...rest } = r;
  return JSON.stringify(rest, null, 2);
}
