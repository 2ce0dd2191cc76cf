import { useEffect, useRef } from "react";
import { answered, api, type Schema } from "../api";
import { useAnswer } from "../ask";
import { AsOf } from "./AsOf";
import { LeftOut } from "./LeftOut";
import { Time } from "./Time";
import { date } from "../text";
import { useFollowed } from "../watch";

// The conditions of a resource are up to a second older than its rollout.
const conditionsAge = 1500;

interface Props {
  type: string;
  mesh: string;
  kri: string;
  change: string;
  /** judged is called when somebody refuses the policy for another reason than before, or no longer does. */
  judged: () => void;
}

/** Rollout says which zones have a policy and which proxies enforce it, and of which neither is known. */
export function Rollout({ type, mesh, kri, change, judged }: Props) {
  const rollout = useAnswer(`rollout ${kri}`, (signal) =>
    answered(api.GET("/_rollout/{type}/{mesh}/{name}", { params: { path: { type, mesh, name: kri } }, signal })),
  change);
  const r = rollout.data;
  useFollowed(change, date(change), r !== undefined && r.zones.acknowledged === r.zones.total && r.proxies.enforced === r.proxies.total, rollout.again);
  const judgement = r === undefined ? undefined : JSON.stringify([r.zones.refused, r.notEnforced ?? []]);
  const before = useRef(judgement);
  useEffect(() => {
    const old = before.current;
    before.current = judgement ?? old;
    if (judgement === undefined || old === undefined || judgement === old) return;
    const timer = setTimeout(judged, conditionsAge);
    return () => clearTimeout(timer);
  }, [judgement, judged]);
  return (
    <>
      <h2>Rollout</h2>
      <AsOf answer={rollout} />
      {rollout.data !== undefined && <State rollout={rollout.data} />}
    </>
  );
}

function State({ rollout: r }: { rollout: Schema["Rollout"] }) {
  const unknown = r.proxies.unknown ?? [];
  return (
    <>
      {r.source !== undefined && <p className="warning">{source(r.source)}</p>}
      <p>{r.stored ? `Stored at revision ${r.revision}.` : "Not stored here."}</p>
      {r.zone === undefined && r.zones.total > 0 && (
        <p><progress max={r.zones.total} value={r.zones.acknowledged} aria-label="zones" /> acknowledged by {r.zones.acknowledged} of {r.zones.total} zones</p>
      )}
      {r.proxies.total > 0 ? (
        <p><progress max={r.proxies.total} value={r.proxies.enforced} aria-label="proxies" /> enforced by {r.proxies.enforced} of {r.proxies.total} proxies{unknown.length > 0 && `, unknown of ${unknown.length}`}</p>
      ) : (
        <p>It concerns no proxy that {r.proxies.leftOut === undefined ? "is known here" : "you may read"}.</p>
      )}
      <Names title="Refused by" items={r.zones.refused.map((z) => ({ name: z.zone, why: z.reason }))} />
      <Names title="Zones that are away" items={[...r.zones.offline, ...(r.zones.away ?? [])].map((z) => ({ name: z.zone, why: away(z), since: date(z.since) }))} />
      <Names title="Zones of which it is unknown" items={(r.zones.unknown ?? []).map((z) => ({ name: z.zone, why: z.reason }))} />
      <Names title="Not acknowledged yet" items={r.zones.pending.map((name) => ({ name }))} />
      <Names title="Disabled" items={(r.zones.disabled ?? []).map((name) => ({ name }))} />
      <Names title="Proxies that are behind" items={r.proxies.behind.map((p) => ({ name: proxy(p), why: p.reason }))} />
      <Names title="Proxies of which it is unknown" items={unknown.map((p) => ({ name: proxy(p), why: p.reason, since: date(p.since) }))} />
      <Names title="Not enforced by anybody" items={(r.notEnforced ?? []).map((name) => ({ name }))} />
      <LeftOut count={r.proxies.leftOut} />
    </>
  );
}

type Away = Schema["Rollout"]["zones"]["offline"][number];

/** away says what is known of a server that is away: the time beside it is when the asked server started, or lost sight. */
function away(z: Away): string | undefined {
  if (z.reason !== undefined) return z.reason;
  if (z.notSeen === true) return "not seen since the server started";
  return z.unheard === true ? "whether it is connected is unknown" : undefined;
}

/** source says, on a zone, why its global may have a newer one. */
function source(z: Away): string {
  if (z.removed === true) return `The global has it no more${z.since === undefined ? "" : `, as is known since ${z.since}`}: the removal is held here.`;
  const why = z.comparing === true ? "what the global has was not compared yet"
    : z.waiting === true ? "changes that it sent wait, as the store here cannot write"
    : (away(z) ?? "the global is away");
  return `Whether the global has a newer one, or this one still, is unknown${z.since === undefined ? "" : ` since ${z.since}`}: ${why}.`;
}

function proxy(p: { zone?: string; namespace?: string; name: string }): string {
  return [p.zone, p.namespace, p.name].filter((s) => s !== undefined && s !== "").join("/");
}

function Names({ title, items }: { title: string; items: { name: string; why?: string; since?: Date }[] }) {
  if (items.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {items.slice(0, 100).map((i, k) => (
          <li key={k}>{i.name}{i.since !== undefined && <> <Time at={i.since} lasts /></>}{i.why !== undefined && `: ${i.why}`}</li>
        ))}
      </ul>
      {items.length > 100 && <p className="note">{items.length - 100} more.</p>}
    </>
  );
}
