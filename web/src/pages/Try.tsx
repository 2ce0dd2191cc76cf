import { lazy, Suspense, useEffect, useState } from "react";
import { Button } from "react-aria-components";
import { answered, api, Refusal, type Resource, type Schema } from "../api";
import { Failure } from "../parts/Failure";
import { KRI } from "../parts/Link";
import { Verdicts } from "../parts/Verdicts";
import { source, visible } from "../text";

// The editor's library comes with the first view that has one. Until then, the same text is in a plain field.
const Editor = lazy(() => import("../parts/Editor"));
const label = "Resources, as YAML or JSON";

const example = `type: MeshTrafficPermission
mesh: default
name: let-frontend-in
spec:
  targetRef: {kind: Mesh}
  rules:
    - default:
        allow:
          - spiffeId: {type: Exact, value: spiffe://default.zone-1.mesh.local/ns/default/sa/frontend}
`;

type Shown =
  | { kind: "nothing" }
  | { kind: "asking"; what: string }
  | { kind: "refused"; refusal: Refusal; mayBeStored: boolean }
  | { kind: "forecast"; text: string; forecast: Schema["Forecast"] }
  | { kind: "stored"; result: Schema["BatchResult"] };

/**
 * Try shows what a change would do before anything is stored; then it applies that very text. The URL may bring a text, or
 * name a resource whose text is changed.
 */
export function Try({ query }: { query: URLSearchParams }) {
  const linked = query.get("text") ?? undefined;
  const [text, setText] = useState(linked ?? example);
  const [shown, setShown] = useState<Shown>({ kind: "nothing" });
  const kri = query.get("kri") ?? "";

  useEffect(() => {
    if (kri === "") return;
    const control = new AbortController();
    answered(api.GET("/_kri/{kri}", { params: { path: { kri } }, signal: control.signal })).then(
      (found) => setText(source(found as Resource)),
      (failure: unknown) => {
        if (!control.signal.aborted) setShown({ kind: "refused", refusal: failure instanceof Refusal ? failure : new Refusal(0, String(failure)), mayBeStored: false });
      },
    );
    return () => control.abort();
  }, [kri]);

  const send = async (dryRun: boolean) => {
    setShown({ kind: "asking", what: dryRun ? "Previewing…" : "Applying…" });
    try {
      if (dryRun) setShown({ kind: "forecast", text, forecast: (await batch(text, true)) as Schema["Forecast"] });
      else setShown({ kind: "stored", result: (await batch(text, false)) as Schema["BatchResult"] });
    } catch (failure) {
      const refusal = failure instanceof Refusal ? failure : new Refusal(0, String(failure));
      setShown({ kind: "refused", refusal, mayBeStored: !dryRun && refusal.mayHaveChanged() });
    }
  };
  const checked = shown.kind === "forecast" && shown.text === text;

  return (
    <section>
      <h1>Try a change</h1>
      {linked !== undefined && <p className="warning">This text came with the link. Read it before you apply it.</p>}
      <p className="note" id="keys">{label}. Ctrl+Space completes, Escape closes the list, Tab leaves the editor.</p>
      <div className="editor">
        {/* Until the editor is there, what it would mark is spelled out, and then the text cannot be changed. */}
        <Suspense fallback={<textarea aria-label={label} spellCheck={false} readOnly={visible(text) !== text} value={visible(text)} onChange={(e) => setText(e.target.value)} />}>
          <Editor label={label} value={text} onChange={setText} />
        </Suspense>
      </div>
      <div className="row">
        <Button className="primary" onPress={() => void send(true)} isDisabled={shown.kind === "asking"}>Preview</Button>
        <Button onPress={() => void send(false)} isDisabled={!checked}>Apply</Button>
        {!checked && <span className="note">Preview this text before you apply it.</span>}
      </div>
      <div aria-live="polite">
        {shown.kind === "asking" && <p>{shown.what}</p>}
        {shown.kind === "refused" && (
          <Failure refusal={shown.refusal} hint={shown.mayBeStored ? "It is unknown whether it was stored: look at the resource before you try again." : "Nothing was stored."} />
        )}
        {shown.kind === "forecast" && <Forecast forecast={shown.forecast} />}
        {shown.kind === "stored" && <Stored result={shown.result} />}
      </div>
    </section>
  );
}

async function batch(text: string, dryRun: boolean): Promise<Schema["Forecast"] | Schema["BatchResult"]> {
  const query = dryRun ? { dryRun: "server" as const } : {};
  return answered(api.POST("/_batch", {
    params: { query },
    body: text as never, // the text as it was typed: errors name its lines
    bodySerializer: (body: unknown) => body as string,
    headers: { "Content-Type": "application/yaml" },
  }));
}

function Forecast({ forecast }: { forecast: Schema["Forecast"] }) {
  return (
    <>
      <h2>Preview</h2>
      {forecast.results.map((r, i) => (
        <article key={i}>
          <h3>{r.type} {r.name}: {r.result}</h3>
          <ul>
            {r.role !== undefined && <li>Role: {r.role}</li>}
            <li>{r.syncedTo.length === 0 ? "It would be synced to no other server." : `It would be synced to ${r.syncedTo.join(", ")}.`}</li>
            {r.proxies !== undefined && (
              <li>It would concern {r.proxies.total} {r.proxies.total === 1 ? "proxy" : "proxies"}{r.proxies.zone !== undefined && ` of zone ${r.proxies.zone}`}{r.proxies.leftOut !== undefined && `, and ${r.proxies.leftOut} that you may not read`}.</li>
            )}
            {(r.warnings ?? []).map((w, k) => <li key={k} className="warning">{w}</li>)}
          </ul>
        </article>
      ))}
      {forecast.verdicts !== undefined && <Verdicts verdicts={forecast.verdicts} />}
    </>
  );
}

function Stored({ result }: { result: Schema["BatchResult"] }) {
  return (
    <>
      <h2>Stored at revision {result.revision}</h2>
      <ul>
        {result.results.map((r, i) => (
          <li key={i}>
            {r.kri === undefined ? r.name : <KRI kri={r.kri} text={`${r.type} ${r.name}`} />} {r.result}
            {(r.warnings ?? []).map((w, k) => <p key={k} className="warning">{w}</p>)}
          </li>
        ))}
      </ul>
      <p>Stored is not enforced: its page shows how far it has come.</p>
    </>
  );
}
