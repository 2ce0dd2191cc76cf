import { useEffect, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { answered, api, type Schema } from "../api";
import type { Server } from "../server";
import { useAnswer, type Answer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { LeftOut } from "../parts/LeftOut";
import { KRI, Link } from "../parts/Link";
import { Time } from "../parts/Time";
import { ZoneChoice } from "../parts/ZoneChoice";
import { propose } from "../proposal";
import { date, shortKRI } from "../text";
import { go, href } from "../view";

const fields = [
  { key: "from", label: "Client (SPIFFE ID)", wide: true },
  { key: "to", label: "Service or Dataplane (name or KRI)", wide: true },
  { key: "namespace", label: "Its namespace" },
  { key: "inbound", label: "Inbound" },
  { key: "method", label: "Method" },
  { key: "path", label: "Path" },
  { key: "mesh", label: "Mesh" },
] as const;

type Question = Partial<Record<(typeof fields)[number]["key"], string>>;

/** Why answers who decides about a request, and what would change that. The question is in the URL. */
export function Why({ query, server }: { query: URLSearchParams; server: Server }) {
  const asked: Question = Object.fromEntries(fields.map((f) => [f.key, query.get(f.key) ?? ""]));
  const zone = server.mode === "zone" ? undefined : (query.get("zone") ?? "");
  const denied = useDenied(zone);
  return (
    <section>
      <h1>Why 403?</h1>
      <Form key={JSON.stringify(asked)} asked={asked} zone={zone} denied={denied.data?.items ?? []} />
      {(asked.from ?? "") !== "" && (asked.to ?? "") !== "" && <Verdict asked={asked} zone={server.mode === "zone"} />}
      <h2>Recent denials</h2>
      {zone !== undefined && <ZoneChoice zone={zone} onChange={(name) => go(href("why", { ...asked, zone: name }))} />}
      {zone === "" ? <p className="note">Each zone keeps what its own proxies have denied: choose the zone that is asked.</p> : <Denials report={denied} zone={zone} />}
    </section>
  );
}

type Report = Schema["DenialReport"];

/** useDenied asks what was denied lately: by this zone's proxies or, on a global, by those of the zone that is named. */
function useDenied(zone: string | undefined): Answer<Report> {
  return useAnswer<Report>(`denied ${zone ?? ""}`, async (signal) => {
    if (zone === "") return { items: [], dropped: 0, since: "" };
    return answered(api.GET("/_report/denied", { params: { query: { size: 50, ...(zone === undefined ? {} : { zone }) } }, signal }));
  });
}

function Form({ asked, zone, denied }: { asked: Question; zone: string | undefined; denied: Report["items"] }) {
  const [typed, setTyped] = useState<Question>({ ...asked, mesh: asked.mesh || "default" });
  const known = useKnown(typed, denied);
  return (
    <form
      className="question"
      onSubmit={(e) => {
        e.preventDefault();
        go(href("why", { ...typed, zone }));
      }}
    >
      {fields.map((f) => (
        <TextField key={f.key} className={"wide" in f ? "wide" : undefined} value={typed[f.key] ?? ""} onChange={(v) => setTyped({ ...typed, [f.key]: v })}>
          <Label>{f.label}</Label>
          <Input autoComplete="off" spellCheck="false" list={known[f.key] === undefined ? undefined : `known-${f.key}`} />
          {known[f.key] !== undefined && <datalist id={`known-${f.key}`}>{(known[f.key] ?? []).map((k) => <option key={k} value={k} />)}</datalist>}
        </TextField>
      ))}
      <Button type="submit" className="primary" isDisabled={(typed.from ?? "") === "" || (typed.to ?? "") === ""}>Explain</Button>
    </form>
  );
}

const suggested = 20;

/** useKnown returns what may stand in a field: first what was denied lately, then what the server knows, like what is typed there. */
function useKnown(typed: Question, denied: Report["items"]): Partial<Record<keyof Question, string[]>> {
  const mesh = typed.mesh || "default";
  const caller = useLate(typed.from ?? "");
  const service = useLate(typed.to ?? "");
  const query = { size: suggested, callers: suggested, ...(caller === "" ? {} : { caller }), ...(service === "" || service.startsWith("kri_") ? {} : { service }) };
  const found = useAnswer(`known ${mesh} ${JSON.stringify(query)}`, (signal) => answered(api.GET("/meshes/{mesh}/_access", { params: { path: { mesh }, query }, signal })));
  const names = (found.data?.services ?? []).filter((s) => typed.namespace === "" || typed.namespace === undefined || s.namespace === typed.namespace);
  const recent = denied.map(about);
  const of = (key: keyof Question, more: string[]) => [...new Set([...recent.flatMap((r) => r[key] ?? []), ...more])];
  return {
    from: of("from", (found.data?.callers ?? []).map((c) => c.spiffeId)),
    to: of("to", names.map((s) => s.kri)),
    namespace: [...new Set((found.data?.services ?? []).flatMap((s) => s.namespace ?? []))],
    inbound: of("inbound", []),
    method: of("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    path: of("path", []),
  };
}

/** useLate returns a text once it has not changed for a moment: a person who types asks once. */
function useLate(text: string): string {
  const [late, setLate] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLate(text), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return late;
}

function Verdict({ asked, zone }: { asked: Question; zone: boolean }) {
  const { mesh, ...question } = asked;
  const given = Object.fromEntries(Object.entries(question).filter(([, v]) => v !== "")) as Schema["Query"];
  const answer = useAnswer(`explain ${JSON.stringify(asked)}`, (signal) =>
    answered(api.POST("/meshes/{mesh}/_explain", { params: { path: { mesh: mesh || "default" } }, body: given, signal })),
  );
  const a = answer.data;
  return (
    <div aria-live="polite">
      <h2>Verdict</h2>
      <AsOf answer={answer} />
      {a !== undefined && (
        <>
          <p className={`verdict ${a.verdict}`}><b>{a.verdict === "allow" ? "Allowed" : "Denied"}</b> by <KRI kri={a.policy} text={shortKRI(a.policy)} />: {a.reason}</p>
          {a.shadow !== undefined && <p>Shadow rules would {a.shadow.verdict}, by <KRI kri={a.shadow.policy} text={shortKRI(a.shadow.policy)} />.</p>}
          {(a.unguarded ?? []).map((u) => <p key={u} className="warning">The patch <KRI kri={u} /> may admit what is denied here.</p>)}
          {(a.warnings ?? []).map((w, i) => <p key={i} className="warning">{w}</p>)}
          {(a.would ?? []).length > 0 && (
            <>
              <h3>What would change it</h3>
              <ul>{(a.would ?? []).map((w, i) => <li key={i}>{w}</li>)}</ul>
            </>
          )}
          <Proposal answer={a} zone={zone} />
          <Rules matched={a.matched} />
          <Proxies proxies={a.proxies ?? []} />
          <LeftOut count={a.leftOut} />
        </>
      )}
    </div>
  );
}

/** Proposal is the smallest policy that would allow what is denied. */
function Proposal({ answer, zone }: { answer: Schema["Answer"]; zone: boolean }) {
  const { text, none } = propose(answer, zone);
  if (text === undefined) return none === undefined ? null : <p className="note">{none}</p>;
  return (
    <>
      <h3>The smallest policy that would allow it</h3>
      <p>It allows exactly that request, to nobody else. The client chose the request: look at it before you allow it.</p>
      <pre tabIndex={0}>{text}</pre>
      <p className="row">
        <Copy text={text} />
        <Link to={href("try", {}, { text })}>Try it, then apply it</Link>
      </p>
    </>
  );
}

function Copy({ text }: { text: string }) {
  const [told, setTold] = useState("");
  const copy = () => navigator.clipboard.writeText(text).then(() => setTold("Copied."), () => setTold("The browser does not let the page copy: select the text."));
  return <><Button onPress={() => void copy()}>Copy</Button><span role="status">{told}</span></>;
}

function Rules({ matched }: { matched: Schema["Answer"]["matched"] }) {
  if (matched.length === 0) return <p>No rule matches this request.</p>;
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>Rules that match, in the order in which they are asked</caption>
        <thead><tr><th scope="col">Action</th><th scope="col">Policy</th><th scope="col">Field</th><th scope="col">Decides</th></tr></thead>
        <tbody>
          {matched.map((m, i) => (
            <tr key={i}>
              <td>{m.action}</td>
              <th scope="row"><KRI kri={m.policy} text={shortKRI(m.policy)} /></th>
              <td><code>{m.field}</code></td>
              <td>{m.decides === true ? "yes" : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Proxies says what each proxy does, where the question is about several: the verdict is that of the first that denies. */
function Proxies({ proxies }: { proxies: NonNullable<Schema["Answer"]["proxies"]> }) {
  if (proxies.length === 0) return null;
  const denied = proxies.filter((p) => p.verdict !== "allow").length;
  return (
    <>
      <h3>At each proxy</h3>
      <p>{denied} of {proxies.length} proxies deny it{denied > 0 && denied < proxies.length && ": the verdict above is that of one that does"}.</p>
      <ul>
        {proxies.slice(0, 100).map((p) => (
          <li key={p.inbound}>{shortKRI(p.inbound)}: {p.verdict} by <KRI kri={p.policy} text={shortKRI(p.policy)} /></li>
        ))}
      </ul>
      {proxies.length > 100 && <p className="note">{proxies.length - 100} more.</p>}
    </>
  );
}

function Denials({ report, zone }: { report: Answer<Report>; zone: string | undefined }) {
  const d = report.data;
  return (
    <>
      <AsOf answer={report} />
      {d !== undefined && (
        <>
          {d.unknown !== undefined && <p className="warning">{d.unknown}</p>}
          {d.items.length === 0 && d.unknown === undefined && d.leftOut === undefined && <p>No denial has been reported <Time at={date(d.since)} lasts />.</p>}
          {d.items.length > 0 && (
            <div className="scroll" tabIndex={0}>
              <table>
                <caption className="hidden">Denied requests</caption>
                <thead><tr><th scope="col">Client</th><th scope="col">Inbound</th><th scope="col">Request</th><th scope="col">Count</th><th scope="col">Last</th><th scope="col">By</th><th scope="col">Why?</th></tr></thead>
                <tbody>
                  {d.items.map((i, k) => (
                    <tr key={k}>
                      <th scope="row">{i.client}</th>
                      <td>{shortKRI(i.inbound)}</td>
                      <td>{[i.method, i.path ?? i.pathPrefix].join(" ")}</td>
                      <td>{i.count}</td>
                      <td><Time at={date(i.lastSeen)} /></td>
                      <td><KRI kri={i.policy} text={shortKRI(i.policy)} /></td>
                      <td><Link to={href("why", { ...about(i), zone })}>Why?</Link></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {d.more !== undefined && <p className="note">{d.more} more: <code>causewayctl report denied</code>.</p>}
          {d.dropped > 0 && <p className="warning">{d.dropped} entries of access logs were lost: there may be more.</p>}
          <LeftOut count={d.leftOut} />
        </>
      )}
    </>
  );
}

/** about asks why one reported request was denied. An inbound's KRI holds the mesh, the Dataplane and the inbound's name. */
function about(i: Report["items"][number]): Question {
  const parts = i.inbound.split("_");
  const dataplane = i.inbound.slice(0, i.inbound.lastIndexOf("_") + 1);
  return { from: i.client, to: dataplane, inbound: parts.at(-1), mesh: parts[2], method: i.method, path: i.path ?? i.pathPrefix };
}
