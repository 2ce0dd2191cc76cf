import { begin } from "./ask";
import { index, insight, proxies, resourceTypes, whoAmI, zones } from "./questions";
import { href } from "./view";

// main.tsx imports this first: what the first view needs is on its way while the browser still runs the rest of the program.
// Nobody is signed in yet, and where a browser comes back from an identity provider somebody is about to be. A server that
// does not know the caller is asked nothing more.
if (window.location.pathname !== href("signin")) {
  const known = Promise.all([begin(index(0)), begin(whoAmI(0))]);
  known.then(
    ([server]) => {
      if (window.location.pathname !== href("")) return;
      void begin(insight);
      void begin(server.mode === "global" ? zones : proxies);
      void begin(resourceTypes);
    },
    () => undefined, // the page says why
  );
}
