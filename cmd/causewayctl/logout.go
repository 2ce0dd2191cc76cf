package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/credential/contexts"
	"github.com/causeway-mesh/causeway/credential/session"
)

func newLogout(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "logout [CONTEXT]",
		Short: "End the session of a context",
		Long: "Removes the tokens of the named context, or of the current one, and revokes the renewal token at the\n" +
			"identity provider, if the provider supports that. The context stays: commands exit with 3 until you\n" +
			"sign in again. A copied ID token is valid until it expires.",
		Example:           "  causewayctl logout\n  causewayctl logout global",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := c.readContexts()
			if err != nil {
				return err
			}
			name := files.Current()
			if c.context.name != "" {
				name = c.context.name
			}
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return usagef("there is no current context: causewayctl logout NAME")
			}
			found, err := files.Find(name)
			if err != nil {
				return usagef("%w", err)
			}
			return failed(c.logout(cmd.Context(), found))
		},
	}
}

// logout removes the session before it asks the provider: whatever that one answers, this machine keeps no token.
func (c *cli) logout(ctx context.Context, of *contexts.Context) error {
	if of.SessionFile == "" {
		return fmt.Errorf("context %s has no session: it shows %s", of.Name, credentialText(of))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	release, err := session.Hold(ctx, of.SessionFile)
	if err != nil {
		return fmt.Errorf("not signed out of %s: %w", of.Name, err)
	}
	defer release()
	s, err := session.Read(of.SessionFile)
	if removing := session.Remove(of.SessionFile); removing != nil {
		return fmt.Errorf("not signed out of %s: %w", of.Name, removing)
	}
	if errors.Is(err, session.ErrNone) {
		fmt.Fprintf(c.errOut, "nobody was signed in to %s\n", of.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the session of %s is removed, and the identity provider still knows it: %w", of.Name, err)
	}
	release()
	fmt.Fprintf(c.errOut, "signed out of %s\n", of.Name)
	if s.RefreshToken == "" {
		return nil
	}
	told := false
	provider, err := session.Discover(ctx, session.Settings{Issuer: s.Issuer, ClientID: s.ClientID, CAFile: s.ProviderCA})
	if err == nil {
		told, err = provider.Revoke(ctx, s)
	}
	switch {
	case err != nil:
		fmt.Fprintf(c.errOut, "warning: the identity provider still knows the session: %v\n", err)
	case !told:
		fmt.Fprintf(c.errOut, "the session at %s goes on: the provider has no revocation_endpoint\n", s.Issuer)
	}
	return nil
}
