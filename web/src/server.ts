import type { Schema } from "./api";

/** Server is what GET / says of the server that serves the page. */
export type Server = Schema["Index"];
