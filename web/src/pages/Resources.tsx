import { Input, Label, SearchField } from "react-aria-components";
import { answered, api, type Resource, type Schema } from "../api";
import { useAnswer, useQuestion } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Failure } from "../parts/Failure";
import { LeftOut } from "../parts/LeftOut";
import { KRI } from "../parts/Link";
import { Time } from "../parts/Time";
import { resourceTypes } from "../questions";
import { date } from "../text";
import { go, href } from "../view";
import { useChanges } from "../watch";

const pageSize = 50;

/** Resources lists one type; the server selects and pages. */
export function Resources({ query }: { query: URLSearchParams }) {
  const types = useQuestion(resourceTypes);
  const plural = query.get("type") ?? "meshtrafficpermissions";
  const all = types.data?.resources ?? [];
  const type = all.find((t) => t.path === plural);
  const set = (change: Record<string, string>, replace = false) =>
    go(href("resources", { ...Object.fromEntries(query), type: plural, offset: "", ...change }), replace);

  return (
    <section>
      <h1>{type?.pluralDisplayName ?? "Resources"}</h1>
      {types.refusal !== undefined && <Failure refusal={types.refusal} />}
      {types.data === undefined && types.refusal === undefined && <p role="status" className="pending">Asking the server…</p>}
      <div className="filters">
        <label>
          Type
          <select value={plural} onChange={(e) => set({ type: e.target.value, name: "", role: "" })}>
            <optgroup label="Policies">{all.filter((t) => t.policy !== undefined).map(option)}</optgroup>
            <optgroup label="Others">{all.filter((t) => t.policy === undefined).map(option)}</optgroup>
          </select>
        </label>
        <Search label="Name contains" name={query.get("name") ?? ""} onChange={(name) => set({ name }, true)} />
        <Search label="Namespace" name={query.get("namespace") ?? ""} onChange={(namespace) => set({ namespace }, true)} />
        {type?.policy !== undefined && <Choice label="Role" value={query.get("role") ?? ""} of={roles} onChange={(role) => set({ role })} />}
        <Choice label="Origin" value={query.get("origin") ?? ""} of={origins} onChange={(origin) => set({ origin })} />
        <Search label="Zone" name={query.get("zone") ?? ""} onChange={(zone) => set({ zone }, true)} />
      </div>
      {type !== undefined && <List type={type} asked={Object.fromEntries(query)} onOffset={(o) => set({ offset: String(o) })} />}
    </section>
  );
}

function option(t: Schema["ResourceTypes"]["resources"][number]) {
  return <option key={t.path} value={t.path}>{t.name}</option>;
}

const roles = ["system", "producer", "consumer", "workload-owner"];
const origins = ["global", "zone"];

/** Search shows what the URL says, so that the list is never of something else. */
function Search({ label, name, onChange }: { label: string; name: string; onChange: (name: string) => void }) {
  return (
    <SearchField value={name} onChange={onChange}>
      <Label>{label}</Label>
      <Input autoComplete="off" spellCheck="false" />
    </SearchField>
  );
}

function Choice({ label, value, of, onChange }: { label: string; value: string; of: string[]; onChange: (value: string) => void }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(e) => onChange(e.target.value)}>
        <option value="">any</option>
        {of.map((o) => <option key={o}>{o}</option>)}
      </select>
    </label>
  );
}

type Asked = Partial<Record<"name" | "namespace" | "role" | "origin" | "zone" | "offset", string>>;

/** question is what the server is asked: it selects and pages. */
function question(asked: Asked) {
  const labels = { "kuma.io/policy-role": asked.role, "kuma.io/origin": asked.origin, "kuma.io/zone": asked.zone };
  const filter = Object.entries(labels).filter((l): l is [string, string] => (l[1] ?? "") !== "").map(([key, value]) => [`labels.${key}`, value]);
  const given = (text: string | undefined) => (text === "" ? undefined : text);
  return {
    size: pageSize, offset: Number(asked.offset ?? 0) || 0, name: given(asked.name), namespace: given(asked.namespace),
    ...(filter.length === 0 ? {} : { filter: Object.fromEntries(filter) as Record<string, string> }),
  };
}

interface ListProps {
  type: Schema["ResourceTypes"]["resources"][number];
  asked: Asked;
  onOffset: (offset: number) => void;
}

function List({ type, asked, onOffset }: ListProps) {
  const query = question(asked);
  const { offset } = query;
  const found = useAnswer(`${type.path} ${JSON.stringify(query)}`, (signal) =>
    answered(api.GET("/{plural}", { params: { path: { plural: type.path }, query }, signal })),
  );
  const live = useChanges(type.path, found.again);
  const items = (found.data?.items ?? []) as Resource[];
  return (
    <>
      <AsOf answer={found} live={live} />
      {found.data !== undefined && items.length === 0 && <p>{none(type, asked, found.data)}</p>}
      {items.length > 0 && (
        <div className="scroll" tabIndex={0}>
          <table>
            <caption className="hidden">{type.pluralDisplayName}</caption>
            <thead>
              <tr><th scope="col">Name</th><th scope="col">Mesh</th><th scope="col">Namespace</th><th scope="col">Role</th><th scope="col">From</th><th scope="col">Changed</th></tr>
            </thead>
            <tbody>{items.map((r) => <Row key={r.kri ?? `${r.mesh}/${r.namespace}/${r.name}`} resource={r} />)}</tbody>
          </table>
        </div>
      )}
      <LeftOut count={found.data?.leftOut} />
      {found.data !== undefined && found.data.total > 0 && (
        <p className="row">
          {offset > 0 && <button onClick={() => onOffset(Math.max(0, offset - pageSize))}>Previous</button>}
          <span className="count">{items.length > 0 && `${offset + 1} to ${offset + items.length} of `}{found.data.total}</span>
          {found.data.next !== null && <button onClick={() => onOffset(offset + pageSize)}>Next</button>}
        </p>
      )}
    </>
  );
}

/** none says why a list shows nothing, and no more than is known. */
function none(type: ListProps["type"], asked: Asked, list: { total: number; leftOut?: number }): string {
  if (list.total > 0) return `There are only ${list.total}.`;
  const which = list.leftOut === undefined ? "" : " that you may read";
  const { offset: _offset, ...others } = question({ ...asked, name: "" });
  if (others.namespace !== undefined || others.filter !== undefined) return `No ${type.singularDisplayName}${which} matches.`;
  return (asked.name ?? "") === "" ? `There is no ${type.singularDisplayName}${which}.` : `No name${which} contains ${asked.name}.`;
}

function Row({ resource: r }: { resource: Resource }) {
  const label = (key: string) => r.labels?.[key] ?? "";
  const shown = label("kuma.io/display-name") || (r.name ?? "");
  return (
    <tr>
      <th scope="row">{r.kri === undefined ? shown : <KRI kri={r.kri} text={shown} />}{shown !== r.name && <small> {r.name}</small>}</th>
      <td>{r.mesh}</td>
      <td>{r.namespace ?? label("k8s.kuma.io/namespace")}</td>
      <td>{label("kuma.io/policy-role")}</td>
      <td>{label("kuma.io/zone") || label("kuma.io/origin")}</td>
      <td><Time at={date(r.modificationTime)} /></td>
    </tr>
  );
}

