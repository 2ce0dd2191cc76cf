import { useEffect, useState, type MouseEvent } from "react";
import { signIn, unknown, type Refusal } from "./api";
import { forget, useQuestion } from "./ask";
import { Failure } from "./parts/Failure";
import { Fence } from "./parts/Fence";
import { Knowledge } from "./parts/Knowledge";
import { Link } from "./parts/Link";
import { SignIn } from "./parts/SignIn";
import { Calls } from "./pages/Calls";
import { Overview } from "./pages/Overview";
import { Resource } from "./pages/Resource";
import { Resources } from "./pages/Resources";
import { Proxy } from "./pages/Proxy";
import { Shadow } from "./pages/Shadow";
import { Try } from "./pages/Try";
import { Why } from "./pages/Why";
import { Zone } from "./pages/Zone";
import { index, whoAmI } from "./questions";
import type { Server } from "./server";
import { href, useView } from "./view";

const pages: { page: string; title: string }[] = [
  { page: "", title: "Overview" },
  { page: "calls", title: "Who may call whom" },
  { page: "why", title: "Why 403?" },
  { page: "shadow", title: "Shadow report" },
  { page: "resources", title: "Resources" },
  { page: "try", title: "Try a change" },
];

// within are the pages that belong to another one's place in the navigation.
const within: Record<string, string> = { resource: "resources", zone: "", proxy: "" };

/** App is the whole page. failed is why a sign-in at an identity provider, from which the browser comes back, came to nothing. */
export function App({ failed }: { failed?: Refusal }) {
  const [signedIn, setSignedIn] = useState(0);
  const view = useView();
  const who = useQuestion(whoAmI(signedIn));
  const server = useQuestion(index(signedIn));
  const current = pages.find((p) => p.page === (within[view.page] ?? view.page));
  const place = server.data === undefined ? "Causeway" : serverName(server.data);

  useEffect(() => {
    document.title = `${current?.title ?? "Not found"} · ${place}`;
  }, [current, place]);

  // One answer that says so is enough to ask who is signed in: what was shown to her is not shown any longer.
  const askWho = who.again;
  useEffect(() => {
    window.addEventListener(unknown, askWho);
    return () => window.removeEventListener(unknown, askWho);
  }, [askWho]);

  // Who was signed in no longer is: the token has ended, or was revoked.
  const stranger = who.refusal?.status === 401 || who.refusal?.status === 403;

  const enter = (token: string) => {
    signIn(token);
    forget();
    setSignedIn((n) => n + 1);
  };

  return (
    <>
      <a className="skip" href="#main" onClick={toContent}>Skip to content</a>
      <header>
        <span className="brand">Causeway <b>{server.data === undefined ? "" : serverName(server.data)}</b></span>
        <nav aria-label="Pages">
          {pages.map((p) => (
            <Link key={p.page} to={href(p.page)} current={p === current}>{p.title}</Link>
          ))}
        </nav>
        <SignIn who={stranger ? undefined : who.data} onToken={enter} />
      </header>
      <main id="main" tabIndex={-1}>
        {failed !== undefined && <Failure refusal={failed} hint="You are not signed in. Press Sign in to try again." />}
        {who.refusal !== undefined && stranger ? (
          <Failure refusal={who.refusal} hint="Sign in: the button is at the top." />
        ) : server.data === undefined ? (
          server.refusal === undefined ? <p role="status">Asking the server…</p> : <Failure refusal={server.refusal} />
        ) : (
          // Another person, another page: nothing that the one could read stays for the other.
          <Fence key={signedIn} of={`${view.page}?${view.query.toString()}`}><Page page={view.page} query={view.query} server={server.data} /></Fence>
        )}
      </main>
      <footer>
        {server.data?.version !== undefined && <span>{server.data.product} {server.data.version}</span>}
        <span>Everything here is also in <code>causewayctl</code> and <a href="/openapi.json">the HTTP API</a>.</span>
      </footer>
    </>
  );
}

/** toContent leaves the URL as it is: it says what the view shows. */
function toContent(e: MouseEvent) {
  e.preventDefault();
  document.getElementById("main")?.focus();
}

function serverName(server: Server): string {
  return server.mode === "zone" ? `zone ${server.zone ?? ""}` : "global";
}

function Page({ page, query, server }: { page: string; query: URLSearchParams; server: Server }) {
  switch (page) {
    case "":
      return <Overview server={server} />;
    case "calls":
      return <Calls query={query} server={server} />;
    case "why":
      return <Why query={query} server={server} />;
    case "shadow":
      return <Shadow query={query} server={server} />;
    case "zone":
      return <Zone query={query} server={server} />;
    case "proxy":
      return <><Knowledge server={server} of={query.toString()} /><Proxy kri={query.get("kri") ?? ""} /></>;
    case "resources":
      return <><Knowledge server={server} of={query.toString()} /><Resources query={query} /></>;
    case "resource":
      return <><Knowledge server={server} of={query.toString()} /><Resource kri={query.get("kri") ?? ""} /></>;
    case "try":
      return <Try key={query.toString()} query={query} />;
    default:
      return (
        <section>
          <h1>Not found</h1>
          <p>There is no page {page}. <Link to={href("")}>Go to the overview</Link>.</p>
        </section>
      );
  }
}
