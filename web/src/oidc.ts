import { Refusal, signIn } from "./api";
import { href } from "./view";

/** How is how to sign in at the server's identity provider, as /ui/signin.json has it. */
export interface How {
  issuer: string;
  clientId: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  scopes: string[];
}

/** Begun is what the tab keeps while it is at the identity provider. No token is among it. */
interface Begun {
  how: How;
  verifier: string;
  state: string;
  nonce: string;
  /** back is the view that the person came from. */
  back: string;
}

const kept = "causeway:signing-in";
const view = "signin";

/** howToSignIn asks the server for its identity provider; undefined if it has none. */
export async function howToSignIn(signal?: AbortSignal): Promise<How | undefined> {
  const answer = await fetch(`${href(view)}.json`, { credentials: "omit", signal }).catch(() => undefined);
  return answer?.ok === true ? ((await answer.json()) as How | null) ?? undefined : undefined;
}

/** begin leaves the page for the identity provider. */
export async function begin(how: How): Promise<void> {
  const begun: Begun = { how, verifier: random(), state: random(), nonce: random(), back: location.pathname + location.search + location.hash };
  sessionStorage.setItem(kept, JSON.stringify(begun));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier));
  const to = new URL(how.authorizationEndpoint);
  for (const [key, value] of Object.entries({
    response_type: "code", client_id: how.clientId, redirect_uri: redirect(), scope: how.scopes.join(" "),
    state: begun.state, nonce: begun.nonce, code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256",
  })) to.searchParams.set(key, value);
  location.assign(to.href);
}

/**
 * finish redeems the code with which an identity provider sent the browser back, and shows the view that the person came
 * from. Any other view is left as it is. It returns why nobody is signed in.
 */
export async function finish(): Promise<Refusal | undefined> {
  if (location.pathname !== href(view)) return undefined;
  const given = new URLSearchParams(location.search);
  const raw = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  const begun = raw === null ? undefined : (JSON.parse(raw) as Begun);
  history.replaceState(null, "", begun?.back ?? href(""));
  try {
    if (begun === undefined || given.get("state") !== begun.state) throw new Refusal(0, "This sign-in was not begun in this tab.");
    const code = given.get("code");
    if (code === null) throw new Refusal(0, `The identity provider says: ${given.get("error_description") ?? given.get("error") ?? "nothing"}.`);
    const tokens = await redeem(begun.how, { grant_type: "authorization_code", code, redirect_uri: redirect(), code_verifier: begun.verifier });
    if (claims(tokens.id_token)["nonce"] !== begun.nonce) throw new Refusal(0, "The identity provider's token is for another sign-in.");
    hold(begun.how, tokens);
    return undefined;
  } catch (failure) {
    return failure instanceof Refusal ? failure : new Refusal(0, `The identity provider does not answer this page: ${String(failure)}`);
  }
}

interface Tokens {
  id_token: string;
  refresh_token?: string;
}

async function redeem(how: How, grant: Record<string, string>): Promise<Tokens> {
  const answer = await fetch(how.tokenEndpoint, {
    method: "POST", credentials: "omit", body: new URLSearchParams({ ...grant, client_id: how.clientId }),
  });
  const told = (await answer.json()) as Partial<Tokens> & { error?: string; error_description?: string };
  if (!answer.ok || told.id_token === undefined) {
    throw new Refusal(answer.status, `The identity provider gives no ID token: ${told.error_description ?? told.error ?? "it does not say why"}.`);
  }
  return { id_token: told.id_token, refresh_token: told.refresh_token };
}

let renewal: ReturnType<typeof setTimeout> | undefined;
let session = 0; // a renewal that was under way when it ended signs nobody in

/** signOut forgets the tokens of an identity provider. */
export function signOut(): void {
  session++;
  clearTimeout(renewal);
}

/** hold signs in by an ID token, and renews it before it ends where the provider lets the page do that. */
function hold(how: How, tokens: Tokens): void {
  signIn(tokens.id_token);
  clearTimeout(renewal);
  const { iss, sub, iat, exp } = claims(tokens.id_token);
  const refresh = tokens.refresh_token;
  if (refresh === undefined || typeof iat !== "number" || typeof exp !== "number") return;
  const mine = session;
  renewal = setTimeout(() => {
    // Without a new one the old one ends, and the server says so. One of somebody else's is none.
    redeem(how, { grant_type: "refresh_token", refresh_token: refresh }).then((next) => {
      const of = claims(next.id_token);
      if (mine === session && of["iss"] === iss && of["sub"] === sub) hold(how, { ...next, refresh_token: next.refresh_token ?? refresh });
    }, () => undefined);
  }, renewAfter(exp - iat));
}

/** renewAfter returns after how many ms a token that holds for so many seconds is renewed, whatever the browser's clock says. */
export function renewAfter(seconds: number): number {
  return Math.min(Math.max(seconds * 800, 1000), 2 ** 31 - 1);
}

/** claims reads a token that the server will verify: the page only compares. */
export function claims(token: string): Record<string, unknown> {
  try {
    const part = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0)))) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function redirect(): string {
  return location.origin + href(view);
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(raw: Uint8Array): string {
  return btoa(String.fromCharCode(...raw)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
