import { useState } from "react";
import { Button } from "react-aria-components";
import { answered, api, type Resource } from "../api";
import { useAnswer } from "../ask";
import { href } from "../view";
import { AsOf } from "./AsOf";
import { LeftOut } from "./LeftOut";
import { Link } from "./Link";

const most = 50;

interface Props {
  of: Resource;
  plural: string;
}

/** Concerned lists the proxies that a policy selects, or that answer for a MeshService, once a person wants them: the server looks at all. */
export function Concerned(props: Props) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <h2>Proxies that it concerns</h2>
      {asked ? <Proxies {...props} /> : <p><Button onPress={() => setAsked(true)}>List them</Button></p>}
    </>
  );
}

function Proxies({ of: r, plural }: Props) {
  const path = { mesh: r.mesh ?? "", plural, name: r.kri ?? "" };
  const found = useAnswer(`concerned ${path.name}`, (signal) =>
    answered(api.GET("/meshes/{mesh}/{plural}/{name}/_resources/dataplanes", { params: { path, query: { size: most } }, signal })), r.modificationTime);
  const d = found.data;
  return (
    <>
      <AsOf answer={found} />
      {d !== undefined && (
        <>
          {d.total === 0 && <p>It concerns no proxy that {d.leftOut === undefined ? "is known here" : "you may read"}.</p>}
          <ul>
            {d.items.map((p) => (
              <li key={p.kri ?? p.name}>{p.kri === undefined ? p.name : <Link to={href("proxy", { kri: p.kri })}>{[p.labels["kuma.io/zone"], p.labels["k8s.kuma.io/namespace"], p.labels["kuma.io/display-name"] ?? p.name].filter((t) => t !== undefined && t !== "").join("/")}</Link>}</li>
            ))}
          </ul>
          {d.total > d.items.length && <p className="note">The first {d.items.length} of {d.total} are listed: <code>causewayctl inspect policy</code> counts all.</p>}
          <LeftOut count={d.leftOut} />
        </>
      )}
    </>
  );
}
