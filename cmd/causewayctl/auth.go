package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newAuth(c *cli) *cobra.Command {
	return newGroup("auth", "Show who you are to a server, and what you may do", newWhoAmI(c), newCanI(c))
}

func newWhoAmI(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "Show who you are to the server",
		Example: "  causewayctl auth whoami\n  causewayctl auth whoami --address https://global.example:5681 --ca ca.crt --token-file alice.token",
		Args:    cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			v := &whoAmI{}
			return c.show(v, client.JSON(ctx, api.Request{Path: "/who-am-i"}, v))
		}),
	}
}

type whoAmI api.WhoAmI

func (w *whoAmI) print(out io.Writer) error {
	t := &table{}
	t.add("user", w.Name)
	t.add("groups", strings.Join(w.Groups, ", "))
	t.add("by", string(w.Method))
	if w.Credential != "" {
		t.add("credential", w.Credential)
	}
	return t.print(out)
}

// canIFlags select the principal and the scope of a question.
type canIFlags struct {
	scope  scopeFlags
	as     string
	groups []string
}

func newCanI(c *cli) *cobra.Command {
	flags := &canIFlags{}
	cmd := &cobra.Command{
		Use:   "can-i VERB TYPE [NAME]",
		Short: "Check whether you have a permission",
		Long: "Checks whether you, or with --as and --as-group another user, have a permission. It changes nothing. Exit status: 0 yes,\n" +
			"1 no, 2 unknown.\n\n" +
			"VERB is one of " + strings.Join(resources.AccessVerbs(), ", ") + ".\n\n" +
			"TYPE is a type of resources, or one of " + strings.Join(resources.AccessThings(), ", ") + ".",
		Example: "  causewayctl auth can-i update meshtrafficpermissions --namespace payments\n" +
			"  causewayctl auth can-i assign ServiceAccount backend --namespace payments --as alice --as-group payments-team",
		Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			words := [][]string{resources.AccessVerbs(), append(typePaths(), resources.AccessThings()...),
				nil}[min(len(args), 2)]
			return withPrefix(words, prefix), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: c.question(func(ctx context.Context, client *api.Client, args []string) error {
			q, err := flags.question(args)
			if err != nil {
				return err
			}
			return c.askCanI(ctx, client, q)
		}),
	}
	flags.scope.add(cmd)
	cmd.Flags().StringVar(&flags.as, "as", "", "check for this `user`")
	cmd.Flags().StringSliceVar(&flags.groups, "as-group", nil, "check for a user in these `groups`")
	return cmd
}

func (f *canIFlags) question(args []string) (*api.CanIQuestion, error) {
	q := &api.CanIQuestion{Verb: args[0], Type: args[1], Mesh: f.scope.mesh, Namespace: f.scope.namespace, As: f.as,
		AsGroups: f.groups}
	if len(args) > 2 {
		q.Name = args[2]
	}
	if !slices.Contains(resources.AccessVerbs(), q.Verb) {
		return nil, usagef("unknown verb %q; the verbs are %s", q.Verb, strings.Join(resources.AccessVerbs(), ", "))
	}
	if slices.Contains(resources.AccessThings(), q.Type) {
		if q.Type != resources.AccessServiceAccount && q.Type != resources.AccessWorkload {
			q.Mesh = ""
		}
		return q, nil
	}
	d, err := lookupType(q.Type)
	if err != nil {
		return nil, err
	}
	if q.Type = string(d.Type); d.Scope == resources.ScopeGlobal {
		q.Mesh, q.Namespace = "", ""
	}
	return q, nil
}

func (c *cli) askCanI(ctx context.Context, client *api.Client, q *api.CanIQuestion) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	var answer api.CanIAnswer
	if err := client.JSON(ctx, api.Request{Method: http.MethodPost, Path: "/_can-i", Body: body}, &answer); err != nil {
		return err
	}
	err = c.printAnswer(answer, func() error {
		word := "yes"
		if !answer.Allowed {
			word = "no"
		}
		_, err := fmt.Fprintln(c.out, lineOf("%s: %s: %s", word, answer.User, answer.Permission))
		return err
	})
	if err == nil && !answer.Allowed {
		return errNo
	}
	return err
}
