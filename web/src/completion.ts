/** Field is one place of a document, as src/schemas.json has it. */
export interface Field {
  about?: string;
  values?: string[];
  fields?: Record<string, Field>;
  each?: Field;
  items?: Field;
}

/** DocumentType is a type of resources that people may write. flat means that its fields stand beside the name. */
export interface DocumentType {
  path: string;
  mesh?: boolean;
  flat?: boolean;
  about?: string;
  spec: Field;
}

export type Schemas = Record<string, DocumentType>;

/** Step is one part of a path: a key, or an item of a list. */
type Step = string | number;

/** Place is where the cursor is in a text of YAML documents. */
export interface Place {
  /** path leads to the object whose key is typed, or to the key whose value is. */
  path: Step[];
  /** typed is what stands before the cursor of the key or value, from the position from. */
  typed: string;
  from: number;
  value: boolean;
  /** beside are the keys with plain values of each object that the document has up to its end, by path. */
  beside: Map<string, Map<string, string>>;
}

interface Open {
  indent: number;
  step: Step;
  /** opens is whether a block may follow: the key has no value on its line. */
  opens: boolean;
}

// Beyond these, nothing is offered: a text of dashes or braces costs the square of its depth.
const deepest = 100;
const longest = 1 << 20;

const key = /^("?)([A-Za-z0-9_.\/-]+)\1:(?:\s+(.*))?$/;

/** Reader reads a document line by line, and knows where in it it is. */
class Reader {
  stack: Open[] = [];
  readonly beside: Place["beside"] = new Map();
  private readonly counts = new Map<string, number>();

  path(): Step[] {
    return this.stack.map((o) => o.step);
  }

  /** enter takes the dashes of a line and returns the rest with its indent. */
  enter(line: string): { indent: number; rest: string } {
    let indent = line.length - line.trimStart().length;
    let rest = line.slice(indent);
    while ((rest === "-" || rest.startsWith("- ")) && this.stack.length < deepest) {
      this.close(indent, true);
      const list = this.path().join("/");
      const n = this.counts.get(list) ?? 0;
      this.counts.set(list, n + 1);
      this.stack.push({ indent, step: n, opens: true });
      const width = rest.length - rest.slice(1).trimStart().length;
      indent += width;
      rest = rest.slice(width);
    }
    return { indent, rest };
  }

  /** close leaves the blocks that a line of this indent ends. A list may stand at the indent of its key. */
  close(indent: number, item = false): void {
    for (let top = this.stack.at(-1); top !== undefined; top = this.stack.at(-1)) {
      const ofKey = item && typeof top.step === "string" && top.opens && top.indent === indent;
      if (top.indent < indent || ofKey) return;
      this.stack.pop();
    }
  }

  read(line: string): void {
    if (line.trim() === "" || line.trimStart().startsWith("#")) return;
    const { indent, rest } = this.enter(line);
    const found = key.exec(rest);
    if (found === null) return;
    this.close(indent);
    const [name, value] = [found[2] ?? "", (found[3] ?? "").trim()];
    if (value !== "" && !/^[{[]/.test(value)) this.note(name, plain(value));
    this.stack.push({ indent, step: name, opens: value === "" });
    if (value.startsWith("{")) flow(value, this.path(), this.beside);
  }

  private note(name: string, value: string): void {
    noteIn(this.beside, this.path(), name, value);
  }
}

/** noteIn adds a key with a plain value to the object at a path. */
function noteIn(beside: Place["beside"], path: Step[], name: string, value: string): void {
  const at = path.join("/");
  const object = beside.get(at) ?? new Map<string, string>();
  object.set(name, value);
  beside.set(at, object);
}

function plain(value: string): string {
  return value.replace(/\s+#.*$/, "").replace(/^(["'])(.*)\1$/, "$2");
}

/** flow reads an object or list in braces up to its end, and returns where it stands there; undefined if it is too deep. */
function flow(text: string, path: Step[], beside: Place["beside"]): Pick<Place, "path" | "typed" | "value"> | undefined {
  const frames: { path: Step[]; list: boolean; name?: string; n: number }[] = [];
  let word = "";
  const here = () => frames.at(-1);
  const at = () => {
    const f = here();
    if (f === undefined) return path;
    return f.list ? [...f.path, f.n] : f.name === undefined ? f.path : [...f.path, f.name];
  };
  const finish = () => {
    const f = here();
    if (f !== undefined && !f.list && f.name !== undefined && word.trim() !== "") noteIn(beside, f.path, f.name, plain(word.trim()));
    word = "";
  };
  for (const [i, c] of [...text].entries()) {
    if (frames.length > deepest) return undefined;
    if (c === "{" || c === "[") {
      frames.push({ path: at(), list: c === "[", n: 0 });
      word = "";
    } else if (c === "}" || c === "]") {
      finish();
      frames.pop();
    } else if (c === ",") {
      finish();
      const f = here();
      if (f !== undefined) {
        f.n++;
        f.name = undefined;
      }
    } else if (c === ":" && /^\s?$/.test(text[i + 1] ?? "") && here()?.list === false && here()?.name === undefined) {
      const f = here();
      if (f !== undefined) f.name = plain(word.trim());
      word = "";
    } else word += c;
  }
  const f = here();
  return { path: at(), typed: word.trimStart(), value: f !== undefined && (f.list || f.name !== undefined) };
}

/** place finds out where in its document a position of a text is; undefined in a comment, and in a text that is too long. */
export function place(text: string, position: number): Place | undefined {
  if (text.length > longest) return undefined;
  const begin = text.lastIndexOf("\n---", position - 1);
  const start = begin < 0 ? 0 : begin + 1;
  const next = text.indexOf("\n---", position);
  const lines = text.slice(start, position).split("\n");
  const current = lines.pop() ?? "";
  const reader = new Reader();
  lines.filter((l) => l !== "---").forEach((l) => reader.read(l));
  const found = inLine(reader, current);
  if (found === undefined) return undefined;
  // What stands beside the cursor may come after it.
  const whole = new Reader();
  text.slice(start, next < 0 ? undefined : next).split("\n").filter((l) => l !== "---").forEach((l) => whole.read(l));
  return { ...found, from: position - found.typed.length, beside: whole.beside };
}

function inLine(reader: Reader, current: string): Pick<Place, "path" | "typed" | "value"> | undefined {
  if (/(^|\s)#/.test(current)) return undefined;
  const { indent, rest } = reader.enter(current);
  const found = key.exec(rest.endsWith(":") ? `${rest} ` : rest);
  const value = found?.[3] ?? "";
  reader.close(indent);
  if (found === null) {
    if (/^[{[]/.test(rest)) return flow(rest, reader.path(), reader.beside);
    if (/\s/.test(rest)) return undefined;
    return { path: reader.path(), typed: rest, value: false };
  }
  if (/^\S+:$/.test(rest)) return undefined; // a space is missing
  const path = [...reader.path(), found[2] ?? ""];
  if (/^[{[]/.test(value)) return flow(value, path, reader.beside);
  return { path, typed: value.replace(/^["']/, ""), value: true };
}

/** own is what an object has by itself under a key: every object inherits a constructor. */
export function own<T>(object: Record<string, T> | undefined, name: string | undefined): T | undefined {
  return object !== undefined && name !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** typeOf returns the type of the document that a place is in. */
export function typeOf(p: Place): string | undefined {
  const top = p.beside.get("");
  return top?.get("type") ?? (top?.has("apiVersion") === true ? top.get("kind") : undefined);
}

/** rootOf describes a whole document. Without a known type, only what all have. */
export function rootOf(schemas: Schemas, p: Place): Field {
  const type = typeOf(p);
  const d = own(schemas, type);
  const top = p.beside.get("");
  const types = Object.keys(schemas);
  const labels: Field = { about: "Labels, by which others select it.", each: {} };
  if (top?.has("apiVersion") === true) {
    const metadata: Field = { fields: { name: {}, namespace: {}, labels } };
    return { fields: { apiVersion: { values: ["kuma.io/v1alpha1"] }, kind: { values: types }, metadata, ...(d === undefined ? {} : { spec: d.spec }) } };
  }
  return {
    fields: {
      type: { about: "What it is.", values: types },
      ...(d?.mesh === false ? {} : { mesh: { about: "The mesh that it belongs to." } }),
      name: { about: "Its name: lower-case letters, digits and dashes." },
      namespace: { about: "The namespace of its owner, in a zone." },
      labels,
      ...(d === undefined ? {} : d.flat === true ? d.spec.fields : { spec: d.spec }),
    },
  };
}

/** fieldAt follows a path; undefined where nothing is known. */
export function fieldAt(root: Field, path: Step[]): Field | undefined {
  return path.reduce<Field | undefined>((f, step) => (typeof step === "number" ? f?.items : (own(f?.fields, step) ?? f?.each)), root);
}

/** keysAt returns the keys that may follow at a place, without those that are there. */
export function keysAt(schemas: Schemas, p: Place): [string, string | undefined][] {
  const there = p.beside.get(p.path.join("/"));
  const fields = fieldAt(rootOf(schemas, p), p.path)?.fields ?? {};
  return Object.entries(fields).filter(([name]) => there?.has(name) !== true || name === p.typed).map(([name, f]) => [name, f.about]);
}

/** Names is a question for names of resources that are known: of a type, or identities. */
export type Names = { kind: "type"; type: string; mesh?: string } | { kind: "identities"; mesh: string };

/** valuesAt returns the values of a place, and which names it may hold. */
export function valuesAt(schemas: Schemas, p: Place): { values: string[]; names?: Names } {
  const last = p.path.at(-1);
  const kind = p.beside.get(p.path.slice(0, -1).join("/"))?.get("kind") ?? "";
  const mesh = p.beside.get("")?.get("mesh") ?? "default";
  const values = fieldAt(rootOf(schemas, p), p.path)?.values ?? [];
  if (values.length > 0) return { values };
  if (last === "mesh" && p.path.length === 1) return { values, names: { kind: "type", type: "Mesh" } };
  if (last === "name" && own(schemas, kind) !== undefined) return { values, names: { kind: "type", type: kind, mesh } };
  if (last === "value" && p.path.at(-2) === "spiffeId") return { values, names: { kind: "identities", mesh } };
  return { values };
}
