import { useState } from "react";
import { Button } from "react-aria-components";
import { answered, api } from "../api";
import { useAnswer } from "../ask";
import { endpoints, type Endpoint } from "../envoy";
import { AsOf } from "./AsOf";

/** shown is how many endpoints are listed. */
const shown = 200;

/** counters are what a person looks for first: connections, requests by status, refusals, and what was not taken. */
const counters = "(rbac|downstream_rq_[1-5]xx|downstream_cx_(total|active)$|upstream_rq_[1-5]xx|upstream_cx_connect_fail|update_rejected|ssl\\.(handshake|fail_verify|no_certificate))";

interface At {
  mesh: string;
  name: string;
}

/** Envoy asks the proxy itself for its endpoints and counters, once a person wants them: each answer costs the proxy work. */
export function Envoy({ at }: { at: At }) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <h2>Envoy</h2>
      {asked ? <><Endpoints at={at} /><Counters at={at} /></> : <p><Button onPress={() => setAsked(true)}>Query Envoy</Button></p>}
    </>
  );
}

function Endpoints({ at }: { at: At }) {
  const answer = useAnswer(`clusters ${at.name}`, (signal) =>
    answered(api.GET("/meshes/{mesh}/dataplanes/{name}/clusters", { params: { path: at, query: { format: "json" } }, signal })));
  const read = endpoints(answer.data);
  const all = read ?? [];
  return (
    <>
      <h3>Endpoints</h3>
      <AsOf answer={answer} />
      {answer.data !== undefined && all.length === 0 && <p>{read === undefined ? "What it answers has no form that this page knows." : "It sends to none."}</p>}
      {all.length > 0 && (
        <div className="scroll" tabIndex={0}>
          <table>
            <thead><tr><th scope="col">Cluster</th><th scope="col">Endpoint</th><th scope="col">Health</th><th scope="col">Requests</th><th scope="col">Failed</th></tr></thead>
            <tbody>{all.slice(0, shown).map((e, i) => <Row key={i} endpoint={e} />)}</tbody>
          </table>
        </div>
      )}
      {all.length > shown && <p className="note">{all.length - shown} more: <code>causewayctl proxy clusters</code>.</p>}
    </>
  );
}

function Row({ endpoint: e }: { endpoint: Endpoint }) {
  return <tr><th scope="row"><code>{e.cluster}</code></th><td><code>{e.address}</code></td><td>{e.health}</td><td>{e.requests}</td><td>{e.failed}</td></tr>;
}

function Counters({ at }: { at: At }) {
  const answer = useAnswer(`stats ${at.name}`, (signal) =>
    answered(api.GET("/meshes/{mesh}/dataplanes/{name}/stats", { params: { path: at, query: { match: counters } }, parseAs: "text", signal })));
  return (
    <>
      <h3>Counters</h3>
      <AsOf answer={answer} />
      {typeof answer.data === "string" && <pre tabIndex={0}>{answer.data === "" ? "It has counted nothing of these yet." : answer.data}</pre>}
    </>
  );
}
