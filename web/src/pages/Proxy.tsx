import { answered, api, type Schema } from "../api";
import { useAnswer, type Answer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Envoy } from "../parts/Envoy";
import { LeftOut } from "../parts/LeftOut";
import { Linked } from "../parts/Linked";
import { KRI, Link } from "../parts/Link";
import { Time } from "../parts/Time";
import { date, presence, problemsOf, shortKRI } from "../text";
import { href } from "../view";

interface At {
  mesh: string;
  name: string;
}

/** Proxy is one Dataplane: its connection and certificate, its inbounds with the rules of each, and where it sends to. */
export function Proxy({ kri }: { kri: string }) {
  const at: At = { mesh: kri.split("_")[2] ?? "", name: kri };
  if (!kri.startsWith("kri_dp_") || at.mesh === "") {
    return <section><h1>Proxy</h1><p>The URL names no Dataplane by its KRI.</p></section>;
  }
  return (
    <section>
      <h1>Proxy {shortKRI(kri)}</h1>
      <p>Its resource is <KRI kri={kri} />.</p>
      <Answers at={at} />
    </section>
  );
}

/** Answers shows three answers once all are there: what a person is about to click does not move. */
function Answers({ at }: { at: At }) {
  const ask = { params: { path: at } };
  const overview = useAnswer(`overview ${at.name}`, (signal) => answered(api.GET("/meshes/{mesh}/dataplanes/{name}/_overview", { ...ask, signal })));
  const layout = useAnswer(`layout ${at.name}`, (signal) => answered(api.GET("/meshes/{mesh}/dataplanes/{name}/_layout", { ...ask, signal })));
  const rules = useAnswer(`rules ${at.name}`, (signal) => answered(api.GET("/meshes/{mesh}/dataplanes/{name}/_rules", { params: { path: at, query: { grouped: "true" } }, signal })));
  if ([overview, layout, rules].some((a) => a.data === undefined && a.refusal === undefined)) return <p role="status" className="pending">Asking the server…</p>;
  return (
    <>
      <Connection overview={overview} />
      <Layout at={at} layout={layout} />
      <Rules rules={rules} />
      <Envoy at={at} />
    </>
  );
}

interface Insight {
  subscriptions?: { connectTime?: string; disconnectTime?: string; controlPlaneInstanceId?: string; version?: { envoy?: { version?: string } } }[];
  mTLS?: { certificateExpirationTime?: string; lastCertificateRegeneration?: string; issuedBackend?: string };
}

function Connection({ overview }: { overview: Answer<Schema["Overview"]> }) {
  const o = overview.data;
  const insight = o?.dataplaneInsight as Insight | undefined;
  const ends = date(insight?.mTLS?.certificateExpirationTime);
  return (
    <>
      <h2>Connection</h2>
      <AsOf answer={overview} />
      {o !== undefined && (
        <dl className="facts">
          <div><dt>State</dt><dd><State o={o} /></dd></div>
          <div><dt>Certificate</dt><dd>{ends === undefined ? "unknown: no proxy has told of one" : <>ends <Time at={ends} coming />{ends < new Date() && ", it has ended"}</>}{insight?.mTLS?.issuedBackend !== undefined && `, issued by ${insight.mTLS.issuedBackend}`}</dd></div>
          <div><dt>Envoy</dt><dd>{insight?.subscriptions?.at(-1)?.version?.envoy?.version ?? "unknown"}</dd></div>
        </dl>
      )}
      <Problems of={problemsOf(o)} />
      <LeftOut count={o?.leftOut} />
    </>
  );
}

function Problems({ of }: { of: [source: string, text: string][] }) {
  if (of.length === 0) return null;
  return (
    <>
      <h3 id="problems">Without effect on it</h3>
      <ul className="findings" aria-labelledby="problems">
        {of.map(([source, text]) => <li key={source}><b>{source.startsWith("refused-") ? "Its Envoy refuses" : source}</b>: <Linked text={text} /></li>)}
      </ul>
    </>
  );
}

function State({ o }: { o: Schema["Overview"] }) {
  const p = presence(o);
  return (
    <>
      <span className={`dot ${p.state}`} aria-hidden="true" /> {p.state === "never" ? "not seen yet" : p.state}
      {p.state !== "never" && p.since !== undefined && <> <Time at={p.since} lasts /></>}
      {p.state === "unknown" && <>: {p.reason}</>}
      {p.state === "offline" && ". If it runs, it decides by what it had then."}
    </>
  );
}

function Layout({ at, layout }: { at: At; layout: Answer<Schema["Layout"]> }) {
  const l = layout.data;
  return (
    <>
      <h2>Inbounds and outbounds</h2>
      <AsOf answer={layout} />
      {l !== undefined && (
        <>
          <p>{l.spiffeId === undefined ? "It has no SPIFFE ID." : <>Identity: <code>{l.spiffeId}</code>{l.identity !== undefined && <>, by <KRI kri={l.identity} text={shortKRI(l.identity)} /></>}. <Link to={href("calls", { mesh: at.mesh, caller: l.spiffeId })}>Whom may it call?</Link></>}</p>
          {(l.warnings ?? []).map((w, i) => <p key={i} className="warning">{w}</p>)}
          <Ports title="Inbounds" ports={l.inbounds} />
          <Ports title="Outbounds" ports={l.outbounds} />
          {l.listeners.length > 0 && <Ports title="Listeners of a gateway" ports={l.listeners} />}
          <LeftOut count={l.leftOut} />
        </>
      )}
    </>
  );
}

function Ports({ title, ports }: { title: string; ports: Schema["Port"][] }) {
  if (ports.length === 0) return <p>{title}: none.</p>;
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>{title}</caption>
        <thead><tr><th scope="col">To</th><th scope="col">Port</th><th scope="col">Protocol</th><th scope="col">In Envoy</th></tr></thead>
        <tbody>
          {ports.slice(0, 200).map((p, i) => (
            <tr key={i}><th scope="row"><KRI kri={p.kri} text={shortKRI(p.kri)} /></th><td>{p.port}</td><td>{p.protocol}</td><td><code>{p.proxyResourceName}</code></td></tr>
          ))}
        </tbody>
      </table>
      {ports.length > 200 && <p className="note">{ports.length - 200} more: <code>causewayctl inspect dataplane</code>.</p>}
    </div>
  );
}

function Rules({ rules }: { rules: Answer<Schema["ProxyRules"]> }) {
  const r = rules.data;
  return (
    <>
      <h2>Effective rules</h2>
      <AsOf answer={rules} />
      {r !== undefined && r.rules.length === 0 && r.leftOut === undefined && <p>No policy concerns it.</p>}
      {(r?.rules ?? []).map((type) => <TypeRules key={type.type} type={type} />)}
      <LeftOut count={r?.leftOut} />
    </>
  );
}

function TypeRules({ type }: { type: Schema["TypeRules"] }) {
  return (
    <details>
      <summary>{type.type}</summary>
      {type.warnings.map((w, i) => <p key={i} className="warning">{w}</p>)}
      {type.proxyRule !== undefined && <Rule title="The proxy" conf={type.proxyRule.conf} origin={type.proxyRule.origin ?? []} />}
      {type.inboundRules.flatMap((inbound, n) =>
        inbound.rules.map((rule) => <Rule key={`${n} ${rule.position}`} title={inboundTitle(inbound.inbound, rule)} conf={rule.conf[0]} origin={rule.origin ?? []} />),
      )}
      {type.toResourceRules.map((rule, i) => <Rule key={`to ${i}`} title={toTitle(rule)} conf={rule.conf} origin={rule.origin} also={rule.also} total={rule.alsoTotal} />)}
    </details>
  );
}

function toTitle(rule: Schema["ResourceRule"]): string {
  const first = rule.kri === undefined ? "all other destinations" : shortKRI(rule.kri);
  return rule.alsoTotal === undefined ? `To ${first}` : `To ${first} and ${rule.alsoTotal} more`;
}

function inboundTitle(inbound: Schema["InboundMeta"], rule: Schema["InboundRule"]): string {
  const match = rule.match === undefined ? "" : `, for ${JSON.stringify(rule.match)}`;
  return `Inbound ${inbound.name ?? inbound.port}, rule ${rule.position}${rule.closed === true ? ", denies everybody" : ""}${match}`;
}

interface RuleProps {
  title: string;
  conf: unknown;
  origin: Schema["Origin"][];
  /** also are other destinations with the same conf, of total. */
  also?: string[];
  total?: number;
}

function Rule({ title, conf, origin, also = [], total = 0 }: RuleProps) {
  return (
    <div>
      <h3>{title}</h3>
      {origin.length > 0 && <p>By {origin.map((o, i) => <span key={i}>{i > 0 && ", then "}<KRI kri={o.kri} text={shortKRI(o.kri)} /></span>)}.</p>}
      <pre tabIndex={0}>{JSON.stringify(conf, null, 2)}</pre>
      {total > 0 && <p className="note">The same to {also.map((kri) => shortKRI(kri)).join(", ")}{total > also.length && ` and ${total - also.length} more`}.</p>}
    </div>
  );
}
