import { useEffect, useRef, useState } from "react";
import { api } from "./api";
import type { Answer } from "./ask";

// A burst of changes is one question. A server that is away is asked more and more seldom.
const pause = 200;
const longest = 30_000;

/** Live says whether changes arrive by themselves, and if not, why. */
export interface Live {
  live: boolean;
  why?: string;
}

/** Ask asks a list that waits (`?watch=REVISION`) what is there after a revision. */
type Ask = (watch: string, signal: AbortSignal) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

/**
 * useChanges calls changed when a resource of a type has changed. A page that nobody looks at waits for nothing. An empty
 * plural watches nothing.
 */
export function useChanges(plural: string, changed: () => void): Live {
  const ask: Ask = (watch, signal) => api.GET("/{plural}", { params: { path: { plural }, query: { watch: Number(watch), size: 0 } }, signal });
  return useWatch(plural, ask, changed, pause);
}

/** Since is what a watch needs of the answer that it follows: what it was asked with `watch=0` has its revision. */
type Since = Answer<{ revision?: string | undefined }>;

/** useConnections calls changed when a zone or a proxy has connected, disconnected, answered or changed after an answer. A storm of them is a few questions. */
export function useConnections(of: "zones" | "dataplanes", since: Since, changed: () => void): Live {
  const ask: Ask = (watch, signal) => api.GET(`/${of}/_overview`, { params: { query: { watch, size: 0 } }, signal });
  const from = useFirst(since);
  return useWatch(from === undefined ? "" : `${of} and who is connected`, ask, changed, 10 * pause, from);
}

/** useProblems calls changed when a problem of a proxy anywhere begins, ends or is another one after an answer. Without enabled it watches nothing. */
export function useProblems(enabled: boolean, since: Since, changed: () => void): Live {
  const ask: Ask = (watch, signal) => api.GET("/dataplanes/_overview", { params: { query: { watch, size: 0, problems: "true" } }, signal });
  const from = useFirst(since);
  return useWatch(!enabled || from === undefined ? "" : "problems of proxies", ask, changed, 10 * pause, from);
}

/** useFirst returns the revision of the first answer of a view: nothing that changes after it is missed. */
function useFirst(since: Since): string | undefined {
  const first = useRef<string>(undefined);
  first.current ??= revisionOf(since);
  return first.current;
}

/** revisionOf returns the revision of an answer, 0 of a refusal, and nothing while the question is under way. */
export function revisionOf({ asking, data, refusal }: Since): string | undefined {
  if (asking) return undefined;
  // An older answer that is still shown is no reason to say that changes arrive.
  return refusal === undefined ? (data?.revision ?? "0") : "0";
}

/** useSync calls changed when anything of the sync of a zone with its global has changed. Without a name it is the asked zone's own. */
export function useSync(name: string | undefined, changed: () => void): Live {
  const ask: Ask = (watch, signal) => name === undefined ? api.GET("/_sync", { params: { query: { watch } }, signal }) : api.GET("/zones/{name}/_sync", { params: { path: { name }, query: { watch } }, signal });
  return useWatch(`sync ${name ?? ""}`, ask, changed, 10 * pause);
}

/** useWatch follows what a key names, if it is not empty, from a revision on. */
function useWatch(key: string, ask: Ask, changed: () => void, rest: number, from = "0"): Live {
  const [state, setState] = useState<Live>({ live: false });
  const tell = useRef(changed);
  tell.current = changed;
  // Where the view learns what to watch after it has asked, a change may have come between.
  const late = useRef(key === "");
  const begin = useRef(from);
  begin.current = from;

  useEffect(() => {
    if (key === "") return;
    const control = new AbortController();
    const say = (now: Live) => setState((old) => (old.live === now.live && old.why === now.why ? old : now));
    void follow(ask, rest, control.signal, () => tell.current(), say, begin.current, late.current);
    return () => control.abort();
    // The key stands for everything that ask reads.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, rest]);

  return state;
}

/** follow tells of each change after a revision. From 0 it is the first one, of which it tells if that comes late. */
async function follow(ask: Ask, rest: number, signal: AbortSignal, changed: () => void, say: (l: Live) => void, revision: string, late: boolean) {
  let wait = 1000;
  if (revision !== "0") say({ live: true }); // the server gave it to wait from
  while (!signal.aborted) {
    await seen(signal);
    const shown = whileSeen(signal);
    const begun = Date.now();
    const step = await next(ask, revision, shown.signal);
    shown.end();
    if (signal.aborted) return;
    if (shown.signal.aborted) continue;
    if (step.final) {
      say({ live: false, why: step.why });
      if (revision !== "0") changed(); // what could be read until now: the view asks, and shows why it may no longer
      return;
    }
    if (step.why !== undefined) {
      say({ live: false, why: step.why });
      late = true;
      await sleep(wait, signal);
      wait = Math.min(longest, 2 * wait);
      continue;
    }
    wait = 1000;
    say({ live: true });
    if (step.revision === undefined) { // nothing has changed; a server that ends says so at once
      await sleep(Math.max(0, 1000 - (Date.now() - begun)), signal);
      continue;
    }
    if (revision !== "0" || late) changed();
    late = false;
    // A revision that does not move on is not asked for again at once.
    await sleep(step.revision !== revision ? rest : Math.max(1000, rest), signal);
    revision = step.revision;
  }
}

interface Step {
  revision?: string;
  why?: string;
  final?: boolean;
}

/** next waits for one change. What is refused stays refused, but for a server that is away or busy. */
async function next(ask: Ask, revision: string, signal: AbortSignal): Promise<Step> {
  try {
    const { data, error, response } = await ask(revision, signal);
    if (response.status === 204) return {};
    if (response.ok) return { revision: String((data as { revision?: number | string } | undefined)?.revision ?? 0) };
    const busy = response.status === 429 || response.status >= 500;
    return { why: (error as { detail?: string } | undefined)?.detail ?? `the server answers ${response.status}`, final: !busy };
  } catch {
    return { why: "the server does not answer" };
  }
}

/** seen waits until somebody looks at the page. */
export function seen(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === "visible" || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState !== "visible" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}

/**
 * whileSeen returns a signal for a request that waits: hiding the page aborts it, too. A browser has six connections to a
 * server for all of its tabs. The caller must call end after the request.
 */
export function whileSeen(signal: AbortSignal): { signal: AbortSignal; end: () => void } {
  const control = new AbortController();
  const look = () => {
    if (document.visibilityState !== "visible" || signal.aborted) control.abort();
  };
  document.addEventListener("visibilitychange", look);
  signal.addEventListener("abort", look);
  look();
  return {
    signal: control.signal,
    end: () => {
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
    },
  };
}

/** sleep waits, or until the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

// When a rollout that is not complete is asked for again, in ms after a change. Then it is left to the person.
const steps = [300, 700, 1500, 3000, 6000, 12_000, 24_000];

// A change that is older than this is not followed: the person who opens its view has the answer of now.
const recent = 60_000;

/**
 * useFollowed asks again a few times after a change that was made just now, until complete: how far a change has come has
 * no revision to wait for.
 */
export function useFollowed(change: string, at: Date | undefined, complete: boolean, again: () => void, delays = steps): void {
  const old = at === undefined || Date.now() - at.getTime() > recent;
  useEffect(() => {
    if (complete || old) return;
    const timers = delays.map((ms) => setTimeout(() => document.visibilityState === "visible" && again(), ms));
    return () => timers.forEach(clearTimeout);
  }, [change, old, complete, again, delays]);
}
