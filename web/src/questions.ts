import { answered, api, type Schema } from "./api";
import type { Question } from "./ask";

// Questions of the first view, which start.ts asks before the view is there.

/** whoAmI and index are asked again after each sign-in. */
export const whoAmI = (signedIn: number): Question<Schema["WhoAmI"]> => ({
  name: `who ${signedIn}`,
  ask: (signal) => answered(api.GET("/who-am-i", { signal })),
});

export const index = (signedIn: number): Question<Schema["Index"]> => ({
  name: `server ${signedIn}`,
  ask: (signal) => answered(api.GET("/", { signal })),
});

export const insight: Question<Schema["GlobalInsight"]> = {
  name: "insight",
  ask: (signal) => answered(api.GET("/global-insight", { signal })),
};

// With a revision, from which a view waits for changes: none that follows the answer is missed.
const brief = { size: 1000, brief: "true", watch: "0" } as const;

export const zones: Question<Schema["Overviews"]> = {
  name: "zones",
  ask: (signal) => answered(api.GET("/zones/_overview", { params: { query: brief }, signal })),
};

export const proxies: Question<Schema["Overviews"]> = {
  name: "proxies",
  ask: (signal) => answered(api.GET("/dataplanes/_overview", { params: { query: brief }, signal })),
};

export const resourceTypes: Question<Schema["ResourceTypes"]> = {
  name: "types",
  ask: (signal) => answered(api.GET("/_resources", { signal })),
};
