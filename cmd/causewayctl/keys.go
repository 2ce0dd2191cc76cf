package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential"
)

// keyNote returns further facts about a key, as text.
func keyNote(k *api.SigningKey) string {
	var notes []string
	if k.Provided {
		notes = append(notes, "provided")
	}
	if len(k.WaitsFor) > 0 {
		notes = append(notes, "waits for "+strings.Join(k.WaitsFor, "; "))
	}
	if len(k.Unaware) > 0 {
		notes = append(notes, "did not wait for "+strings.Join(k.Unaware, "; "))
	}
	return strings.Join(notes, ", ")
}

func newKeys(c *cli) *cobra.Command {
	return newGroup("keys", "List and replace the keys that a server signs with", newKeysList(c), newKeysRotate(c),
		newKeysImport(c), newKeysRetire(c))
}

func newKeysList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys of a server: which one signs, and which are accepted",
		Long: "Lists a server's signing keys by ID, never the keys themselves. One key per purpose signs;\n" +
			"signatures of the others are accepted until they are retired. USES counts what depends on a key, if\n" +
			"that is known.",
		Example: "  causewayctl keys list",
		Args:    cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			return c.askKeys(ctx, client, api.Request{Path: "/_keys"})
		}),
	}
}

func newKeysRotate(c *cli) *cobra.Command {
	own, zone, mesh := false, "", "default"
	cmd := &cobra.Command{
		Use:   "rotate PURPOSE",
		Short: "Start signing with a new key; signatures of the old one stay valid",
		Long: "Creates a new key, which signs from now on. The old one is accepted until it is retired. Connected\n" +
			"zones renew their certificates with a new zone CA, and the old CA retires after the last renewal.\n" +
			"Retire token keys with keys retire, once all tokens that they signed are replaced. causewayctl keys\n" +
			"list shows the purposes.\n\n" +
			"An identity authority (identity:MESH, in its own zone) is published first. It signs when all\n" +
			"connected zones and this zone's proxies have acknowledged it; it waits for offline zones for at most\n" +
			"the zone's --identity-overlap. keys list shows what it waits for, and what it did not wait for.",
		Example: "  causewayctl keys rotate zone-ca\n  causewayctl keys rotate token-signing\n" +
			"  causewayctl keys rotate identity:default --address http://127.0.0.1:15681   # its own zone\n" +
			"  causewayctl keys rotate identity --zone zone-1 --address http://127.0.0.1:15681   # no other zone",
		Args: cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			purpose, query := args[0], url.Values{}
			if purpose == "identity" {
				purpose += ":" + mesh
			}
			if zone != "" {
				query.Set("zone", zone)
			}
			return c.askKeys(ctx, client, api.Request{Method: http.MethodPost,
				Path: "/_keys/" + url.PathEscape(purpose) + "/_rotate", Query: query, Body: rotation(own)})
		}),
	}
	cmd.Flags().StringVar(&zone, "zone", "", "`name` of the intended zone, for identity; any other server refuses")
	cmd.Flags().StringVar(&mesh, "mesh", mesh, "`name` of the mesh, for identity without one")
	cmd.Flags().BoolVar(&own, "own", false, "let the zone create its own authority in place of an imported one")
	return cmd
}

// rotation returns the body of a rotation request. Servers that do not know a field ignore it.
func rotation(own bool) []byte {
	if own {
		return []byte(`{"own": true}`)
	}
	return []byte("{}")
}

func newKeysImport(c *cli) *cobra.Command {
	var certificates, key string
	selfSigned := false
	cmd := &cobra.Command{
		Use:   "import PURPOSE",
		Short: "Make a zone sign the identities of a mesh with your own authority",
		Long: "Gives a zone an intermediate CA under your own root: its certificate, the chain up to the root, and\n" +
			"its key. The zone seals the key, publishes the root as MeshTrust, and signs with the intermediate\n" +
			"once all peers trust it, as after keys rotate. Import the next one before it expires. The identities\n" +
			"of one zone are safe from another zone's intermediate only where name constraints permit each its\n" +
			"own trust domain.",
		Example: "  causewayctl keys import identity:default --certificates chain.pem --key key.pem --address http://127.0.0.1:15681",
		Args:    cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if certificates == "" || key == "" {
				return usagef("want --certificates and --key, files in PEM")
			}
			chain, err := credential.Public("--certificates", certificates)
			if err != nil {
				return usagef("%w", err)
			}
			secret, err := credential.Secret("--key", key)
			if err != nil {
				return usagef("%w", err)
			}
			body, err := json.Marshal(map[string]any{"certificates": string(chain), "key": string(secret),
				"allowSelfSigned": selfSigned})
			if err != nil {
				return err
			}
			return c.askKeys(ctx, client, api.Request{Method: http.MethodPost,
				Path: "/_keys/" + url.PathEscape(args[0]) + "/_import", Body: body})
		}),
	}
	cmd.Flags().StringVar(&certificates, "certificates", "",
		"`file` in PEM: the authority's certificate, those above it, last the root")
	cmd.Flags().StringVar(&key, "key", "", "`file` in PEM: the authority's private key, not encrypted")
	cmd.Flags().BoolVar(&selfSigned, "allow-self-signed", false, "accept a certificate that is a root itself")
	return cmd
}

func newKeysRetire(c *cli) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "retire PURPOSE ID",
		Short: "Stop accepting signatures of a key",
		Long: "Removes a key that no longer signs: servers then refuse its signatures. The server keeps a zone CA\n" +
			"that zones still depend on, unless --force allows locking them out.",
		Example: "  causewayctl keys retire token-signing bBlF0s4AMO0YorIP",
		Args:    cobra.ExactArgs(2),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			body, err := json.Marshal(map[string]bool{"force": force})
			if err != nil {
				return err
			}
			path := "/_keys/" + url.PathEscape(args[0]) + "/" + url.PathEscape(args[1]) + "/_retire"
			return c.askKeys(ctx, client, api.Request{Method: http.MethodPost, Path: path, Body: body})
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the key even if others depend on it")
	return cmd
}

// askKeys sends one request and shows the resulting keys.
func (c *cli) askKeys(ctx context.Context, client *api.Client, r api.Request) error {
	answer := &api.SigningKeyList{}
	err := client.JSON(ctx, r, answer)
	if api.IsNotFound(err) {
		return &advised{fmt.Errorf("the server has no such keys: %w", err), "causewayctl keys list shows the existing ones"}
	}
	if err != nil {
		return err
	}
	return c.printAnswer(answer, func() error { return keyTable(answer.Keys, time.Now()).print(c.out) })
}

func keyTable(keys []api.SigningKey, now time.Time) *table {
	t := &table{header: []string{"PURPOSE", "ID", "STATE", "ALGORITHM", "USES", "AGE", "EXPIRES", "NOTE"}}
	for _, k := range keys {
		uses, expires := "", ""
		if k.Uses != nil {
			uses = strconv.Itoa(*k.Uses)
		}
		if k.Expires != nil {
			expires = k.Expires.Format(time.DateOnly)
		}
		t.add(k.Purpose, k.ID, k.State, k.Algorithm, uses, age(k.Created, now), expires, keyNote(&k))
	}
	return t
}
