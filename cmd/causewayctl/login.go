package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential/contexts"
	"github.com/causeway-mesh/causeway/credential/session"
)

// loginFlags select how a person signs in.
type loginFlags struct {
	device, browser, use bool
	ca                   string
}

func newLogin(c *cli) *cobra.Command {
	flags := &loginFlags{}
	cmd := &cobra.Command{
		Use:   "login [CONTEXT]",
		Short: "Sign in at the identity provider of a server",
		Long: "Signs you in to a context: the named one, or the current one. With --address, it creates the context\n" +
			"first. The server names the identity provider that it trusts (--api-oidc-issuer). You sign in there,\n" +
			"in the browser of this machine or, with --device, on any other machine. The tokens stay in a file\n" +
			"beside the contexts file that only you can read, and are renewed as long as the provider allows.\n" +
			"After that, commands exit with 3: run login again.\n\n" +
			"The provider must know the server's client ID as a public client, with the redirect URI\n" +
			"http://127.0.0.1/callback of any port, or with device codes (RFC 8628). Servers without a provider\n" +
			"accept user tokens and client certificates: see causewayctl config set-context.",
		Example: "  causewayctl login global --address https://global.example:5681 --ca ca.crt\n" +
			"  causewayctl login --device",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(explainTransport(c.address, c.kube.about(c.login(cmd.Context(), flags, args))))
		},
	}
	cmd.Flags().BoolVar(&flags.device, "device", false, "show a code to enter in a browser on any machine")
	cmd.Flags().BoolVar(&flags.browser, "browser", false, "sign in with a browser on this machine; the default where one can be opened")
	cmd.Flags().StringVar(&flags.ca, "provider-ca", "", "PEM `file` of the CA that signed the identity provider's certificate; the system's when empty")
	cmd.Flags().BoolVar(&flags.use, "use", false, "also make it the current context")
	cmd.MarkFlagsMutuallyExclusive("device", "browser")
	return cmd
}

// login signs in, and keeps nothing before the server accepts the token.
func (c *cli) login(ctx context.Context, flags *loginFlags, args []string) error {
	files, err := contexts.ReadFiles(c.context.file)
	if err != nil {
		return usagef("%w", err)
	}
	target, err := c.loginTarget(ctx, files, args)
	if err != nil {
		return err
	}
	client, err := c.connect()
	if err != nil {
		return err
	}
	provider, err := c.providerOf(ctx, client, flags)
	if err != nil {
		return err
	}
	signedIn, err := c.signIn(ctx, provider, flags)
	if err != nil {
		return aboutProvider(err)
	}
	signedIn.Server = c.address
	who, err := c.whoIs(ctx, signedIn)
	if err != nil {
		return err
	}
	if err := c.keep(ctx, target, signedIn, flags.use); err != nil {
		return err
	}
	return c.show(&loginResult{Context: target.Name, User: who.Name, Groups: who.Groups, Provider: signedIn.Issuer,
		Until: signedIn.Ends, Renewed: signedIn.RefreshToken != ""}, nil)
}

// loginTarget returns the context to sign in to, and applies it without its session.
func (c *cli) loginTarget(ctx context.Context, files *contexts.Files, args []string) (*contexts.Context, error) {
	given := c.credential.flags.Changed
	for _, flag := range []string{"token", "token-file", "client-cert", "client-key"} {
		if given(flag) {
			return nil, usagef("--%s: login gets a credential and needs none; to keep this one, use causewayctl config set-context", flag)
		}
	}
	name := cmp.Or(append(args, c.context.name, files.Current())...)
	if len(args) > 0 && c.context.name != "" && args[0] != c.context.name {
		return nil, usagef("--context %s and %s are both given: give one", c.context.name, args[0])
	}
	if name == "" {
		return nil, usagef("there is no current context: causewayctl login NAME --address URL makes one")
	}
	found, err := files.Find(name)
	switch {
	case err != nil && !given("address"):
		known := ""
		if names := files.Names(); len(names) > 0 {
			known = "there are " + strings.Join(names, ", ") + "; "
		}
		return nil, usagef("there is no context %q: %scausewayctl login %s --address URL makes it", name, known, name)
	case err != nil:
		if found, err = c.contextOfFlags(ctx, name); err != nil {
			return nil, err
		}
	case given("address") && found.Address != c.address:
		return nil, usagef("context %s is for %s: leave --address out, or give the context another name", name, found.Address)
	case found.TokenFile != "" || found.ClientCert != "":
		return nil, usagef("context %s shows a %s: sign in to another context, causewayctl login NAME --address %s", name, credentialText(found), found.Address)
	}
	anonymous := *found
	anonymous.SessionFile = ""
	c.context.chosen = true
	if err := c.apply(&anonymous); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(c.address, "https://") && !loopbackURL(c.address) {
		return nil, usagef("--address %s: a token is not sent in plaintext to another machine: use https", c.address)
	}
	return found, nil
}

// providerOf asks the server for its identity provider, and that one for what it offers.
func (c *cli) providerOf(ctx context.Context, client *api.Client, flags *loginFlags) (*session.Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var how struct {
		Issuer   string `json:"issuer"`
		ClientID string `json:"clientId"`
	}
	err := client.JSON(ctx, api.Request{Path: "/ui/signin.json"}, &how)
	if answer := (*api.Error)(nil); errors.As(err, &answer) && answer.Status == http.StatusNotFound || err == nil && how.Issuer == "" {
		return nil, &advised{fmt.Errorf("%s has no identity provider", c.address),
			"name a token or a client certificate: causewayctl config set-context; a server gets a provider by --api-oidc-issuer"}
	}
	if err != nil {
		return nil, err
	}
	settings := session.Settings{Issuer: how.Issuer, ClientID: how.ClientID}
	if flags.ca != "" {
		if settings.CAFile, err = filepath.Abs(flags.ca); err != nil {
			return nil, err
		}
	}
	provider, err := session.Discover(ctx, settings)
	if err != nil {
		return nil, aboutProvider(err)
	}
	return provider, nil
}

// signIn has the person sign in, in the browser of this machine or of another.
func (c *cli) signIn(ctx context.Context, provider *session.Provider, flags *loginFlags) (*session.Session, error) {
	if flags.device || !flags.browser && provider.OffersDevice() && !canOpenBrowser() {
		return provider.ByCode(ctx, func(code session.Code) {
			fmt.Fprintf(c.errOut, "in a browser, on any machine, open %s\nand enter the code %s before %s\n", code.At, code.User,
				code.Ends.Local().Format("15:04:05 MST"))
			if code.Complete != "" {
				fmt.Fprintf(c.errOut, "or open %s\n", code.Complete)
			}
		})
	}
	return provider.ByBrowser(ctx, func(at string) {
		if err := openBrowser(ctx, at); err != nil {
			fmt.Fprintf(c.errOut, "open this in a browser of this machine; on another, run causewayctl login --device:\n%s\n", at)
			return
		}
		fmt.Fprintf(c.errOut, "sign in in the browser; if none opens, open\n%s\n", at)
	})
}

// whoIs returns who the server says that a session is.
func (c *cli) whoIs(ctx context.Context, s *session.Session) (*api.WhoAmI, error) {
	config := api.ClientConfig{Address: c.address, Timeout: c.timeout}
	var err error
	if config.Dial, err = c.kube.dialer(c); err != nil {
		return nil, err
	}
	if err := c.credential.apply(&config, c.caFile); err != nil {
		return nil, err
	}
	config.Token = s.IDToken
	client, err := api.NewClient(config)
	if err != nil {
		return nil, err
	}
	who := &api.WhoAmI{}
	if err := client.JSON(ctx, api.Request{Path: "/who-am-i"}, who); err != nil {
		if answer := (*api.Error)(nil); errors.As(err, &answer) && answer.Status == http.StatusUnauthorized {
			return nil, &advised{fmt.Errorf("%s does not accept the token of %s: %w", c.address, s.Issuer, err),
				"do the clocks agree, and do --api-oidc-client-id and --api-oidc-user-claim fit? The server's log says more"}
		}
		return nil, err
	}
	return who, nil
}

// keep writes the session, then the context that names it. Signing in took a while: the files are read again.
func (c *cli) keep(ctx context.Context, target *contexts.Context, s *session.Session, use bool) error {
	return c.editContexts(ctx, func() error {
		files, err := contexts.ReadFiles(c.context.file)
		if err != nil {
			return usagef("%w", err)
		}
		file, first := files.Holding(target.Name), files.First()
		if file == nil {
			return usagef("there is no folder of configurations: set --config FILE")
		}
		if now, err := files.Find(target.Name); err == nil && !sameButSession(*now, *target) {
			return fmt.Errorf("context %s was changed while you signed in: run causewayctl login again", target.Name)
		}
		target.SessionFile = session.Path(file.Path(), target.Name)
		if absolute, err := filepath.Abs(target.SessionFile); err == nil {
			target.SessionFile = absolute
		}
		if err := c.keepSession(ctx, target.SessionFile, s); err != nil {
			return err
		}
		file.Set(*target)
		if use || files.Current() == "" {
			first.CurrentContext = target.Name
		}
		return saveContexts(file, first)
	})
}

// sameButSession reports whether two contexts differ in nothing but their sessions.
func sameButSession(a, b contexts.Context) bool {
	a.SessionFile, b.SessionFile = "", ""
	return a == b
}

// keepSession replaces the session in a file.
func (c *cli) keepSession(ctx context.Context, path string, s *session.Session) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	release, err := session.Hold(ctx, path)
	if err != nil {
		return err
	}
	defer release()
	return s.Save(path)
}

// loginResult is who is signed in, and until when.
type loginResult struct {
	Context  string    `json:"context"`
	User     string    `json:"user"`
	Groups   []string  `json:"groups"`
	Provider string    `json:"provider"`
	Until    time.Time `json:"until"`
	Renewed  bool      `json:"renewed"`
}

func (r *loginResult) print(out io.Writer) error {
	t := &table{}
	t.add("context", r.Context)
	t.add("user", r.User)
	t.add("groups", strings.Join(r.Groups, ", "))
	t.add("provider", r.Provider)
	until := r.Until.Local().Format("2006-01-02 15:04:05 MST")
	if r.Renewed {
		until += ", then renewed for as long as the provider allows"
	}
	t.add("until", until)
	return t.print(out)
}

// aboutProvider adds what to do to an error of the identity provider.
func aboutProvider(err error) error {
	refusal, unknown := (*session.RefusedError)(nil), x509.UnknownAuthorityError{}
	switch {
	case errors.As(err, &refusal) && (refusal.Code == "invalid_client" || refusal.Code == "unauthorized_client"):
		return &advised{err, "register the server's client ID at the provider as a public client, with PKCE or with device codes"}
	case errors.As(err, &refusal) && refusal.Code == "access_denied":
		return &advised{err, "you, or the provider, said no; run causewayctl login again to try as somebody else"}
	case errors.As(err, &unknown):
		return &advised{err, "give the provider's CA by --provider-ca FILE"}
	case errors.Is(err, session.ErrNoDevice):
		return &advised{err, "leave --device out and sign in with a browser on this machine, or enable device codes at the provider"}
	}
	return err
}
