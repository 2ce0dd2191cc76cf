import { Input, Label, SearchField } from "react-aria-components";
import { answered, api, type Resource, type Schema } from "../api";
import { useAnswer } from "../ask";
import { AsOf } from "../parts/AsOf";
import { Failure } from "../parts/Failure";
import { LeftOut } from "../parts/LeftOut";
import { KRI } from "../parts/Link";
import { Time } from "../parts/Time";
import { date } from "../text";
import { go, href } from "../view";
import { useChanges } from "../watch";

const pageSize = 50;

/** Resources lists one type; the server selects and pages. */
export function Resources({ query }: { query: URLSearchParams }) {
  const types = useAnswer("types", (signal) => answered(api.GET("/_resources", { signal })));
  const plural = query.get("type") ?? "meshtrafficpermissions";
  const all = types.data?.resources ?? [];
  const type = all.find((t) => t.path === plural);
  const set = (change: Record<string, string>, replace = false) =>
    go(href("resources", { ...Object.fromEntries(query), type: plural, offset: "", ...change }), replace);

  return (
    <section>
      <h1>{type?.pluralDisplayName ?? "Resources"}</h1>
      {types.refusal !== undefined && <Failure refusal={types.refusal} />}
      <div className="filters">
        <label>
          Type
          <select value={plural} onChange={(e) => set({ type: e.target.value, name: "" })}>
            <optgroup label="Policies">{all.filter((t) => t.policy !== undefined).map(option)}</optgroup>
            <optgroup label="Others">{all.filter((t) => t.policy === undefined).map(option)}</optgroup>
          </select>
        </label>
        <Search name={query.get("name") ?? ""} onChange={(name) => set({ name }, true)} />
      </div>
      {type !== undefined && (
        <List type={type} name={query.get("name") ?? ""} offset={Number(query.get("offset") ?? 0) || 0} onOffset={(o) => set({ offset: String(o) })} />
      )}
    </section>
  );
}

function option(t: Schema["ResourceTypes"]["resources"][number]) {
  return <option key={t.path} value={t.path}>{t.name}</option>;
}

/** Search shows what the URL says, so that the list is never of something else. */
function Search({ name, onChange }: { name: string; onChange: (name: string) => void }) {
  return (
    <SearchField value={name} onChange={onChange}>
      <Label>Name contains</Label>
      <Input />
    </SearchField>
  );
}

interface ListProps {
  type: Schema["ResourceTypes"]["resources"][number];
  name: string;
  offset: number;
  onOffset: (offset: number) => void;
}

function List({ type, name, offset, onOffset }: ListProps) {
  const found = useAnswer(`${type.path} ${offset} ${name}`, (signal) =>
    answered(api.GET("/{plural}", {
      params: { path: { plural: type.path }, query: { size: pageSize, offset, name: name === "" ? undefined : name } },
      signal,
    })),
  );
  const live = useChanges(type.path, found.again);
  const items = (found.data?.items ?? []) as Resource[];
  return (
    <>
      <AsOf answer={found} live={live} />
      {found.data !== undefined && items.length === 0 && <p>{none(type, name, found.data)}</p>}
      {items.length > 0 && (
        <div className="scroll">
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
      {found.data !== undefined && (offset > 0 || found.data.next !== null) && (
        <p className="row">
          {offset > 0 && <button onClick={() => onOffset(Math.max(0, offset - pageSize))}>Previous</button>}
          <span>{items.length > 0 && `${offset + 1} to ${offset + items.length} of `}{found.data.total}</span>
          {found.data.next !== null && <button onClick={() => onOffset(offset + pageSize)}>Next</button>}
        </p>
      )}
    </>
  );
}

/** none says why a list shows nothing, and no more than is known. */
function none(type: ListProps["type"], name: string, list: { total: number; leftOut?: number }): string {
  if (list.total > 0) return `There are only ${list.total}.`;
  const which = list.leftOut === undefined ? "" : " that you may read";
  return name === "" ? `There is no ${type.singularDisplayName}${which}.` : `No name${which} contains ${name}.`;
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

