import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { answered, api, Refusal, type Schema } from "../api";
import { useAgain, useAnswer, useLate } from "../ask";
import { doubts, over } from "../sync";
import { asTold, problemsOf, unseen } from "../text";
import { href } from "../view";
import { useProblems } from "../watch";
import { AsOf } from "./AsOf";
import { Link } from "./Link";
import { Linked } from "./Linked";
import { store } from "./Replicas";
import { Time } from "./Time";

/** Finding is what needs attention, with what to do. */
interface Finding {
  about: ReactNode;
  what: ReactNode;
  todo: ReactNode;
}

// The zones that are asked about at once, each for its sync. A person may ask for the others.
const most = 20;
const shown = 5;

/** Findings are what doctor finds by the HTTP API, but for who is connected, which stands below, and what has no effect on the proxies of a zone. */
export function Findings({ global, turn, proxies }: { global: boolean; turn: number; proxies?: Schema["Overviews"] | undefined }) {
  const found = useAnswer(`findings ${global}`, (signal) => (global ? ofGlobal(signal) : ofZone(signal)));
  useAgain(found, turn);
  useProblems(global, found, found.again);
  const late = useLate();
  const others = useOthers(found.data?.zones ?? 0);
  // A zone's findings are those of its proxies, too.
  const d = global || proxies !== undefined || late ? found.data : undefined;
  const ofProxies = useMemo(() => (proxies?.items ?? []).flatMap(ofProxy), [proxies]);
  const all = [...(d?.all ?? []), ...others.found.all, ...(d === undefined ? [] : ofProxies)];
  const unchecked = [...(d?.unchecked ?? []), ...others.found.unchecked, ...(global ? [] : unseen(proxies, false))];
  const rest = (d?.zones ?? 0) - others.asked;
  return (
    <section className="attention" aria-labelledby="findings">
      <h2 id="findings">Needs attention</h2>
      {(d !== undefined || found.refusal !== undefined) && <AsOf answer={found} />}
      {d === undefined && found.refusal === undefined && <p role="status" className={late ? undefined : "pending"}>Asking the server…</p>}
      {d !== undefined && all.length === 0 && <p>No problems found{(unchecked.length > 0 || rest > 0) && " in what was checked"}.</p>}
      <List all={all} />
      {rest > 0 && (
        <p className="row">
          <span role="status">The sync of {others.asked} of {d?.zones} zones was checked.</span>
          <Button onPress={others.ask} isDisabled={others.asking}>{others.asking ? "Checking…" : `Check the other ${rest}`}</Button>
        </p>
      )}
      {others.at !== undefined && <p className="note">{others.asked - most} other zones were checked <Time at={others.at} />; they are not rechecked automatically.</p>}
      <p className="note">{unchecked.map((u) => `${u} `)}<code>causewayctl doctor</code> and <code>causewayctl lint</code> check more.</p>
    </section>
  );
}

function List({ all }: { all: Finding[] }) {
  const [whole, setWhole] = useState(false);
  if (all.length === 0) return null;
  return (
    <>
      <ul className="findings">
        {(whole ? all : all.slice(0, shown)).map((f, i) => <li key={i}><b>{f.about}</b>: {f.what} <span className="todo">{f.todo}</span></li>)}
      </ul>
      {!whole && all.length > shown && <p><Button onPress={() => setWhole(true)}>Show {all.length - shown} more</Button></p>}
    </>
  );
}

/** useOthers asks about the zones beyond the first, a few at a time, once a person wants it. asked counts those that were, and at is since when. */
function useOthers(zones: number) {
  const [state, setState] = useState<{ found: Found; asked: number; asking: boolean; at?: Date }>({ found: nothing(), asked: most, asking: false });
  const control = useRef<AbortController>(undefined);
  useEffect(() => () => control.current?.abort(), []);
  const ask = async () => {
    const { signal } = (control.current = new AbortController());
    const [found, begun] = [nothing(), new Date()];
    setState({ found, asked: most, asking: true });
    for (let at = most; at < zones && !signal.aborted; at += most) {
      await zonesFrom(at, found, signal).catch((failure: unknown) => {
        if (!signal.aborted) found.unchecked.push(`Zones from ${at + 1}: ${failure instanceof Error ? failure.message : String(failure)}.`);
      });
      if (!signal.aborted) setState({ found: { ...found }, asked: Math.min(zones, at + most), asking: at + most < zones, at: begun });
    }
  };
  return { ...state, ask: () => void ask() };
}

interface Found {
  all: Finding[];
  /** unchecked says what was not asked, or may not be read. */
  unchecked: string[];
  /** zones is how many zones there are. */
  zones: number;
  /** revision is that of the proxies with problems. */
  revision?: string;
}

function nothing(): Found {
  return { all: [], unchecked: [], zones: 0 };
}

/** tried returns an answer; a refusal becomes a sentence about what is not known. */
async function tried<T>(asked: Promise<T>, what: string, into: Found): Promise<T | undefined> {
  try {
    return await asked;
  } catch (failure) {
    if (!(failure instanceof Refusal)) throw failure;
    into.unchecked.push(`${what}: ${failure.message}.`);
    return undefined;
  }
}

async function ofGlobal(signal: AbortSignal): Promise<Found> {
  const found = nothing();
  const [replicas, proxies] = await Promise.all([
    tried(answered(api.GET("/_replicas", { signal })), "Replicas", found),
    tried(answered(api.GET("/dataplanes/_overview", { params: { query: { problems: "true", brief: "true", size: most, watch: "0" } }, signal })), "Proxies", found),
    zonesFrom(0, found, signal),
  ]);
  found.revision = proxies?.revision;
  found.all.push(...(proxies?.items ?? []).flatMap(ofProxy));
  if (proxies !== undefined) found.unchecked.push(...unseen(proxies, true));
  if (proxies !== undefined && proxies.total > proxies.items.length) found.all.push({ about: "Proxies", what: `${proxies.total - proxies.items.length} more have a problem.`, todo: "Look at the page of each zone." });
  for (const r of replicas?.items ?? []) {
    if (r.unheard !== undefined) found.all.push({ about: `Replica ${r.instance}`, what: `nothing was heard of it since ${r.unheard}${r.whyUnheard === undefined ? "" : `: ${r.whyUnheard}`}.`, todo: "Look at its log." });
    if (r.store.reachable === false || r.store.writable === false) found.all.push({ about: `Replica ${r.instance}`, what: `its store: ${store(r)}.`, todo: "Free its disk, or start etcd again." });
  }
  return found;
}

/** zonesFrom adds what is found of the sync of the zones from a place of their list on, most at most. */
async function zonesFrom(offset: number, found: Found, signal: AbortSignal): Promise<void> {
  const zones = await tried(answered(api.GET("/{plural}", { params: { path: { plural: "zones" }, query: { size: most, offset } }, signal })), "Zones", found);
  const names = ((zones?.items ?? []) as { name: string }[]).map((z) => z.name);
  const syncs = await Promise.all(names.map((name) => tried(answered(api.GET("/zones/{name}/_sync", { params: { path: { name } }, signal })), `Zone ${name}`, found)));
  syncs.forEach((s, i) => s !== undefined && found.all.push(...ofSync(s, names[i] ?? "", true)));
  found.zones = zones?.total ?? 0;
}

async function ofZone(signal: AbortSignal): Promise<Found> {
  const found = nothing();
  try {
    const s = await answered(api.GET("/_sync", { signal }));
    found.all.push(...ofSync(s, "", false));
  } catch (failure) {
    if (!(failure instanceof Refusal)) throw failure;
    if (failure.status !== 404) found.unchecked.push(`Sync: ${failure.message}.`); // a zone without a global has none
  }
  return found;
}

/** ofProxy is what has no effect on a proxy, or is refused by its Envoy. */
function ofProxy(o: Schema["Overview"]): Finding[] {
  const problems = problemsOf(o);
  const first = problems[0];
  if (first === undefined) return [];
  const more = problems.length > 1 && ` And ${problems.length - 1} more.`;
  return [{ about: <Link to={href("proxy", { kri: o.kri })}>Proxy {o.name}</Link>, what: <><Linked text={first[1]} />.{more}{asTold(o)}</>, todo: "Mend the policy that it names, or the proxy." }];
}

/** ofSync is what is held, refused, or not known of one zone. */
function ofSync(s: Schema["SyncStatus"], name: string, global: boolean): Finding[] {
  const about = <Link to={href("zone", global ? { name } : {})}>{global ? `Zone ${name}` : "Sync with the global"}</Link>;
  const all: Finding[] = [];
  for (const t of s.types) {
    if (t.held !== undefined) all.push({ about, what: `${t.held.count} deletions of ${t.type} are held.`, todo: "Look at their names, then accept them, or bring back what is missing." });
    if (t.refused.length > 0) all.push({ about, what: `${t.refused.length} ${t.type} refused: ${t.refused[0]?.reason ?? ""}`, todo: "Mend them where they were written." });
  }
  for (const text of doubts(s, global)) all.push({ about, what: text, todo: "" });
  for (const o of s.over ?? []) all.push({ about, what: `${over(o)}.`, todo: "Raise the limit, or keep less there." });
  if (!global && s.connected !== true && s.types.length > 0) all.push({ about, what: "the global is away: what is here may not be the newest.", todo: "Look at the network, and at the global's log." });
  return all;
}
