import { useSyncExternalStore } from "react";

/** View is what the page shows, as its URL says it: /ui/PAGE?KEY=VALUE. */
export interface View {
  page: string;
  query: URLSearchParams;
}

const base = "/ui/";
const moved = "causeway:moved";

export function parseView(url: string): View {
  const at = new URL(url);
  return { page: at.pathname.startsWith(base) ? at.pathname.slice(base.length) : "", query: at.searchParams };
}

/** href returns the URL of a view. Empty values are left out. */
export function href(page: string, query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((e): e is [string, string] => e[1] !== undefined && e[1] !== "");
  const text = new URLSearchParams(given).toString();
  return base + page + (text === "" ? "" : `?${text}`);
}

/** go shows a view. replace keeps it out of the browser's history, for what is typed letter by letter. */
export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(moved));
  if (!replace) window.scrollTo(0, 0);
}

/** amend changes a part of the question of the view that is shown. */
export function amend(change: Record<string, string>): void {
  const { page, query } = parseView(window.location.href);
  go(href(page, { ...Object.fromEntries(query), ...change }), true);
}

function subscribe(tell: () => void): () => void {
  window.addEventListener("popstate", tell);
  window.addEventListener(moved, tell);
  return () => {
    window.removeEventListener("popstate", tell);
    window.removeEventListener(moved, tell);
  };
}

export function useView(): View {
  return parseView(useSyncExternalStore(subscribe, () => window.location.href));
}
