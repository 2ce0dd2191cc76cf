import { lazy, Suspense, useMemo, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { answered, api, type Schema } from "../api";
import { useAnswer } from "../ask";
import { cellText, countOf, kinds, placed, sought, type Kind } from "../calls";
import type { Server } from "../server";
import { AsOf } from "../parts/AsOf";
import { LeftOut } from "../parts/LeftOut";
import { KRI, Link } from "../parts/Link";
import { Matrix } from "../parts/Matrix";
import { Time } from "../parts/Time";
import { date } from "../text";
import { go, href } from "../view";
import { useChanges, useFollowed } from "../watch";

// The graph's library comes when a graph is asked for.
const Graph = lazy(() => import("../parts/Graph"));

const fields = [
  { key: "service", label: "Service" },
  { key: "caller", label: "Caller (part of the SPIFFE ID)" },
  { key: "zone", label: "Zone" },
  { key: "namespace", label: "Namespace" },
  { key: "method", label: "Method" },
  { key: "path", label: "Path" },
  { key: "mesh", label: "Mesh" },
] as const;

type Asked = Partial<Record<(typeof fields)[number]["key"] | "view" | "only" | "offset" | "callersOffset" | "to" | "from", string>>;

const pageSize = 500;

// When the matrix is asked for again after a change that not all zones have taken, in ms.
const settled = [2000, 10_000, 30_000];
// So many reasons are shown why something is unknown.
const reasons = 3;

/** Calls is who may call whom: services against callers, with what was seen over what is allowed. The URL holds the question. */
export function Calls({ query, server }: { query: URLSearchParams; server: Server }) {
  const asked: Asked = Object.fromEntries(query);
  return (
    <section>
      <h1>Who may call whom</h1>
      <Form key={fields.map((f) => asked[f.key]).join(" ")} asked={asked} />
      <Answered asked={asked} global={server.mode === "global"} />
    </section>
  );
}

function Form({ asked }: { asked: Asked }) {
  const [typed, setTyped] = useState<Asked>({ ...asked, mesh: asked.mesh ?? "default" });
  return (
    <form
      className="question"
      onSubmit={(e) => {
        e.preventDefault();
        go(href("calls", { ...typed, offset: undefined, callersOffset: undefined, to: undefined, from: undefined }));
      }}
    >
      {fields.map((f) => (
        <TextField key={f.key} value={typed[f.key] ?? ""} onChange={(v) => setTyped({ ...typed, [f.key]: v })}>
          <Label>{f.label}</Label>
          <Input autoComplete="off" spellCheck="false" />
        </TextField>
      ))}
      <Button type="submit">Show</Button>
    </form>
  );
}

function Answered({ asked, global }: { asked: Asked; global: boolean }) {
  const question = {
    ...Object.fromEntries(fields.filter((f) => f.key !== "mesh" && (asked[f.key] ?? "") !== "").map((f) => [f.key, asked[f.key]])),
    ...(global && (asked.zone ?? "") !== "" ? { reported: true } : {}), // the global asks that zone what was seen
    size: pageSize,
    callers: pageSize,
    offset: Number(asked.offset ?? 0) || 0,
    callersOffset: Number(asked.callersOffset ?? 0) || 0,
  };
  const mesh = asked.mesh ?? "default";
  const answer = useAnswer(`calls ${mesh} ${JSON.stringify(question)}`, (signal) =>
    answered(api.GET("/meshes/{mesh}/_access", { params: { path: { mesh }, query: question }, signal })),
  );
  const live = useChanges("meshtrafficpermissions", answer.again);
  const a = answer.data;
  // What is unknown just after a change is known a moment later, and no change tells of it.
  useFollowed(`${a?.revision}`, answer.at, a === undefined || a.unknown === undefined, answer.again, settled);
  return (
    <>
      <AsOf answer={answer} live={live} />
      {a !== undefined && (
        <>
          <Doubts a={a} />
          <Choices asked={asked} a={a} />
          {a.services.length === 0 || a.callers.length === 0 ? (
            <p>No service and caller that you may read matches.</p>
          ) : asked.view === "graph" ? (
            <Suspense fallback={<p role="status" className="pending">Loading the graph…</p>}>
              <Graph a={a} only={onlyOf(asked)} />
            </Suspense>
          ) : (
            <Matrix a={a} only={onlyOf(asked)} {...placed(a, asked)} />
          )}
          {asked.view !== "graph" && <Legend seen={a.seen.unknown === undefined} />}
          <Chosen a={a} asked={asked} />
          <Pages asked={asked} a={a} />
          {a.elsewhere !== undefined && <p className="note">{a.elsewhere} services of other zones: those zones and the global know who may call them.</p>}
          <LeftOut count={a.leftOut} />
        </>
      )}
    </>
  );
}

function onlyOf(asked: Asked): Kind {
  return kinds.find((k) => k.kind === asked.only)?.kind ?? "all";
}

/** Doubts says what is not known, before anything is read from the colours. */
function Doubts({ a }: { a: Schema["Access"] }) {
  const unknown = a.unknown ?? [];
  return (
    <>
      {unknown.slice(0, reasons).map((u, i) => <p key={i} className="warning">Unknown <Time at={date(u.since)} lasts />: {u.reason}. Below is what is stored here.</p>)}
      {unknown.length > reasons && <p className="warning"><code>causewayctl report access</code> names {unknown.length - reasons} more reasons.</p>}
      {a.seen.unknown !== undefined ? (
        <p className="note">Who called is unknown: {a.seen.unknown}.</p>
      ) : (
        <p className="note">
          Calls have been counted <Time at={date(a.seen.since)} lasts />
          {a.seen.dropped !== undefined && `; ${a.seen.dropped} are not told apart, for lack of room: unused may have been used`}.
        </p>
      )}
    </>
  );
}

function Choices({ asked, a }: { asked: Asked; a: Schema["Access"] }) {
  const counts = useMemo(() => new Map(kinds.map((k) => [k.kind, countOf(a, k.kind)])), [a]);
  return (
    <div className="row" role="group" aria-label="What is shown">
      <Link to={href("calls", { ...asked, view: undefined })} current={asked.view !== "graph"}>Matrix</Link>
      <Link to={href("calls", { ...asked, view: "graph" })} current={asked.view === "graph"}>Graph</Link>
      <span aria-hidden="true">·</span>
      {kinds.filter((k) => !k.seen || a.seen.unknown === undefined).map((k) => (
        <Link key={k.kind} to={href("calls", { ...asked, only: k.kind === "all" ? undefined : k.kind })} current={onlyOf(asked) === k.kind}>
          {k.title} ({counts.get(k.kind)})
        </Link>
      ))}
    </div>
  );
}

/** Legend explains the signs of the matrix. */
function Legend({ seen }: { seen: boolean }) {
  return (
    <ul className="legend" aria-label="Legend">
      <li><span className="cell allow">✓</span>allowed</li>
      <li><span className="cell depends">◐</span>depends on the request</li>
      <li><span className="cell deny">✕</span>denied by a policy{seen && ", or denied and tried"}</li>
      <li><span className="cell" />blank: denied by default</li>
      <li><span className="cell allow shadow">✓</span>differs in the shadow</li>
      {seen && <li><span className="cell allow seen">✓</span>underlined: seen</li>}
    </ul>
  );
}

/** Chosen tells all of one cell, and leads to explain. */
function Chosen({ a, asked }: { a: Schema["Access"]; asked: Asked }) {
  const { row, column } = placed(a, asked);
  const [service, caller] = [a.services[row], a.callers[column]];
  if (asked.to === undefined || asked.from === undefined) return <p className="note">Select a cell to see which policy decides.</p>;
  if (service === undefined || caller === undefined) return <Elsewhere a={a} asked={asked} />;
  const cell = service.cells.find((c) => c.caller === column);
  const decider = cell === undefined ? "default" : (a.policies[cell.policy] ?? "");
  return (
    <div className="chosen" aria-live="polite">
      <h2>{service.name} from {caller.name ?? caller.spiffeId}</h2>
      <p>{cellText(service, cell, a.seen.unknown === undefined)}. Decided by <KRI kri={decider} />.</p>
      {cell?.shadow !== undefined && cell.shadowPolicy !== undefined && <p>In the shadow: {cell.shadow}, by <KRI kri={a.policies[cell.shadowPolicy] ?? ""} />.</p>}
      {(service.behind ?? 0) > 0 && (
        <p className="warning">{service.behind} of its {service.proxies} proxies have not acknowledged all that they should have: until they do, they may decide by what they had before.</p>
      )}
      {service.connected !== undefined && service.connected < service.proxies && (
        <p className="warning">{service.proxies - service.connected} of its {service.proxies} proxies are not connected: if they run, they decide by what they had then.</p>
      )}
      {cell?.lastSeen !== undefined && <p>Last seen <Time at={date(cell.lastSeen)} />.</p>}
      <p><Link to={href("why", { mesh: asked.mesh, from: caller.spiffeId, to: service.kri, method: asked.method, path: asked.path })}>Why?</Link></p>
    </div>
  );
}

/** Elsewhere says that what the URL names is not in the answer, and where it may be. */
function Elsewhere({ a, asked }: { a: Schema["Access"]; asked: Asked }) {
  const { missing, look } = sought(a, asked);
  const what = `${missing.join(", and ")} ${missing.length > 1 ? "are" : "is"}`;
  if (look === undefined) return <p className="note">{what} not here any more, or you may not read {missing.length > 1 ? "them" : "it"}.</p>;
  const { mesh, view, only, to, from } = asked;
  return <p className="note">{what} not among the services and callers above. <Link to={href("calls", { mesh, view, only, to, from, ...look })}>Look for {missing.length > 1 ? "them" : "it"}</Link>.</p>;
}

function Pages({ asked, a }: { asked: Asked; a: Schema["Access"] }) {
  const at = Number(asked.offset ?? 0) || 0;
  const column = Number(asked.callersOffset ?? 0) || 0;
  const to = (change: Asked) => href("calls", { ...asked, to: undefined, from: undefined, ...change });
  return (
    <p className="row">
      <span>Services {at + 1} to {at + a.services.length} of {a.total}, callers {column + 1} to {column + a.callers.length} of {a.totalCallers}.</span>
      {at > 0 && <Link to={to({ offset: `${Math.max(0, at - pageSize)}` })}>Services before</Link>}
      {at + a.services.length < a.total && <Link to={to({ offset: `${at + pageSize}` })}>More services</Link>}
      {column > 0 && <Link to={to({ callersOffset: `${Math.max(0, column - pageSize)}` })}>Callers before</Link>}
      {column + a.callers.length < a.totalCallers && <Link to={to({ callersOffset: `${column + pageSize}` })}>More callers</Link>}
    </p>
  );
}
