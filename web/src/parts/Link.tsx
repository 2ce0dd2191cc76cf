import type { MouseEvent, ReactNode } from "react";
import { go } from "../view";

/** Link leads to another view of the page. It is a real link: it can be copied, and opened beside this one. name says where to, when what it shows does not. */
export function Link({ to, current, name, children }: { to: string; current?: boolean; name?: string; children?: ReactNode }) {
  return <a href={to} onClick={(e) => follow(e, to)} aria-current={current === true ? "page" : undefined} aria-label={name}>{children}</a>;
}

function follow(e: MouseEvent, to: string) {
  if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  go(to);
}

/** followWithin follows the link of the page in which a click is: a list of a thousand has one listener. */
export function followWithin(e: MouseEvent) {
  const to = e.target instanceof Element ? e.target.closest("a")?.getAttribute("href") : undefined;
  if (to !== undefined && to !== null) follow(e, to);
}

/** KRI links a KRI to the page of its resource. What decides may also be a word, such as default. */
export function KRI({ kri, text }: { kri: string; text?: string }) {
  if (!kri.startsWith("kri_")) return <>{text ?? kri}</>;
  const resource = kri.slice(0, kri.lastIndexOf("_") + 1); // without the section
  return <Link to={`/ui/resource?${new URLSearchParams({ kri: resource })}`}>{text ?? kri}</Link>;
}
