import { useSyncExternalStore } from "react";

/**
 * View is what the page shows, as its URL says it: /ui/PAGE?KEY=VALUE#KEY=VALUE. What stands after # no browser sends:
 * texts that are too long for a request line, or that are not for the logs on the way.
 */
export interface View {
  page: string;
  query: URLSearchParams;
}

const base = "/ui/";
const moved = "causeway:moved";

export function parseView(url: string): View {
  const at = new URL(url);
  const query = new URLSearchParams([...at.searchParams, ...new URLSearchParams(at.hash.slice(1))]);
  return { page: at.pathname.startsWith(base) ? at.pathname.slice(base.length) : "", query };
}

type Values = Record<string, string | undefined>;

/** href returns the URL of a view. Empty values are left out. unsent are the values that no browser sends. */
export function href(page: string, query: Values = {}, unsent: Values = {}): string {
  return base + page + written("?", query) + written("#", unsent);
}

function written(sign: string, values: Values): string {
  const given = Object.entries(values).filter((e): e is [string, string] => e[1] !== undefined && e[1] !== "");
  return given.length === 0 ? "" : sign + new URLSearchParams(given).toString();
}

/** go shows a view. replace keeps it out of the browser's history, for what is typed letter by letter. */
export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(moved));
  if (!replace) window.scrollTo(0, 0);
}

/** amend changes a part of the question of the view that is shown. */
export function amend(change: Values): void {
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
