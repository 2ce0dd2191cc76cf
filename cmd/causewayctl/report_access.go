package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/callers"
)

// accessPage is how many services and callers report access requests at a time.
const accessPage = 500

// accessKinds maps the values of --only to what they select.
var accessKinds = map[string]func(*callers.Cell) bool{
	callers.Allow:   func(c *callers.Cell) bool { return c.Verdict == callers.Allow },
	callers.Depends: func(c *callers.Cell) bool { return c.Verdict == callers.Depends },
	"shadow":        func(c *callers.Cell) bool { return c.Shadow != "" },
	"unused":        func(c *callers.Cell) bool { return c.Verdict != callers.Deny && c.Allowed == 0 },
	"tried":         func(c *callers.Cell) bool { return c.Denied > 0 },
}

func newReportAccess(c *cli) *cobra.Command {
	query, only, size := url.Values{}, "", 100
	mesh, flags := defaultMesh, map[string]*string{}
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Show who may call whom, by which policy, and who did",
		Long: "Lists pairs of a service and a caller: the verdict, what it depends on, and the policy that decides.\n" +
			"Pairs that are not allowed and were never tried are omitted. A zone adds what its proxies have\n" +
			"reported since it started. A global knows all zones and, with --zone, what that zone's proxies have\n" +
			"reported. --only unused lists what is allowed and was never requested, --only tried what was denied,\n" +
			"--only shadow where shadow rules decide otherwise.\n\n" +
			"Exit status: 0 answered, 2 unknown: --only needs data that this server does not have, or the server\n" +
			"did not answer.",
		Example: "  causewayctl report access --service backend\n" +
			"  causewayctl report access --only unused --zone zone-1",
		Args: cobra.NoArgs,
		RunE: c.question(func(ctx context.Context, client *api.Client, _ []string) error {
			if only != "" && accessKinds[only] == nil {
				return usagef("--only: %q: want allow, depends, shadow, tried or unused", only)
			}
			for name, value := range flags {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			report := &accessReport{Items: []accessItem{}}
			if query.Get("zone") != "" {
				query.Set("reported", "true")
			}
			err := report.ask(ctx, client, mesh, query, accessQuestion{only: accessKinds[only], size: size})
			if zone := query.Get("zone"); err == nil && zone != "" && report.Seen.Unknown != "" {
				err = knownZone(ctx, client, zone)
			}
			if err := c.show(report, err); err != nil {
				return err
			}
			if report.Seen.Unknown != "" && (only == "unused" || only == "tried") {
				return errUnknown
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&mesh, "mesh", "m", mesh, "`mesh` of the services")
	for _, flag := range []struct{ name, usage string }{
		{"zone", "only services of this `zone`, and what its proxies reported"}, {"namespace", "only services of this `namespace`"},
		{"service", "only services whose name contains this `text`"},
		{"caller", "only callers whose SPIFFE ID contains this `text`"},
		{"method", "what is true of requests with this `method`"}, {"path", "what is true of requests with this `path`"},
	} {
		flags[flag.name] = f.String(flag.name, "", flag.usage)
	}
	f.StringVar(&only, "only", "", "only this `kind`: allow, depends, shadow, tried or unused")
	f.IntVar(&size, "size", size, "print at most this `number` of pairs")
	c.completeZoneAndType(cmd)
	return cmd
}

// accessQuestion selects what a report shows.
type accessQuestion struct {
	only func(*callers.Cell) bool
	size int
}

// accessReport is the non-empty part of the matrix.
type accessReport struct {
	Items []accessItem `json:"items"`
	// More counts the pairs beyond the requested size.
	More    int              `json:"more,omitempty"`
	Seen    callers.Seen     `json:"seen"`
	Unknown []callers.Unsure `json:"unknown,omitempty"`
	// Away counts the services' proxies that are not connected to their zone.
	Away int `json:"away,omitempty"`
	// Behind counts those that are, and have not acknowledged all that they should have.
	Behind int `json:"behind,omitempty"`
	// Elsewhere and LeftOut are those of callers.Answer.
	Elsewhere int `json:"elsewhere,omitempty"`
	LeftOut   int `json:"leftOut,omitempty"`
}

// accessItem is one pair.
type accessItem struct {
	Service      string    `json:"service"`
	Caller       string    `json:"caller"`
	Verdict      string    `json:"verdict"`
	DependsOn    []string  `json:"dependsOn,omitempty"`
	Policy       string    `json:"policy"`
	Shadow       string    `json:"shadow,omitempty"`
	Allowed      uint64    `json:"allowed,omitempty"`
	Denied       uint64    `json:"denied,omitempty"`
	ShadowDenied uint64    `json:"shadowDenied,omitempty"`
	LastSeen     time.Time `json:"lastSeen,omitzero"`
}

// ask reads all parts of the matrix in turn.
func (r *accessReport) ask(ctx context.Context, client *api.Client, mesh string, query url.Values, q accessQuestion) error {
	query.Set("size", strconv.Itoa(accessPage))
	query.Set("callers", strconv.Itoa(accessPage))
	for service, services := 0, 1; service < services; service += accessPage {
		for caller, all := 0, 1; caller < all; caller += accessPage {
			query.Set("offset", strconv.Itoa(service))
			query.Set("callersOffset", strconv.Itoa(caller))
			part := &callers.Answer{}
			asked := api.Request{Path: "/meshes/" + url.PathEscape(mesh) + "/_access", Query: query}
			err := client.JSON(ctx, asked, part)
			if refusesField(err, "reported") { // a server of an earlier version says what it knows without asking the zone
				query.Del("reported")
				err = client.JSON(ctx, asked, part)
			}
			if err != nil {
				return err
			}
			services, all = part.Total, part.TotalCallers
			r.add(part, q)
			for i := range part.Services {
				if s := &part.Services[i]; caller == 0 && s.Connected != nil {
					r.Away += s.Proxies - *s.Connected
					r.Behind += s.Behind
				}
			}
		}
	}
	return nil
}

func (r *accessReport) add(part *callers.Answer, q accessQuestion) {
	r.Seen, r.Elsewhere, r.LeftOut = part.Seen, part.Elsewhere, part.LeftOut
	for _, one := range part.Unknown {
		if !slices.Contains(r.Unknown, one) {
			r.Unknown = append(r.Unknown, one)
		}
	}
	for i := range part.Services {
		for n := range part.Services[i].Cells {
			cell := &part.Services[i].Cells[n]
			switch {
			case q.only != nil && !q.only(cell):
			case len(r.Items) >= q.size:
				r.More++
			default:
				r.Items = append(r.Items, accessItem{Service: part.Services[i].KRI, Caller: part.Callers[cell.Caller].SpiffeID,
					Verdict: cell.Verdict, DependsOn: cell.DependsOn, Policy: part.Policies[cell.Policy], Shadow: cell.Shadow,
					Allowed: cell.Allowed, Denied: cell.Denied, ShadowDenied: cell.ShadowDenied, LastSeen: cell.LastSeen})
			}
		}
	}
}

func (r *accessReport) print(w io.Writer) error {
	if len(r.Items) > 0 {
		now := time.Now()
		t := &table{header: []string{"SERVICE", "CALLER", "VERDICT", "ALLOWED", "DENIED", "LAST", "DECIDED BY"}}
		for _, i := range r.Items {
			t.add(i.Service, cmp.Or(i.Caller, "(none verified)"), i.verdict(), r.count(i.Allowed), r.count(i.Denied), age(i.LastSeen, now), i.Policy)
		}
		if err := t.print(w); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "no such pair: nothing allows others, and "+r.seenNone())
	}
	for _, line := range []struct {
		n         int
		one, many string
		text      string
	}{{r.More, "", "", "more: --size prints them"},
		{r.Away, "proxy is", "proxies are", " not connected; a proxy that still runs decides by what it had"},
		{r.Behind, "proxy has", "proxies have", " not acknowledged all changes; until then, earlier policies may decide"},
		{r.Elsewhere, "service", "services", " of other zones: the global, and the zones themselves, know who may call"},
		{r.LeftOut, "service or Dataplane is", "services and Dataplanes are", " left out: you may not read everything"}} {
		if what := line.many; line.n > 0 {
			if line.n == 1 {
				what = line.one
			}
			fmt.Fprintf(w, "\n%d %s%s\n", line.n, what, line.text)
		}
	}
	for _, one := range r.Unknown {
		fmt.Fprintf(w, "\nunknown since %s: %s\n", one.Since.UTC().Format(time.RFC3339), one.Reason)
	}
	switch {
	case r.Seen.Unknown != "":
		fmt.Fprintf(w, "\nwho called is unknown: %s\n", r.Seen.Unknown)
	case r.Seen.Dropped > 0:
		fmt.Fprintf(w, "\n%d more requests, allowed or denied, are not told apart, for lack of room\n", r.Seen.Dropped)
	}
	return nil
}

// seenNone says what is known about pairs that nothing allows and that are not shown.
func (r *accessReport) seenNone() string {
	if r.Seen.Unknown != "" || r.Seen.Dropped > 0 {
		return "whether any was tried is unknown"
	}
	return "none was seen"
}

// count formats a number of requests, or returns ? if none was counted because nothing is known.
func (r *accessReport) count(n uint64) string {
	if r.Seen.Unknown != "" {
		return "?"
	}
	return strconv.FormatUint(n, 10)
}

func (i *accessItem) verdict() string {
	text := i.Verdict
	if len(i.DependsOn) > 0 {
		text += " on " + strings.Join(i.DependsOn, ", ")
	}
	if i.Shadow != "" {
		text += ", in the shadow " + i.Shadow
	}
	return text
}
