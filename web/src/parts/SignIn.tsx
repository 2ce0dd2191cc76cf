import { useEffect, useState } from "react";
import { Button, Dialog, DialogTrigger, Heading, Input, Label, Modal, ModalOverlay, TextField } from "react-aria-components";
import type { Schema } from "../api";
import { begin, howToSignIn, signOut, type How } from "../oidc";

/** SignIn shows who is signed in, and takes a token or sends to the identity provider. Tokens stay in memory. */
export function SignIn({ who, onToken }: { who: Schema["WhoAmI"] | undefined; onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <div className="who">
      <span>{who === undefined ? "not signed in" : <>{who.name} <small>by {who.method}</small></>}</span>
      <DialogTrigger>
        <Button>Sign in</Button>
        <ModalOverlay className="overlay" isDismissable>
          <Modal>
            <Dialog className="dialog">
              {({ close }) => (
                <form
                  onSubmit={(e) => {
                    e.preventDefault();
                    signOut();
                    onToken(token);
                    setToken("");
                    close();
                  }}
                >
                  <Heading slot="title">Sign in</Heading>
                  <Provider />
                  <TextField value={token} onChange={setToken} type="password" autoComplete="off" autoFocus>
                    <Label>User token</Label>
                    <Input />
                  </TextField>
                  <p>It stays in this page's memory until you close or reload it. <code>causewayctl user token</code> issues
                    one. An empty one signs out.</p>
                  <div className="row"><Button type="submit">Sign in</Button><Button onPress={close}>Cancel</Button></div>
                </form>
              )}
            </Dialog>
          </Modal>
        </ModalOverlay>
      </DialogTrigger>
    </div>
  );
}

/** Provider offers the server's identity provider, if it has one. */
function Provider() {
  const [how, setHow] = useState<How>();
  useEffect(() => {
    const control = new AbortController();
    void howToSignIn(control.signal).then((found) => {
      if (!control.signal.aborted) setHow(found);
    });
    return () => control.abort();
  }, []);
  if (how === undefined) return null;
  return <p><Button onPress={() => void begin(how)}>Sign in at {new URL(how.issuer).host}</Button> or by a token:</p>;
}
