import { answered, api, Refusal } from "../api";
import { useAnswer } from "../ask";
import type { Server } from "../server";
import { ofItsGlobal, ofItsStore } from "../sync";

/** Knowledge says why what is below it may not be the newest, where that is so. of is what the page is about. */
export function Knowledge({ server, of }: { server: Server; of: string }) {
  const doubt = useAnswer(`knowledge ${of}`, (signal) => (server.mode === "zone" ? zone(signal) : global(signal)));
  const text = doubt.data?.text ?? (doubt.refusal === undefined ? undefined : `Whether what is below is the newest is unknown: ${doubt.refusal.message}`);
  return text === undefined ? null : <p className="warning">{text}</p>;
}

async function zone(signal: AbortSignal): Promise<{ text?: string }> {
  try {
    return { text: ofItsGlobal(await answered(api.GET("/_sync", { signal }))) };
  } catch (failure) {
    if (failure instanceof Refusal && failure.status === 404) return {}; // it runs alone
    throw failure;
  }
}

async function global(signal: AbortSignal): Promise<{ text?: string }> {
  return { text: ofItsStore((await answered(api.GET("/_replicas", { signal }))).items) };
}
