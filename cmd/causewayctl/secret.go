package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

func newSecret(c *cli) *cobra.Command {
	return newGroup("secret", "Store, list and delete the secrets that resources of a zone refer to by name",
		newSecretSet(c), newSecretList(c), newSecretDelete(c))
}

// secretScope is the place of a secret.
type secretScope struct{ mesh, namespace string }

func (s *secretScope) bind(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&s.mesh, "mesh", "m", "default", "`name` of the mesh")
	cmd.Flags().StringVarP(&s.namespace, "namespace", "n", "",
		"`namespace` of the resources that may refer to it; empty means those without one")
	return cmd
}

func (s *secretScope) request(method, name string) api.Request {
	r := api.Request{Method: method, Path: "/meshes/" + url.PathEscape(s.mesh) + "/_secrets", Query: url.Values{}}
	if name != "" {
		r.Path += "/" + url.PathEscape(name)
	}
	if s.namespace != "" {
		r.Query.Set("namespace", s.namespace)
	}
	return r
}

func (s *secretScope) done(name, result string) api.BatchedItem {
	key := resources.Key{Type: resources.TypeSecret, Mesh: s.mesh, Namespace: s.namespace, Name: name}
	return doneWith(key, result)
}

// place describes where the secrets are.
func (s *secretScope) place() string {
	if s.namespace == "" {
		return " without a namespace in mesh " + s.mesh
	}
	return " of namespace " + s.namespace + " in mesh " + s.mesh
}

func newSecretSet(c *cli) *cobra.Command {
	scope, file := &secretScope{}, ""
	return scope.bind(withFile(&file, &cobra.Command{
		Use:   "set NAME --from-file FILE",
		Short: "Store a secret in a zone, or replace it; it cannot be read back",
		Long: "Stores a secret in the zone that --address names, sealed with the zone's key for secrets. Resources\n" +
			"of the same mesh and namespace refer to it by its name, such as tls.verification.clientKey.secret of\n" +
			"a MeshExternalService. It stays in the zone: set it in each zone whose proxies need it. Nobody can\n" +
			"read it back.",
		Example: "  causewayctl secret set payments-client-key --namespace payments --from-file key.pem --address http://127.0.0.1:15681",
		Args:    cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			value, err := readSecretFile(file)
			if err != nil {
				return err
			}
			r := scope.request(http.MethodPut, args[0])
			if r.Body, err = json.Marshal(api.SecretValue{Value: value}); err != nil {
				return err
			}
			if err := client.JSON(ctx, r, nil); err != nil {
				return err
			}
			return c.printDone(scope.done(args[0], resultSet), "secret %s set", args[0])
		}),
	}))
}

func withFile(file *string, cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(file, "from-file", "", "`file` with the secret")
	return cmd
}

// readSecretFile reads a secret from a file. It refuses more than the largest secret.
func readSecretFile(path string) ([]byte, error) {
	if path == "" {
		return nil, usagef("want --from-file, a file with the secret")
	}
	value, err := credential.Secret("--from-file", path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return value, nil
}

func newSecretList(c *cli) *cobra.Command {
	scope := &secretScope{}
	return scope.bind(&cobra.Command{
		Use:     "list",
		Short:   "List the names of secrets, never their values",
		Example: "  causewayctl secret list --namespace payments --address http://127.0.0.1:15681",
		Args:    cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			var list api.NamedSecrets
			if err := client.JSON(ctx, scope.request(http.MethodGet, ""), &list); err != nil {
				return err
			}
			return c.printAnswer(list, func() error {
				if len(list.Items) == 0 {
					_, err := fmt.Fprintln(c.errOut, "no secrets"+scope.place())
					return err
				}
				for _, item := range list.Items {
					if _, err := fmt.Fprintln(c.out, printing.Line(item.Name)); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	})
}

func newSecretDelete(c *cli) *cobra.Command {
	scope := &secretScope{}
	return scope.bind(&cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a secret; proxies no longer dial services that refer to it",
		Example: "  causewayctl secret delete payments-client-key --namespace payments --address http://127.0.0.1:15681",
		Args:    cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if err := client.JSON(ctx, scope.request(http.MethodDelete, args[0]), nil); err != nil {
				return err
			}
			return c.printDone(scope.done(args[0], resultDeleted), "secret %s deleted", args[0])
		}),
	})
}
