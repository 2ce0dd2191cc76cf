package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
)

func newReportDenied(c *cli) *cobra.Command {
	of, client, to := &reportedBy{size: 100, since: 24 * time.Hour}, "", ""
	cmd := &cobra.Command{
		Use:   "denied",
		Short: "Show what the zone's proxies denied, and which policy did",
		Long: "Lists denied requests, and TCP connections, the most recent first: by client, inbound, method and\n" +
			"path. A zone counts what its own proxies have reported since it started; a global asks the zone that\n" +
			"--zone names. causewayctl why shows what would allow one of them.\n\n" +
			"Exit status: 0 answered, 2 unknown: the zone does not collect reports, or did not answer.",
		Example: "  causewayctl report denied --since 1h\n" +
			"  causewayctl report denied --zone zone-1\n" +
			"  causewayctl report denied --to backend --client frontend",
		Args: cobra.NoArgs,
		RunE: c.question(func(ctx context.Context, server *api.Client, _ []string) error {
			report, err := askDenied(ctx, server, of)
			if report != nil {
				report.keep(client, to)
			}
			if err := c.show(report, zoneOnly(ctx, server, of.zone, err)); err != nil {
				return err
			}
			if report.Unknown != "" {
				return errUnknown
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&of.mesh, "mesh", "m", "", "only this `mesh`")
	f.StringVar(&of.zone, "zone", "", "`zone` whose proxies are meant, when a global is asked")
	f.StringVar(&client, "client", "", "only clients whose SPIFFE ID contains this `text`")
	f.StringVar(&to, "to", "", "only inbounds whose KRI contains this `text`, such as the Dataplane's name")
	f.DurationVar(&of.since, "since", of.since, "how far to look back")
	f.IntVar(&of.size, "size", of.size, "ask for at most this `number` of denials, up to 10000")
	c.completeZoneAndType(cmd)
	return cmd
}

// deniedReport is the answer to GET /_report/denied.
type deniedReport api.DenialReport

// reportedBy selects denials: of the proxies of a zone, which only a global has to be told.
type reportedBy struct {
	zone, mesh string
	since      time.Duration
	size       int
}

func askDenied(ctx context.Context, client *api.Client, of *reportedBy) (*deniedReport, error) {
	query := url.Values{"since": {of.since.String()}, "size": {strconv.Itoa(of.size)}}
	for name, value := range map[string]string{"mesh": of.mesh, "zone": of.zone} {
		if value != "" {
			query.Set(name, value)
		}
	}
	report := &deniedReport{}
	if err := client.JSON(ctx, api.Request{Path: "/_report/denied", Query: query}, report); err != nil {
		return nil, err
	}
	return report, nil
}

// keep drops the denials of other clients and inbounds.
func (r *deniedReport) keep(client, to string) {
	kept := []api.Denial{}
	for _, d := range r.Items {
		if strings.Contains(d.Client, client) && strings.Contains(d.Inbound, to) {
			kept = append(kept, d)
		}
	}
	r.Items = kept
}

func (r *deniedReport) print(w io.Writer) error {
	now := time.Now()
	switch {
	case r.Unknown != "":
		fmt.Fprintf(w, "what was denied is unknown: %s\n", r.Unknown)
	case len(r.Items) == 0 && r.More > 0:
		fmt.Fprintln(w, "none of the most recent denials is of that kind")
	case len(r.Items) == 0:
		fmt.Fprintf(w, "no such denial was reported since %s\n", r.Since.UTC().Format(time.RFC3339))
	default:
		t := &table{header: []string{"CLIENT", "INBOUND", "METHOD", "PATH", "COUNT", "LAST", "DECIDED BY"}}
		for _, d := range r.Items {
			t.add(cmp.Or(d.Client, "(none verified)"), d.Inbound, d.Method, pathText(&d), strconv.FormatUint(d.Count, 10),
				age(d.LastSeen, now), d.Policy)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if r.More > 0 {
		fmt.Fprintf(w, "\n%d more: --size shows them\n", r.More)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(w, "\n%d more requests, allowed or denied, are not listed, for lack of room\n", r.Dropped)
	}
	return nil
}

// pathText returns a denial's path, or `/orders...` if the paths below it are not distinguished.
func pathText(d *api.Denial) string {
	if d.Path == "" && d.PathPrefix != "" {
		return d.PathPrefix + "..."
	}
	return d.Path
}
