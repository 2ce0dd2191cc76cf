import type { MouseEvent, ReactNode } from "react";
import { go } from "../view";

/** Link leads to another view of the page. It is a real link: it can be copied, and opened beside this one. name says where to, when what it shows does not. */
export function Link({ to, current, name, children }: { to: string; current?: boolean; name?: string; children?: ReactNode }) {
  const follow = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  };
  return <a href={to} onClick={follow} aria-current={current === true ? "page" : undefined} aria-label={name}>{children}</a>;
}

/** KRI links a KRI to the page of its resource. What decides may also be a word, such as default. */
export function KRI({ kri, text }: { kri: string; text?: string }) {
  if (!kri.startsWith("kri_")) return <>{text ?? kri}</>;
  const resource = kri.slice(0, kri.lastIndexOf("_") + 1); // without the section
  return <Link to={`/ui/resource?${new URLSearchParams({ kri: resource })}`}>{text ?? kri}</Link>;
}
