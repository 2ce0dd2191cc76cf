import cytoscape from "cytoscape";
import { useEffect, useMemo, useRef } from "react";
import { callerName, edgesOf, named, type Access, type Edge, type Kind } from "../calls";
import { visible } from "../text";
import { amend } from "../view";

// What one screen can show. More is for the matrix.
const most = 400;

/** Graph is who may call whom as lines from callers to services. A click on a line shows its cell. */
export default function Graph({ a, only }: { a: Access; only: Kind }) {
  const frame = useRef<HTMLDivElement>(null);
  const all = useMemo(() => edgesOf(a, only), [a, only]);
  const edges = all.slice(0, most);

  useEffect(() => {
    if (frame.current === null) return;
    const style = getComputedStyle(frame.current);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const [ink, line] = [toRGB(style.color), toRGB(style.borderTopColor)];
    const nodes = new Map<string, cytoscape.ElementDefinition>();
    for (const e of edges) {
      const caller = a.callers[e.column];
      const service = a.services[e.row];
      if (caller === undefined || service === undefined) continue;
      nodes.set(e.source, { data: { id: e.source, label: visible(callerName(caller)), kind: "caller" } });
      nodes.set(e.target, { data: { id: e.target, label: visible(`${service.name}:${service.port}`), kind: "service" } });
    }
    const graph = cytoscape({
      container: frame.current,
      elements: [...nodes.values(), ...edges.map((e) => ({ data: { ...e } }))],
      maxZoom: 3,
      wheelSensitivity: 0.4,
      style: [
        { selector: "node", style: { label: "data(label)", color: ink, "font-size": 11, "background-color": line, width: 18, height: 18, "text-valign": nodes.size > 60 ? "bottom" : "center", "text-halign": nodes.size > 60 ? "center" : "left", "text-margin-x": nodes.size > 60 ? 0 : -6 } },
        { selector: "node[kind = 'service']", style: { shape: "round-rectangle", width: 26, "text-halign": nodes.size > 60 ? "center" : "right", "text-margin-x": nodes.size > 60 ? 0 : 6 } },
        { selector: "edge", style: { width: "data(weight)", "curve-style": "bezier", "target-arrow-shape": "triangle", "line-color": line, "target-arrow-color": line } },
        ...(["allow", "depends", "deny"] as const).map((verdict) => ({
          selector: `edge[verdict = '${verdict}']`,
          style: { "line-color": colour(`--${verdict}`), "target-arrow-color": colour(`--${verdict}`), "line-style": verdict === "allow" ? "solid" as const : "dashed" as const },
        })),
      ],
      layout: nodes.size > 60 ? { name: "concentric", animate: false } as cytoscape.LayoutOptions : { name: "preset", positions: columns(nodes), animate: false } as cytoscape.LayoutOptions,
    });
    if (graph.zoom() > 1.3) graph.zoom(1.3); // few are no larger than many
    graph.center();
    graph.on("tap", "edge", (e) => {
      const data = e.target.data() as Edge;
      amend(named(a, data.row, data.column));
    });
    return () => graph.destroy();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [a, only]);

  return (
    <>
      {all.length === 0 && <p>Nothing matches.</p>}
      <div className="graph" ref={frame} role="img" aria-label={`${edges.length} lines from callers to services; the matrix has the same as a table`} />
      {/* With this id the library adds no style of its own, which the page's policy would refuse. */}
      <p className="note" id="__________cytoscape_stylesheet">
        {all.length > most && `The first ${most} of ${all.length} lines are drawn: choose a namespace or a service. `}
        Thick lines were seen. Broken lines depend on the request, or were denied.
      </p>
    </>
  );
}

/** columns places callers at the left and services at the right, both as high. */
function columns(nodes: Map<string, cytoscape.ElementDefinition>): Record<string, { x: number; y: number }> {
  const ids = [...nodes.keys()];
  const [callers, services] = [ids.filter((id) => id.startsWith("c")), ids.filter((id) => id.startsWith("s"))];
  const height = 48 * Math.max(callers.length, services.length);
  const of = (column: string[], x: number) => column.map((id, i) => [id, { x, y: ((i + 0.5) * height) / column.length }] as const);
  return Object.fromEntries([...of(callers, 0), ...of(services, 460)]);
}

/** toRGB is a colour that a canvas understands. */
function toRGB(colour: string): string {
  return colour.startsWith("rgb") ? colour : "gray";
}
