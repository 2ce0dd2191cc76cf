import { answered, api, type Resource as Shown, type Schema } from "../api";
import { useAnswer, useQuestion } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Concerned } from "../parts/Concerned";
import { History } from "../parts/History";
import { Link } from "../parts/Link";
import { Rollout } from "../parts/Rollout";
import { resourceTypes } from "../questions";
import { source } from "../text";
import { href } from "../view";
import { useChanges } from "../watch";

/** Resource shows one resource: what it says, how it stands, how far it has come, and who changed it. */
export function Resource({ kri }: { kri: string }) {
  const found = useAnswer(`kri ${kri}`, (signal) => answered(api.GET("/_kri/{kri}", { params: { path: { kri } }, signal })));
  const types = useQuestion(resourceTypes);
  const r = found.data as Shown | undefined;
  const plural = types.data?.resources.find((t) => t.name === r?.type)?.path ?? "";
  const live = useChanges(plural, found.again);
  const gone = found.refusal?.status === 404 ? named(kri, types.data?.resources ?? []) : undefined;
  return (
    <section>
      <h1>{r === undefined ? (kri.split("_")[5] || kri || "Resource") : `${r.type} ${r.labels?.["kuma.io/display-name"] ?? r.name}`}</h1>
      <AsOf answer={found} live={live} />
      {r === undefined && gone !== undefined && <History of={gone} />}
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
          {isPolicy(r) && <Rollout type={r.type ?? ""} mesh={r.mesh ?? "default"} kri={r.kri ?? ""} change={r.modificationTime ?? ""} judged={found.again} />}
          {(isPolicy(r) || r.type === "MeshService") && plural !== "" && <Concerned key={r.kri} of={r} plural={plural} />}
          {r.type === "Dataplane" && r.kri !== undefined && <p><Link to={href("proxy", { kri: r.kri })}>Its proxy: connection, certificate, inbounds and rules</Link></p>}
          <h2>Source</h2>
          <pre tabIndex={0}>{source(r)}</pre>
          {r.kri !== undefined && <p><Link to={href("try", { kri: r.kri })}>Try a change of it</Link></p>}
          <History of={r} />
        </>
      )}
    </section>
  );
}

/** named is what a KRI says of a resource that is not here: the audit log may know who removed it. */
function named(kri: string, types: Schema["ResourceTypes"]["resources"]): Shown | undefined {
  const [, short, mesh, , namespace, name] = kri.split("_");
  const type = types.find((t) => t.shortName === short)?.name;
  if (type === undefined || name === undefined || name === "") return undefined;
  return { type, kri, name, ...(mesh === "" ? {} : { mesh }), ...(namespace === "" ? {} : { namespace }) } as Shown;
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
