import { answered, api } from "../api";
import type { Server } from "../server";
import { useAnswer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { LeftOut } from "../parts/LeftOut";
import { KRI, Link } from "../parts/Link";
import { Time } from "../parts/Time";
import { ZoneChoice } from "../parts/ZoneChoice";
import { date, shortKRI } from "../text";
import { go, href } from "../view";

/** Shadow is who would be denied if shadow denials were enforced, as the proxies of a zone reported it. */
export function Shadow({ query, server }: { query: URLSearchParams; server: Server }) {
  const zone = server.mode === "zone" ? undefined : (query.get("zone") ?? "");
  return (
    <section>
      <h1>Shadow report</h1>
      {zone !== undefined && <ZoneChoice zone={zone} onChange={(name) => go(href("shadow", { zone: name }))} />}
      {zone === "" ? <p className="note">Each zone counts what its own proxies report: choose the zone that is asked.</p> : <Report policy={query.get("policy") ?? ""} zone={zone} />}
    </section>
  );
}

/** Report is that of a zone; of the server's own if zone is left out. */
function Report({ policy, zone }: { policy: string; zone?: string }) {
  const query = { ...(policy === "" ? {} : { policy }), ...(zone === undefined ? {} : { zone }) };
  const report = useAnswer(`shadow ${JSON.stringify(query)}`, (signal) => answered(api.GET("/_report/shadow", { params: { query }, signal })));
  const r = report.data;
  return (
    <>
      {policy !== "" && <p>Of <KRI kri={policy} text={shortKRI(policy)} /> only. <Link to={href("shadow", { zone })}>Show all</Link>.</p>}
      <AsOf answer={report} />
      {r !== undefined && (
        <>
          {r.unknown !== undefined && <p className="warning">Who would be denied is unknown: {r.unknown}.</p>}
          <h2>Is it safe to enforce?</h2>
          {r.readiness.length === 0 ? (
            <p>No policy here has an allowWithShadowDeny.</p>
          ) : (
            <ul>
              {r.readiness.map((p) => (
                <li key={p.policy}><Link to={href("shadow", { zone, policy: p.policy })}>{shortKRI(p.policy)}</Link>: {p.text}</li>
              ))}
            </ul>
          )}
          <h2>Who would be denied</h2>
          {r.items.length === 0 && r.unknown === undefined && <p>Nothing that was seen since <Time at={date(r.since)} /> would be denied.</p>}
          {r.items.some((i) => r.readiness.every((p) => p.policy !== i.policy)) && (
            <p className="note">A policy that is not above has no allowWithShadowDeny any more, or you may not read it: what it would have denied was seen earlier.</p>
          )}
          {r.items.length > 0 && <Items items={r.items} since={r.since} />}
          {r.dropped > 0 && <p className="warning">{r.dropped} more requests, of any kind, are not told apart, for lack of room.</p>}
          <LeftOut count={r.leftOut} />
        </>
      )}
    </>
  );
}

type Denials = Awaited<ReturnType<typeof ask>>["items"];
const ask = () => answered(api.GET("/_report/shadow", {}));

function Items({ items, since }: { items: Denials; since: string }) {
  const first = date(since)?.getTime() ?? 0;
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>Counted since <Time at={date(since)} />, the most recent first</caption>
        <thead><tr><th scope="col">Client</th><th scope="col">Inbound</th><th scope="col">Request</th><th scope="col">Count</th><th scope="col">First to last</th><th scope="col">By</th><th scope="col">Why?</th></tr></thead>
        <tbody>
          {items.slice(0, 500).map((i, k) => (
            <tr key={k}>
              <th scope="row">{i.client}</th>
              <td>{shortKRI(i.inbound)}</td>
              <td>{[i.method, i.pathPrefix].join(" ")}</td>
              <td>{i.count}</td>
              <td><Span from={date(i.firstSeen)} to={date(i.lastSeen)} first={first} /><Time at={date(i.firstSeen)} /> to <Time at={date(i.lastSeen)} /></td>
              <td><KRI kri={i.policy} text={shortKRI(i.policy)} /></td>
              <td><Link to={href("why", { mesh: i.inbound.split("_")[2], from: i.client, to: i.inbound, method: i.method, path: i.pathPrefix })}>Why?</Link></td>
            </tr>
          ))}
        </tbody>
      </table>
      {items.length > 500 && <p className="note">{items.length - 500} more: <code>causewayctl report shadow</code>.</p>}
    </div>
  );
}

/** Span draws when a kind of request was seen, from the beginning of the counting until now. */
function Span({ from, to, first }: { from: Date | undefined; to: Date | undefined; first: number }) {
  if (from === undefined || to === undefined) return null;
  const whole = Math.max(1, Date.now() - first);
  const at = (d: Date) => Math.min(100, Math.max(0, ((d.getTime() - first) / whole) * 100));
  return (
    <svg className="span" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect x={at(from)} width={Math.max(1.5, at(to) - at(from))} y="0" height="6" />
    </svg>
  );
}
