import "./start";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { finish } from "./oidc";
import "./styles.css";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
// A browser that comes back from an identity provider is signed in before anything is asked.
void finish().then((failed) => {
  createRoot(root).render(
    <StrictMode>
      <App failed={failed} />
    </StrictMode>,
  );
});
