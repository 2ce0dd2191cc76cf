package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newReport(c *cli) *cobra.Command {
	return newGroup("report", "Show who may call whom, and what a zone's proxies reported", newReportShadow(c), newReportDenied(c),
		newReportAccess(c))
}

func newReportShadow(c *cli) *cobra.Command {
	mesh, policy, zone := "", "", ""
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show who would be denied if shadow denials were enforced",
		Long: "Lists the requests that a policy's allowWithShadowDeny let pass, grouped by client, inbound, method\n" +
			"and the beginning of the path, and shows for each policy whether it is safe to enforce. A zone\n" +
			"counts what its own proxies report, since it started; a global asks the zone that --zone names. It knows\n" +
			"nothing about other traffic.\n\n" +
			"Exit status: 0 answered, 2 unknown: the zone does not collect reports, there is no such policy, or\n" +
			"the zone did not answer.",
		Example: "  causewayctl report shadow --address http://127.0.0.1:15681\n" +
			"  causewayctl report shadow --zone zone-1 --policy kri_mtp_default___strict_",
		Args: cobra.NoArgs,
		RunE: c.question(func(ctx context.Context, client *api.Client, _ []string) error {
			query := url.Values{}
			for name, value := range map[string]string{"mesh": mesh, "zone": zone} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if policy != "" {
				if _, err := resources.ParseKRI(policy); err != nil {
					return usagef("--policy: %w", err)
				}
				query.Set("policy", policy)
			}
			report := &shadowReport{}
			err := client.JSON(ctx, api.Request{Path: "/_report/shadow", Query: query}, report)
			if err := c.show(report, zoneOnly(ctx, client, zone, err)); err != nil {
				return err
			}
			if report.Unknown == "" {
				return nil
			}
			if policy != "" {
				var missing *unknownName
				if _, err := fetchKRI(ctx, client, policy); errors.As(err, &missing) {
					return err
				}
			}
			return errUnknown
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&mesh, "mesh", "m", "", "only this `mesh`")
	f.StringVar(&policy, "policy", "", "only the policy with this `KRI`")
	f.StringVar(&zone, "zone", "", "`zone` whose proxies are meant, when a global is asked")
	c.completeZoneAndType(cmd)
	return cmd
}

// zoneOnly adds advice on where to find what only zones know. zone is the one that was asked through a global.
func zoneOnly(ctx context.Context, client *api.Client, zone string, err error) error {
	if zone != "" && api.IsNotFound(err) {
		if missing := knownZone(ctx, client, zone); missing != nil {
			return missing
		}
	}
	if namesZone(err) {
		return &advised{err, "--zone NAME asks that zone by way of the global; causewayctl get zones lists them"}
	}
	return err
}

// namesZone reports whether a global refused a question because it does not say which zone is meant.
func namesZone(err error) bool { return refusesField(err, "zone") }

// refusesField reports whether a server refused a question because of one field.
func refusesField(err error, field string) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Status == http.StatusBadRequest && len(refused.InvalidParameters) == 1 &&
		refused.InvalidParameters[0].Field == field
}

// shadowReport is the answer to GET /_report/shadow.
type shadowReport api.ShadowReport

func (r *shadowReport) print(w io.Writer) error {
	now := time.Now()
	switch {
	case r.Unknown != "":
		fmt.Fprintf(w, "who would be denied is unknown: %s\n", r.Unknown)
	case len(r.Items) == 0:
		fmt.Fprintf(w, "nothing that was seen since %s would be denied\n", r.Since.UTC().Format(time.RFC3339))
	default:
		t := &table{header: []string{"CLIENT", "INBOUND", "METHOD", "PATH", "COUNT", "FIRST", "LAST", "POLICY"}}
		for _, d := range r.Items {
			t.add(d.Client, d.Inbound, d.Method, d.PathPrefix, strconv.FormatUint(d.Count, 10),
				age(d.FirstSeen, now), age(d.LastSeen, now), d.Policy)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if r.Dropped > 0 {
		fmt.Fprintf(w, "\n%d more requests are not listed, for lack of room\n", r.Dropped)
	}
	if len(r.Readiness) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range r.Readiness {
		state := "not safe to enforce"
		if p.Safe {
			state = "safe to enforce"
		}
		fmt.Fprintf(w, "%s: %s\n", p.Policy, cmp.Or(p.Text, state))
	}
	return nil
}
