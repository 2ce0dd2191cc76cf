package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// auditFlags select entries.
type auditFlags struct {
	since, user, typeName, mesh, namespace, name, event, outcome string
	last                                                         int
	follow                                                       bool
}

func newAudit(c *cli) *cobra.Command {
	flags := &auditFlags{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was done on a server and what was refused",
		Long: "Shows the audit log of one server, oldest first: every change with its author and the changed\n" +
			"fields, every token and key, and every refused request. Without --since it shows the last entries.",
		Example: "  causewayctl audit --since 1h --outcome denied\n" +
			"  causewayctl audit --type meshtimeout --name slow-backend -o wide\n" +
			"  causewayctl audit --type meshtrafficpermission --user alice -o json\n" +
			"  causewayctl audit --follow",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query()
			if err != nil {
				return err
			}
			if flags.follow {
				return c.endlessOperation(func(ctx context.Context, client *api.Client, _ []string) error { return c.followAudit(ctx, client, q) })(cmd, args)
			}
			return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
				return c.printAudit(ctx, client, q)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.since, "since", "",
		"only entries since then: a `duration` such as 1h, or a time such as 2026-01-02T15:04:05Z")
	f.StringVar(&flags.user, "user", "", "only entries of this `user`")
	f.StringVar(&flags.typeName, "type", "", "only entries about this `type`")
	f.StringVarP(&flags.mesh, "mesh", "m", "", "only entries about what is in this `mesh`")
	f.StringVarP(&flags.namespace, "namespace", "n", "", "only entries about what is in this `namespace`")
	f.StringVar(&flags.name, "name", "", "only entries about what has this `name`")
	f.StringVar(&flags.event, "event", "", "only this `kind`: "+strings.Join(access.Events(), ", "))
	f.StringVar(&flags.outcome, "outcome", "", "only entries with this `outcome`: done, denied, failed or unknown")
	f.IntVar(&flags.last, "last", 100, "without --since: how `many` entries")
	f.BoolVarP(&flags.follow, "follow", "f", false, "keep running, and show entries as they arrive")
	return cmd
}

func (a *auditFlags) query() (url.Values, error) {
	q := url.Values{}
	for name, value := range map[string]string{"since": a.since, "user": a.user, "mesh": a.mesh,
		"namespace": a.namespace, "name": a.name, "event": a.event, "outcome": a.outcome} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, one := range []struct {
		flag, value string
		known       []string
	}{{"event", a.event, access.Events()}, {"outcome", a.outcome, access.Outcomes()}} {
		if one.value != "" && !slices.Contains(one.known, one.value) {
			return nil, usagef("--%s: unknown %s %q%s", one.flag, one.flag, one.value,
				resources.Suggestion(one.value, one.known))
		}
	}
	if a.typeName != "" && !slices.Contains(resources.AccessThings(), a.typeName) {
		d, err := lookupType(a.typeName)
		if err != nil {
			return nil, err
		}
		a.typeName = string(d.Type)
	}
	if a.typeName != "" {
		q.Set("type", a.typeName)
	}
	if a.last < 1 {
		return nil, usagef("--last %d: want at least 1", a.last)
	}
	if a.since == "" {
		q.Set("last", strconv.Itoa(min(a.last, 1000)))
	}
	return q, nil
}

// printAudit prints the entries of all pages.
func (c *cli) printAudit(ctx context.Context, client *api.Client, q url.Values) error {
	t := &table{header: auditHeader()}
	var all []access.Entry
	for {
		var page api.AuditPage
		if err := client.JSON(ctx, api.Request{Path: "/_audit", Query: q}, &page); err != nil {
			return err
		}
		all = append(all, page.Entries...)
		if !page.More {
			break
		}
		q.Set("after", strconv.FormatUint(page.Next, 10))
	}
	switch c.output {
	case formatJSON:
		return printJSON(c.out, all)
	case formatYAML:
		return printYAML(c.out, all...)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.errOut, "the server keeps no such entries")
		return err
	}
	for i := range all {
		t.add(c.auditRow(&all[i])...)
	}
	return t.print(c.out)
}

// followAudit prints the existing entries, and then each new entry as it arrives.
func (c *cli) followAudit(ctx context.Context, client *api.Client, q url.Values) error {
	wait := min(c.timeout/2, 20*time.Second)
	for {
		var page api.AuditPage
		err := client.JSON(ctx, api.Request{Path: "/_audit", Query: q}, &page)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range page.Entries {
			if err := c.printEntry(&page.Entries[i]); err != nil {
				return err
			}
		}
		q.Del("last")
		q.Set("wait", wait.String())
		q.Set("after", strconv.FormatUint(page.Next, 10))
	}
}

func (c *cli) printEntry(e *access.Entry) error {
	switch c.output {
	case formatJSON:
		return printJSON(c.out, e)
	case formatYAML:
		return printYAML(c.out, e)
	}
	_, err := fmt.Fprintln(c.out, printing.Line(strings.Join(c.auditRow(e), "  ")))
	return err
}

func auditHeader() []string { return []string{"TIME", "EVENT", "OUTCOME", "USER", "FROM", "WHAT"} }

func (c *cli) auditRow(e *access.Entry) []string {
	return []string{e.Time.UTC().Format(time.RFC3339), e.Event, e.Outcome, e.User, e.From,
		auditSubject(e, c.output == formatWide)}
}

// auditSubject describes the subject of an entry in one line.
func auditSubject(e *access.Entry, wide bool) string {
	var words []string
	switch {
	case len(e.Changes) > 0:
		for i := range e.Changes {
			change := &e.Changes[i]
			place := slices.DeleteFunc([]string{change.Mesh, change.Namespace, change.Name},
				func(part string) bool { return part == "" })
			words = append(words, change.Result+" "+change.Type+" "+strings.Join(place, "/"))
			if wide {
				for _, field := range change.Diff {
					words = append(words, fmt.Sprintf("%s: %s -> %s", field.Path, field.From, field.To))
				}
			}
		}
	case e.Missing != "":
		words = append(words, "lacks: "+e.Missing)
	case e.Type != "":
		words = append(words, strings.TrimSpace(e.Verb+" "+e.Type+" "+e.Name))
	default:
		words = append(words, e.Request)
	}
	if e.Reason != "" && e.Missing == "" {
		words = append(words, e.Reason)
	}
	if !wide && len(words) > 3 {
		words = append(words[:3], fmt.Sprintf("and %d more", len(words)-3))
	}
	return strings.Join(words, ", ")
}
