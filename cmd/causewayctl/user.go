package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

func newUser(c *cli) *cobra.Command {
	return newGroup("user", "Give people and programs access to the HTTP API", newUserToken(c), newUserRevoke(c))
}

func newUserToken(c *cli) *cobra.Command {
	request, lifetime := api.UserTokenRequest{}, access.DefaultUserTokenLifetime
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Issue a user token",
		Long: "Prints a token that authenticates the user, with the groups, on this server. Permissions come from AccessRoles\n" +
			"and AccessRoleBindings; the group " + access.AdminGroup +
			" may do everything. Its id, for causewayctl user revoke, is in the\n" +
			"audit log and in causewayctl auth whoami.",
		Example: "  causewayctl user token --name alice --group payments-team --valid-for 720h > alice.token && chmod 600 alice.token\n" +
			"  causewayctl user token --name root --group " + access.AdminGroup,
		Args: cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			if request.Name == "" {
				return usagef("--name is required: the user that the token is for")
			}
			request.ValidFor = lifetime.String()
			body, err := json.Marshal(request)
			if err != nil {
				return err
			}
			token, err := client.Do(ctx, api.Request{Method: http.MethodPost, Path: "/tokens/user", Body: body})
			if err != nil {
				return err
			}
			answer := map[string]string{"name": request.Name, "token": string(token),
				"expirationTime": time.Now().Add(lifetime).UTC().Format(time.RFC3339)}
			return c.printAnswer(answer, func() error {
				_, err := fmt.Fprintln(c.out, string(token))
				return err
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&request.Name, "name", "", "`name` of the user (required)")
	f.StringSliceVar(&request.Groups, "group", nil, "`groups` that the user is in; may be repeated")
	f.DurationVar(&lifetime, "valid-for", lifetime, "how long the token is valid")
	return cmd
}

func newUserRevoke(c *cli) *cobra.Command {
	certificate := ""
	cmd := &cobra.Command{
		Use:   "revoke [TOKEN-ID]",
		Short: "Revoke a user token, or a user's client certificate",
		Long: "All servers that share the store refuse the token, or the client certificate, from now on. The ID of\n" +
			"a token is in the audit log: causewayctl audit --event issue. The serial number of a certificate is\n" +
			"in its user's causewayctl auth whoami, and in openssl x509 -noout -serial -in FILE; certificates of\n" +
			"that number are refused for good, whichever authority of --api-client-ca has signed them. Others of\n" +
			"the same user remain accepted.",
		Example: "  causewayctl user revoke 4b1de5e0-9c3f-4d25-8a55-0b6a6d7f2f10\n" +
			"  causewayctl user revoke --certificate 5A:0F:92:C4",
		Args: cobra.MaximumNArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if (len(args) == 1) == (certificate != "") {
				return usagef("name what to revoke: TOKEN-ID, or --certificate SERIAL")
			}
			var path, what string
			done := api.BatchedItem{Result: resultRevoked}
			if certificate == "" {
				path, what = "/tokens/user/"+url.PathEscape(args[0]), "token "+args[0]
				done.Type, done.Name = resources.AccessUserToken, args[0]
			} else {
				serial, err := tokens.ParseSerial(certificate)
				if err != nil {
					return usagef("--certificate %s: want the serial number in hex, such as 5A:0F:92:C4 or 5a0f92c4", certificate)
				}
				path, what = "/certificates/user/"+serial, "certificate "+serial
				done.Type, done.Name = resources.AccessUserCertificate, serial
			}
			if err := client.JSON(ctx, api.Request{Method: http.MethodPost, Path: path + "/_revoke"}, nil); err != nil {
				return err
			}
			return c.printDone(done, "%s is refused from now on; the server does not check whether it was ever issued", what)
		}),
	}
	cmd.Flags().StringVar(&certificate, "certificate", "", "`serial` number of the client certificate to revoke, in hex")
	return cmd
}
