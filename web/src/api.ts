import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./openapi";

export type Schema = components["schemas"];

// The token of who is signed in. It stays in memory: closing the page signs out.
let token = "";

export function signIn(with_: string): void {
  token = with_.trim();
}

const credential: Middleware = {
  onRequest({ request, params }) {
    // A browser takes such a segment for a step in the path, and would ask another question.
    const step = Object.entries(params.path ?? {}).find(([, value]) => /^\.{0,2}$/.test(String(value)));
    if (step !== undefined) throw new Refusal(400, "This is not a name.", [{ field: step[0], reason: `${JSON.stringify(step[1])} names nothing` }]);
    if (/[^\x21-\x7e]/.test(token)) throw new Refusal(401, "This is not a token: it has spaces, or characters that no token has.");
    if (token !== "") request.headers.set("Authorization", `Bearer ${token}`);
    return request;
  },
};

export const api = createClient<paths>({ baseUrl: window.location.origin, credentials: "omit" });
api.use(credential);

/** Refusal is what a server answers instead of what was asked, or what the browser says where no server answered. */
export class Refusal extends Error {
  readonly status: number;
  readonly fields: { field: string; reason: string }[];
  /** outcome is what became of a change, where a server says so. */
  readonly outcome: Schema["Error"]["outcome"];

  constructor(status: number, message: string, fields: { field: string; reason: string }[] = [], outcome?: Schema["Error"]["outcome"]) {
    super(message);
    this.status = status;
    this.fields = fields;
    this.outcome = outcome;
  }

  /** mayHaveChanged reports whether a change that ended like this may have happened: nobody says that it did not. */
  mayHaveChanged(): boolean {
    if (this.outcome !== undefined) return this.outcome !== "nothing";
    return this.status < 400 || this.status >= 500;
  }
}

/** unknown is the event that a server takes the caller for nobody: the token has ended, or was revoked. */
export const unknown = "causeway:unknown";

const watchful: Middleware = {
  onResponse({ response, schemaPath }) {
    if (response.status === 401 && schemaPath !== "/who-am-i") window.dispatchEvent(new Event(unknown));
  },
};
api.use(watchful);

interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** answered returns the answer, or throws a Refusal. */
export async function answered<T>(asked: Promise<Result<T>>): Promise<T> {
  let result: Result<T>;
  try {
    result = await asked;
  } catch (failure) {
    if (failure instanceof Refusal) throw failure;
    if (failure instanceof DOMException && failure.name === "AbortError") throw failure;
    throw new Refusal(0, `The server does not answer: ${failure instanceof Error ? failure.message : String(failure)}`);
  }
  if (result.response.ok && result.data !== undefined) return result.data;
  const error = result.error as Partial<Schema["Error"]> | undefined;
  const fields = (error?.invalid_parameters ?? []).map((p) => ({ field: p.field, reason: p.reason }));
  throw new Refusal(result.response.status, error?.detail ?? `The server answers ${result.response.status}.`, fields, error?.outcome);
}

/** Resource is what the schema says of Resource in its Universal form; its anyOf of two forms has no type in TypeScript. */
export interface Resource {
  type: string;
  name: string;
  mesh?: string;
  namespace?: string;
  kri?: string;
  labels?: Record<string, string>;
  creationTime?: string;
  modificationTime?: string;
  spec?: unknown;
  status?: { conditions?: Schema["Condition"][] };
}
