import { useEffect, useState } from "react";
import { Button } from "react-aria-components";
import { answered, api, Refusal, type Schema } from "../api";
import { useAgain, useAnswer, useLate, useQuestion } from "../ask";
import { resourceTypes } from "../questions";
import { date } from "../text";
import { href } from "../view";
import { seen, sleep, useFollowed, whileSeen } from "../watch";
import { Link } from "./Link";
import { Time } from "./Time";

const asked = 50;
const shown = 3;
const lately = 15 * 60_000;
const wait = "25s";

/** Change is one resource that somebody has written. */
interface Change {
  what: Schema["AuditChange"];
  by: string;
  at: Date | undefined;
}

/** Recent is what was changed on this server a short time ago, and how far each change has come. A new turn asks that again. */
export function Recent({ turn }: { turn: number }) {
  const { entries, refusal } = useLog();
  const late = useLate();
  const [whole, setWhole] = useState(false);
  const types = useQuestion(resourceTypes);
  const policies = new Set((types.data?.resources ?? []).filter((t) => t.policy !== undefined).map((t) => t.name));
  const changes = latest(entries ?? []).filter((c) => policies.has(c.what.type));
  return (
    <section aria-labelledby="recent">
      <h2 id="recent">Rolling out</h2>
      {refusal !== undefined && <p className="note">{refusal.status === 403 ? "What was changed is in the audit log, which you may not read." : `What was changed is unknown: ${refusal.message}`}</p>}
      {refusal === undefined && (entries === undefined ? <p role="status" className={late ? undefined : "pending"}>Asking the server…</p> : changes.length === 0 && <p>No policy was changed on this server in the last 15 minutes.</p>)}
      {changes.length > 0 && <ul className="recent">{(whole ? changes : changes.slice(0, shown)).map((c) => <Row key={keyOf(c.what)} change={c} turn={turn} />)}</ul>}
      {!whole && changes.length > shown && <p><Button onPress={() => setWhole(true)}>Show {changes.length - shown} more</Button></p>}
    </section>
  );
}

function keyOf(c: Schema["AuditChange"]): string {
  return [c.type, c.mesh, c.namespace, c.name].join("/");
}

/** namesOf is an entry without what it says of fields, which nothing here shows: an open page keeps no more than it shows. */
function namesOf(e: Schema["AuditEntry"]): Schema["AuditEntry"] {
  return { ...e, changes: (e.changes ?? []).map(({ diff: _diff, ...what }) => what) };
}

/** latest returns the newest change of each resource, the newest first. */
function latest(entries: Schema["AuditEntry"][]): Change[] {
  const all = new Map<string, Change>();
  for (const e of [...entries].reverse()) {
    const at = date(e.time);
    if (e.outcome !== "done" || at === undefined || Date.now() - at.getTime() > lately) continue;
    for (const what of e.changes ?? []) {
      if (!all.has(keyOf(what))) all.set(keyOf(what), { what, by: e.user ?? "an unknown user", at });
    }
  }
  return [...all.values()];
}

function Row({ change: { what, by, at }, turn }: { change: Change; turn: number }) {
  const gone = what.result === "deleted";
  return (
    <li>
      <p><b>{what.type}</b> {what.name}{what.namespace !== undefined && ` in ${what.namespace}`}: {what.result} by {by} <Time at={at} /></p>
      {!gone && <Progress of={what} at={at} turn={turn} />}
    </li>
  );
}

function Progress({ of, at, turn }: { of: Schema["AuditChange"]; at: Date | undefined; turn: number }) {
  const path = { type: of.type, mesh: of.mesh ?? "default", name: of.name };
  const change = at?.toISOString() ?? "";
  const rollout = useAnswer(`progress ${keyOf(of)}`, (signal) =>
    answered(api.GET("/_rollout/{type}/{mesh}/{name}", { params: { path, query: of.namespace === undefined ? {} : { namespace: of.namespace } }, signal })), change);
  const r = rollout.data;
  useAgain(rollout, turn);
  const complete = r !== undefined && r.zones.acknowledged === r.zones.total && r.proxies.enforced === r.proxies.total;
  useFollowed(change, at, complete, rollout.again);
  if (r === undefined) return <p className="note">{rollout.refusal === undefined ? "Asking how far it has come…" : `How far it has come is unknown: ${rollout.refusal.message}`}</p>;
  const name = of.name;
  return (
    <p className="row">
      {complete && <span>Complete:</span>}
      {r.zone === undefined && r.zones.total > 0 && <span>{!complete && <progress max={r.zones.total} value={r.zones.acknowledged} aria-label={`zones that have ${name}`} />} {r.zones.acknowledged} of {r.zones.total} zones</span>}
      {r.proxies.total > 0 ? <span>{!complete && <progress max={r.proxies.total} value={r.proxies.enforced} aria-label={`proxies that enforce ${name}`} />} {r.proxies.enforced} of {r.proxies.total} proxies</span> : <span>no proxy that {r.proxies.leftOut === undefined ? "is known here" : "you may read"}</span>}
      {r.zones.refused.length > 0 && <span className="bad">refused by {r.zones.refused.length} {r.zones.refused.length === 1 ? "zone" : "zones"}</span>}
      {r.kri !== undefined && <Link to={href("resource", { kri: r.kri })}>Details</Link>}
    </p>
  );
}

interface Log {
  entries?: Schema["AuditEntry"][];
  refusal?: Refusal;
}

/** useLog reads the end of the audit log, and waits for what is added. A page that nobody looks at waits for nothing. */
function useLog(): Log {
  const [log, setLog] = useState<Log>({});
  useEffect(() => {
    const control = new AbortController();
    const { signal } = control;
    const read = async (query: { last?: string; after?: string; wait?: string }, until: AbortSignal) => answered(api.GET("/_audit", { params: { query }, signal: until }));
    const follow = async () => {
      let after: number | undefined;
      let pause = 1000;
      while (!signal.aborted) {
        await seen(signal);
        const shown = whileSeen(signal);
        try {
          const page = await read(after === undefined ? { last: String(asked) } : { after: String(after), wait }, shown.signal);
          const known = after !== undefined;
          setLog((old) => ({ entries: [...(known ? (old.entries ?? []) : []), ...page.entries.map(namesOf)].slice(-asked) }));
          if (known) await sleep(500, signal); // a burst of changes is one answer, and a server that ends answers at once
          after = page.next;
          pause = 1000;
        } catch (failure) {
          if (signal.aborted) return;
          if (shown.signal.aborted) continue;
          const refusal = failure instanceof Refusal ? failure : new Refusal(0, String(failure));
          // What a person may read no longer goes.
          setLog((old) => (refusal.status === 401 || refusal.status === 403 ? { refusal } : { ...old, refusal }));
          if (refusal.status >= 400 && refusal.status < 500 && refusal.status !== 429) return;
          after = undefined;
          await sleep(pause, signal);
          pause = Math.min(30_000, 2 * pause);
        } finally {
          shown.end();
        }
      }
    };
    void follow();
    return () => control.abort();
  }, []);
  return log;
}
