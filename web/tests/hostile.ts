import { readFileSync } from "node:fs";

// What a server could answer if nothing held it back: each text of each answer, and of each resource, is an attack.

/** payload is markup, a link that runs, what turns the reading around, and a backslash, which JSON escapes. */
export const payload = `<img src=x onerror=alert(1)>"><svg onload=alert(2)>javascript:alert(3)\u202eedis\u2066\\`;

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  format?: string;
  pattern?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface Operation {
  responses?: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const api = JSON.parse(readFileSync("../zone/inspect/openapi.json", "utf8")) as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

/** Turn chooses among the values of an enumeration, so that each branch of a view is drawn by one turn. */
export type Turn = 0 | 1;

const insight = {
  subscriptions: [{
    id: payload, controlPlaneInstanceId: payload, connectTime: "2026-01-02T03:04:05Z",
    status: { total: { responsesSent: payload, responsesAcknowledged: payload, responsesRejected: "7" } },
    version: { kumaCp: { version: payload }, envoy: { version: payload } },
  }],
  mTLS: { certificateExpirationTime: payload, issuedBackend: payload },
};

/** made returns an answer of a schema. */
function made(schema: Schema | undefined, turn: Turn, name = "", depth = 0): unknown {
  if (schema === undefined || depth > 24) return payload;
  if (schema.$ref !== undefined) return made(api.components.schemas[schema.$ref.split("/").at(-1) ?? ""], turn, name, depth + 1);
  const one = (schema.allOf ?? schema.oneOf ?? schema.anyOf)?.at(-turn);
  if (schema.enum !== undefined) return schema.enum.at(-turn);
  if (name === "zoneInsight" || name === "dataplaneInsight") return insight;
  switch (schema.type) {
    case "string":
      if (schema.format === "date-time" || name === "time") return new Date().toISOString();
      if (schema.pattern?.includes("[0-9]") === true) return "1.1";
      if (name === "outcome") return turn === 0 ? "done" : payload;
      return /kri|policy|inbound|^to$/i.test(name) ? `kri_dp_default_zone-1_ns_${payload}_${payload}` : payload;
    case "integer":
    case "number":
      return ["caller", "policy", "shadowPolicy"].includes(name) ? 1 : 3; // places in lists of two
    case "boolean":
      return turn === 0;
    case "array":
      return Array.from({ length: depth < 5 ? 2 : 1 }, () => made(schema.items, turn, name, depth + 1));
    case "object":
    case undefined:
      if (schema.properties === undefined && one !== undefined) return made(one, turn, name, depth + 1);
      if (schema.type === undefined && schema.properties === undefined) return payload; // anything
      return object(schema, turn, depth);
  }
  return payload;
}

function object(schema: Schema, turn: Turn, depth: number): Record<string, unknown> {
  const made_ = Object.entries(schema.properties ?? {}).map(([key, of]) => [key, made(of, turn, key, depth + 1)] as const);
  const more = typeof schema.additionalProperties === "object" ? schema.additionalProperties : {};
  const open = schema.properties === undefined || typeof schema.additionalProperties === "object";
  const others = open ? [payload, "constructor", "toString"].map((key) => [key, made(more, turn, key, depth + 1)] as const) : [];
  return Object.fromEntries([...made_, ...others]);
}

/** answerOf returns an answer of a schema by its name. */
export function answerOf(schema: string, turn: Turn): unknown {
  return made(api.components.schemas[schema], turn);
}

/** answerTo returns the answer to a request, as its schema has it; undefined for what the API does not have. */
export function answerTo(method: string, path: string, turn: Turn): unknown {
  const parts = path.split("/");
  const fits = (template: string) => {
    const wanted = template.split("/");
    return wanted.length === parts.length && wanted.every((w, i) => w.startsWith("{") || w === parts[i]);
  };
  const literal = (template: string) => template.split("/").filter((w) => !w.startsWith("{")).length;
  const [template] = Object.keys(api.paths).filter((t) => fits(t) && api.paths[t]?.[method.toLowerCase()] !== undefined).sort((a, b) => literal(b) - literal(a));
  if (template === undefined) return undefined;
  const schema = api.paths[template]?.[method.toLowerCase()]?.responses?.["200"]?.content?.["application/json"]?.schema;
  return made(schema, turn);
}

/** Field is one place of a document, as src/schemas.json has it. */
interface Field {
  values?: string[];
  fields?: Record<string, Field>;
  each?: Field;
  items?: Field;
}

export const documents = JSON.parse(readFileSync("src/schemas.json", "utf8")) as Record<string, { flat?: boolean; spec: Field }>;

/** texts counts the places of a field in which a text can be, at any depth. */
export function texts(of: Field): number {
  if (of.fields === undefined && of.each === undefined && of.items === undefined) return 1;
  return Object.values(of.fields ?? {}).reduce((n, f) => n + texts(f), 0) + (of.each === undefined ? 0 : texts(of.each)) + (of.items === undefined ? 0 : texts(of.items));
}

/** filled returns a value with the payload in each of them. */
export function filled(of: Field): unknown {
  if (of.items !== undefined) return [filled(of.items)];
  if (of.fields === undefined && of.each === undefined) return payload;
  const all = Object.entries(of.fields ?? {}).map(([key, f]) => [key, filled(f)] as const);
  return Object.fromEntries(of.each === undefined ? all : [...all, ["constructor", filled(of.each)] as const]);
}
