import { answered, api, type Resource } from "./api";
import { own, type Names, type Schemas } from "./completion";

const most = 20;

/** namesLike asks the server for names that a document may refer to. What may not be read is not offered. */
export async function namesLike(schemas: Schemas, names: Names, typed: string, signal?: AbortSignal): Promise<string[]> {
  if (names.kind === "identities") {
    const query = { size: 1, callers: most, ...(typed === "" ? {} : { caller: typed }) };
    const { callers } = await answered(api.GET("/meshes/{mesh}/_access", { params: { path: { mesh: names.mesh }, query }, signal }));
    return callers.map((c) => c.spiffeId);
  }
  const type = own(schemas, names.type);
  if (type === undefined) return [];
  const plural = type.path;
  const query = { size: most, ...(typed === "" ? {} : { name: typed }) };
  const { items } = names.mesh !== undefined && type.mesh === true
    ? await answered(api.GET("/meshes/{mesh}/{plural}", { params: { path: { mesh: names.mesh, plural }, query }, signal }))
    : await answered(api.GET("/{plural}", { params: { path: { plural }, query }, signal }));
  return [...new Set((items as Resource[]).map((r) => r.labels?.["kuma.io/display-name"] ?? r.name))];
}
