import { expect, test } from "vitest";
import { keysAt, place, valuesAt, type Schemas } from "./completion";

const match = { fields: { spiffeId: { fields: { type: { values: ["Exact", "Prefix"] }, value: {} } }, method: { items: { values: ["GET", "POST"] } } } };
const schemas: Schemas = {
  MeshTrafficPermission: {
    path: "meshtrafficpermissions", mesh: true,
    spec: {
      fields: {
        targetRef: { about: "Whom it selects.", fields: { kind: { values: ["Mesh", "Dataplane", "MeshService"] }, name: {}, labels: { each: {} } } },
        rules: { items: { fields: { default: { fields: { allow: { items: match }, deny: { items: match } } } } } },
      },
    },
  },
  MeshService: { path: "meshservices", mesh: true, spec: { fields: { ports: { items: { fields: { port: {} } } } } } },
  Dataplane: { path: "dataplanes", mesh: true, flat: true, spec: { fields: { networking: { fields: { address: {} } } } } },
  Mesh: { path: "meshes", flat: true, spec: {} },
};

/** at asks at the | in a text. */
function at(text: string) {
  const position = text.indexOf("|");
  const found = place(text.replace("|", ""), position);
  if (found === undefined) return "nothing";
  if (!found.value) return keysAt(schemas, found).map(([name]) => name).filter((n) => n.startsWith(found.typed)).join(" ");
  const { values, names } = valuesAt(schemas, found);
  if (names === undefined) return values.filter((v) => v.startsWith(found.typed)).join(" ");
  return names.kind === "type" ? `${names.type} in ${names.mesh ?? "none"}` : `identities in ${names.mesh}`;
}

const head = "type: MeshTrafficPermission\nmesh: shop\nname: a\n";

test.each([
  ["|", "type mesh name namespace labels"],
  ["ty|", "type"],
  ["type: Mesh|", "MeshTrafficPermission MeshService Mesh"],
  [`${head}|`, "namespace labels spec"],
  [`${head}spec:\n  |`, "targetRef rules"],
  [`${head}spec:\n  targetRef: {kind: Mesh}\n  ru|`, "rules"],
  [`${head}spec:\n  targetRef: {|`, "kind name labels"],
  [`${head}spec:\n  targetRef: {kind: Da|`, "Dataplane"],
  [`${head}spec:\n  targetRef: {kind: MeshService, name: b|`, "MeshService in shop"],
  [`${head}spec:\n  targetRef:\n    name: |\n    kind: Dataplane\n`, "Dataplane in shop"],
  [`${head}spec:\n  rules:\n    - de|`, "default"],
  [`${head}spec:\n  rules:\n  - default:\n      |`, "allow deny"],
  [`${head}spec:\n  rules:\n    - default:\n        allow:\n          - spi|`, "spiffeId"],
  [`${head}spec:\n  rules:\n    - default:\n        allow:\n          - spiffeId: {type: Exact, value: spiffe://a/b}\n            me|`, "method"],
  [`${head}spec:\n  rules:\n    - default:\n        allow:\n          - spiffeId:\n              type: |`, "Exact Prefix"],
  [`${head}spec:\n  rules:\n    - default:\n        deny:\n          - method: [GET, P|`, "POST"],
  [`${head}spec:\n  rules:\n    - default:\n        deny:\n          - spiffeId: {type: Exact, value: spiffe:|`, "identities in shop"],
  ["mesh: |", "Mesh in none"],
  [`${head}# a comment |`, "nothing"],
  [`${head}---\ntype: Dataplane\n|`, "mesh name namespace labels networking"],
  ["apiVersion: kuma.io/v1alpha1\nkind: MeshService\nmetadata:\n  na|", "name namespace"],
  ["apiVersion: kuma.io/v1alpha1\nkind: MeshService\nspec:\n  |", "ports"],
])("%j", (text, want) => {
  expect(at(text)).toBe(want);
});

test("names that every object has are names like others", () => {
  expect(at("type: constructor\n|")).toContain("mesh");
  expect(at("type: MeshTrafficPermission\nspec:\n  constructor: |")).toBe("");
  expect(at("type: MeshTrafficPermission\nspec:\n  targetRef:\n    kind: constructor\n    name: |")).toBe("");
  expect(at("type: MeshTrafficPermission\nspec:\n  targetRef:\n    __proto__: x\n    na|")).toBe("name");
  expect(at("type: __proto__\ntoString: |")).toBe("");
});

test("a text that nests without end, or is too long, offers nothing and costs little", () => {
  const begun = performance.now();
  expect(at(`${"- ".repeat(200_000)}|`)).toBe("nothing");
  expect(at(`type: Mesh\nspec: ${"{a: ".repeat(200_000)}|`)).toBe("nothing");
  expect(at(`type: Mesh\nlabels:\n${Array.from({ length: 20_000 }, (_, i) => `  k${i}: v\n`).join("")}|`)).toContain("name");
  expect(at(`${"x: y\n".repeat(300_000)}|`)).toBe("nothing");
  expect(performance.now() - begun).toBeLessThan(5000);
});
