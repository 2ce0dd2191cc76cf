import { answered, api, type Schema } from "../api";
import type { Server } from "../App";
import { useAnswer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { LeftOut } from "../parts/LeftOut";
import { KRI } from "../parts/Link";
import { Time } from "../parts/Time";
import { presence, type Presence } from "../text";

const pageSize = 1000;

/** Overview is one screen: what is there, and first of all what is not as it should be. */
export function Overview({ server }: { server: Server }) {
  return (
    <section>
      <h1>Overview</h1>
      <Totals global={server.mode === "global"} />
      {server.mode === "global" ? <Zones /> : <Proxies />}
    </section>
  );
}

function Totals({ global }: { global: boolean }) {
  const insight = useAnswer("insight", (signal) => answered(api.GET("/global-insight", { signal })));
  const d = insight.data;
  return (
    <>
      <AsOf answer={insight} />
      {d !== undefined && (
        <dl className="totals">
          {global && <Total name="zones online" value={`${d.zones.controlPlanes.online} of ${d.zones.controlPlanes.total}`} />}
          <Total name="proxies online" value={`${d.dataplanes.standard.online ?? "unknown"} of ${d.dataplanes.standard.total}`} />
          <Total name="policies" value={`${d.policies.total}`} />
          <Total name="services" value={`${d.services.internal.total + d.services.external.total}`} />
          <Total name="meshes" value={`${d.meshes.total}`} />
        </dl>
      )}
    </>
  );
}

function Total({ name, value }: { name: string; value: string }) {
  return <div><dd>{value}</dd><dt>{name}</dt></div>;
}

const urgency: Record<Presence["state"], number> = { offline: 0, unknown: 1, never: 2, online: 3 };

function byUrgency(a: Schema["Overview"], b: Schema["Overview"]): number {
  return urgency[presence(a).state] - urgency[presence(b).state] || a.name.localeCompare(b.name);
}

function Zones() {
  const zones = useAnswer("zones", (signal) =>
    answered(api.GET("/zones/_overview", { params: { query: { size: pageSize } }, signal })),
  );
  return <Subjects title="Zones" answer={zones} none="No zone has joined: causewayctl zone create prints how one does." />;
}

function Proxies() {
  const proxies = useAnswer("proxies", (signal) =>
    answered(api.GET("/dataplanes/_overview", { params: { query: { size: pageSize } }, signal })),
  );
  return <Subjects title="Proxies" answer={proxies} none="No Dataplane is known here." />;
}

function Subjects({ title, answer, none }: { title: string; answer: ReturnType<typeof useAnswer<Schema["Overviews"]>>; none: string }) {
  const items = [...(answer.data?.items ?? [])].sort(byUrgency);
  const wrong = items.filter((o) => presence(o).state !== "online" || disabled(o));
  return (
    <>
      <h2>{title}</h2>
      <AsOf answer={answer} />
      {answer.data !== undefined && (
        <>
          {answer.data.total === 0 && answer.data.leftOut === undefined && <p>{none}</p>}
          {items.length > 0 && (
            <ul className="tiles" aria-label={`${title} by state`}>
              {items.map((o) => (
                <li key={o.kri ?? o.name} className={`tile ${presence(o).state}`} title={`${o.name}: ${presence(o).state}`}>
                  <span className="hidden">{o.name}: {presence(o).state}</span>
                </li>
              ))}
            </ul>
          )}
          {answer.data.total > items.length && (
            <p className="note">The first {items.length} of {answer.data.total} are shown.</p>
          )}
          <LeftOut count={answer.data.leftOut} />
          {items.length > 0 && wrong.length === 0 && <p>All {items.length} shown are online.</p>}
          {wrong.length > 0 && <Wrong items={wrong} title={title} />}
        </>
      )}
    </>
  );
}

function disabled(o: Schema["Overview"]): boolean {
  return (o.zone as { enabled?: boolean } | undefined)?.enabled === false;
}

function Wrong({ items, title }: { items: Schema["Overview"][]; title: string }) {
  return (
    <div className="scroll">
      <table>
        <caption>{title} that need a look</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">What to do</th></tr></thead>
        <tbody>
          {items.slice(0, 100).map((o) => {
            const p = presence(o);
            return (
              <tr key={o.kri ?? o.name}>
                <th scope="row">{o.kri === undefined ? o.name : <KRI kri={o.kri} text={o.name} />}</th>
                <td><State presence={p} disabled={disabled(o)} /></td>
                <td>{remedy(o, p)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {items.length > 100 && <p className="note">{items.length - 100} more.</p>}
    </div>
  );
}

function State({ presence: p, disabled: off }: { presence: Presence; disabled: boolean }) {
  return (
    <>
      <span className={`dot ${p.state}`} aria-hidden="true" /> {p.state === "never" ? "not seen yet" : p.state}
      {off && ", disabled"}
      {p.state !== "never" && p.since !== undefined && <> since <Time at={p.since} /></>}
      {p.state === "unknown" && <>: {p.reason}</>}
    </>
  );
}

function remedy(o: Schema["Overview"], p: Presence) {
  if (disabled(o)) return <code>causewayctl zone enable {o.name}</code>;
  if (o.leftOut !== undefined) return "Ask for the right to read its insight.";
  if (o.type === "DataplaneOverview") return p.state === "never" ? "Start its Envoy with causeway-zone bootstrap." : "Look at its Envoy's log.";
  if (p.state === "never") return <code>causewayctl zone create {o.name}</code>;
  return <code>causewayctl doctor --address ZONE</code>;
}
