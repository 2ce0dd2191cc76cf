import { useState } from "react";
import { Button } from "react-aria-components";
import { answered, api, Refusal, type Schema } from "../api";
import type { Server } from "../server";
import { useAnswer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Failure } from "../parts/Failure";
import { KRI } from "../parts/Link";
import { Time } from "../parts/Time";
import { behind, doubts, over } from "../sync";
import { date } from "../text";
import { useSync } from "../watch";

type Types = Schema["SyncStatus"]["types"];
type TypeSync = Types[number];

/** Zone is the sync of one zone with its global: by type, what was refused, and what is held until an operator accepts it. */
export function Zone({ query, server }: { query: URLSearchParams; server: Server }) {
  const name = query.get("name") ?? server.zone ?? "";
  if (server.mode === "zone" && name !== server.zone) {
    return <section><h1>Zone {name}</h1><p>This is the page of zone {server.zone}: the global knows of others.</p></section>;
  }
  return (
    <section>
      <h1>Zone {name}</h1>
      <Sync name={name} global={server.mode === "global"} />
      {server.mode === "global" && <Credentials name={name} />}
    </section>
  );
}

function Sync({ name, global }: { name: string; global: boolean }) {
  const sync = useAnswer(`sync ${name}`, (signal) =>
    global ? answered(api.GET("/zones/{name}/_sync", { params: { path: { name } }, signal })) : answered(api.GET("/_sync", { signal })),
  );
  const live = useSync(global ? name : undefined, sync.again);
  const s = sync.data;
  return (
    <>
      <h2>Sync</h2>
      <AsOf answer={sync} live={live} />
      {s !== undefined && (
        <>
          <Connection s={s} global={global} />
          {doubts(s, global).map((text) => <p key={text} className="warning">{text}</p>)}
          <Held types={s.types} name={name} again={sync.again} />
          <Refused types={s.types} />
          {(s.over ?? []).map((o) => <p key={o.limit + (o.type ?? "")} className="warning">{over(o)}, first <Time at={date(o.since)} />.</p>)}
          <Table s={s} />
        </>
      )}
    </>
  );
}

function Connection({ s, global }: { s: Schema["SyncStatus"]; global: boolean }) {
  const peer = global ? "The zone" : "The global";
  if (s.unheard === true) return <p className="warning">Whether the zone is connected has been unknown <Time at={date(s.since)} lasts />: another replica had its session{s.whyUnheard !== undefined && `, and ${s.whyUnheard}`}.</p>;
  if (!global && s.types.length === 0 && s.connected !== true) return <p>No sync is known here: a zone without a global has none.</p>;
  return (
    <>
      {s.connected === true ? (
        <p><span className="dot online" aria-hidden="true" /> {peer} is connected{date(s.since) !== undefined && <>, and has been <Time at={date(s.since)} lasts /></>}.</p>
      ) : (
        <p className="warning">
          {peer} is not connected{date(s.since) !== undefined ? <>, and has not been <Time at={date(s.since)} lasts /></> : date(s.started) !== undefined && <>, and has not been since this server started <Time at={date(s.started)} /></>}. What it has is what it acknowledged then.
        </p>
      )}
      {global && <p className="note">{date(s.reported) === undefined ? "It has not told of its proxies." : <>It last told of its proxies <Time at={date(s.reported)} />: totals of proxies are as old as that.</>}</p>}
    </>
  );
}

function Held({ types, name, again }: { types: Types; name: string; again: () => void }) {
  const held = types.filter((t) => t.held !== undefined);
  const [asked, setAsked] = useState("");
  const [told, setTold] = useState<Refusal | string>();
  if (held.length === 0 && told === undefined) return null;
  // Only what is shown is accepted: if anything else is held by now, the server refuses.
  const accept = (type: string, held: string) => {
    setAsked("");
    answered(api.POST("/zones/{name}/_accept-deletes", { params: { path: { name }, query: { type, held } } })).then(
      (done) => setTold(done.types.map((t) => `${t.count} deletions of ${t.type} accepted.`).join(" ") || "Nothing was held any more."),
      (e: unknown) => setTold(e instanceof Refusal ? e : String(e)),
    ).finally(again);
  };
  return (
    <>
      <h3>Held deletions</h3>
      {told instanceof Refusal ? <Failure refusal={told} /> : told !== undefined && <p role="status">{told}</p>}
      {held.map((t) => (
        <div key={t.type + t.direction} className="warning">
          <p>{t.held?.count} deletions of {t.type} ({direction(t)}) have been held <Time at={date(t.held?.since)} lasts />: nothing is removed until somebody accepts them.</p>
          <p>{(t.held?.names ?? []).slice(0, 20).join(", ")}{(t.held?.count ?? 0) > 20 && " and more"}</p>
          {asked === t.held?.mark ? (
            <p className="row"><span>Remove them for good?</span><Button onPress={() => accept(t.type, t.held?.mark ?? "")}>Yes, remove {t.held?.count}</Button><Button onPress={() => setAsked("")}>No</Button></p>
          ) : (
            <Button onPress={() => setAsked(t.held?.mark ?? "")}>Accept</Button>
          )}
        </div>
      ))}
    </>
  );
}

function Refused({ types }: { types: Types }) {
  const refused = types.flatMap((t) => t.refused.map((r) => ({ ...r, type: t.type })));
  if (refused.length === 0) return null;
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>Refused</caption>
        <thead><tr><th scope="col">Resource</th><th scope="col">By</th><th scope="col">Since</th><th scope="col">Reason</th></tr></thead>
        <tbody>
          {refused.slice(0, 100).map((r, i) => (
            <tr key={i}><th scope="row"><KRI kri={r.kri || r.name} text={`${r.type} ${r.name}`} /></th><td>{r.by === "self" ? "this server" : "the other side"}</td><td><Time at={date(r.since)} /></td><td>{r.reason}</td></tr>
          ))}
        </tbody>
      </table>
      {refused.length > 100 && <p className="note">{refused.length - 100} more.</p>}
    </div>
  );
}

function direction(t: TypeSync): string {
  return t.direction === "toZone" ? "to the zone" : "to the global";
}

function Table({ s }: { s: Schema["SyncStatus"] }) {
  if (s.types.length === 0) return null;
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>By type</caption>
        <thead><tr><th scope="col">Type</th><th scope="col">Way</th><th scope="col">Messages acknowledged</th><th scope="col">Behind</th><th scope="col">Refused</th></tr></thead>
        <tbody>
          {s.types.map((t) => (
            <tr key={t.type + t.direction}>
              <th scope="row">{t.type}</th>
              <td>{direction(t)}</td>
              <td>{t.acked} of {t.sent}, up to revision {t.acknowledged}</td>
              <td>{behind(t, s)}</td>
              <td>{t.refused.length}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Credentials({ name }: { name: string }) {
  const held = useAnswer(`credentials ${name}`, (signal) => answered(api.GET("/zones/{name}/_credentials", { params: { path: { name } }, signal })));
  const c = held.data;
  return (
    <>
      <h2>Certificates</h2>
      <AsOf answer={held} />
      {c !== undefined && (
        <>
          {date(c.revocationTime) !== undefined && <p className="warning">Revoked <Time at={date(c.revocationTime)} />.</p>}
          {c.certificates.length === 0 && c.tokens.length === 0 && <p>It has no certificate and no token.</p>}
          {c.certificates.length + c.tokens.length > 0 && (
            <div className="scroll" tabIndex={0}>
              <table>
                <caption className="hidden">Certificates and tokens of the zone</caption>
                <thead><tr><th scope="col">Credential</th><th scope="col">Issued</th><th scope="col">Ends</th><th scope="col">State</th></tr></thead>
                <tbody>
                  {c.certificates.map((x) => <Row key={x.serial} name={`certificate ${x.serial}`} issued={x.issued} expires={x.expires} state={x.stored ? "the zone has it" : "whether the zone has it is unknown"} />)}
                  {c.tokens.map((x) => <Row key={x.id} name={`token ${x.id}`} issued={x.issued} expires={x.expires} state={x.scopes.join(", ")} />)}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </>
  );
}

function Row({ name, issued, expires, state }: { name: string; issued: string; expires: string; state: string }) {
  const ends = date(expires);
  return (
    <tr>
      <th scope="row">{name}</th>
      <td><Time at={date(issued)} /></td>
      <td><Time at={ends} coming />{ends !== undefined && ends < new Date() && ", it has ended"}</td>
      <td>{state}</td>
    </tr>
  );
}
