package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// whyFlags are the flags of why.
type whyFlags struct {
	scopeFlags
	zone                  string
	inbound, method, path string
	since                 time.Duration
	apply                 bool
}

func newWhy(c *cli) *cobra.Command {
	flags := &whyFlags{since: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "why CLIENT SERVICE",
		Short: "Explain why a client is denied, and which policy would admit exactly that",
		Long: "CLIENT is a SPIFFE ID, or a part of one: the name of a MeshService with identities or of a Dataplane,\n" +
			"or its last segments (sa/frontend). A client that is known only by its denials is matched last. SERVICE is what\n" +
			"explain --to accepts: the name of a Dataplane or MeshService, a KRI, or labels.\n\n" +
			"A zone that collects its proxies' reports shows the denials that it has seen; a global asks the zone\n" +
			"that --zone names. The command evaluates the most recent one, unless --method, --path or --inbound\n" +
			"name another request. If nothing allows the request, a zone prints the smallest policy that does:\n" +
			"one identity, one method, one path. --apply stores that policy and evaluates the request again. With\n" +
			"--apply, name the client and the request yourself, because what was denied is whatever the client\n" +
			"chose to send. If a deny entry decides, no policy can allow the request, and the answer names the\n" +
			"entry.\n\n" +
			"Exit status: 0 allowed, 1 denied, 2 unknown.",
		Example: "  causewayctl why frontend backend\n" +
			"  causewayctl why frontend backend --method POST --path /orders\n" +
			"  causewayctl why frontend backend --zone zone-1\n" +
			"  causewayctl why spiffe://default.zone-1.mesh.local/workload/frontend backend --method POST --path /orders --apply",
		Args: cobra.ExactArgs(2),
		RunE: c.question(func(ctx context.Context, client *api.Client, args []string) error {
			return c.why(ctx, client, flags, args[0], args[1])
		}),
	}
	flags.add(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.zone, "zone", "", "`zone` of the service")
	f.StringVar(&flags.inbound, "inbound", "", "`name` or port of the inbound; may be left out where there is only one")
	f.StringVar(&flags.method, "method", "", "HTTP `method`; that of the most recent denial when left out, or else GET")
	f.StringVar(&flags.path, "path", "", "HTTP `path`; that of the most recent denial when left out, or else /")
	f.DurationVar(&flags.since, "since", flags.since, "how far to look back for denials")
	f.BoolVar(&flags.apply, "apply", false, "store the policy that is printed")
	c.completeZoneAndType(cmd)
	return cmd
}

// whyAnswer is the answer of why.
type whyAnswer struct {
	*explained
	// Denials are the client's denials at the inbounds in question, most recent first.
	Denials []api.Denial `json:"denials"`
	// DenialsUnknown is the reason why the denials are unknown; empty if they are known.
	DenialsUnknown string `json:"denialsUnknown,omitempty"`
	// DenialsSince is the time since which the denials are known; zero if they are not.
	DenialsSince time.Time `json:"denialsSince,omitzero"`
	// Stranger means that nothing but its denials is known about the client found for a name.
	Stranger bool `json:"stranger,omitempty"`
	// Proposals are the smallest policies that allow the request, one per proxy, if added policies can.
	Proposals []json.RawMessage `json:"proposals,omitempty"`

	// chosen are the flags for the parts taken from a denial; empty if there are none.
	chosen string
}

func (c *cli) why(ctx context.Context, client *api.Client, flags *whyFlags, who, service string) error {
	report, unseen := deniedHere(ctx, client, flags)
	seen := report.Items
	from, err := resolveIdentity(ctx, client, flags.mesh, who, seen)
	if err != nil {
		return err
	}
	q := &explain.Query{Mesh: flags.mesh, Zone: flags.zone, Namespace: flags.namespace, To: service, From: from.id, Inbound: flags.inbound,
		Method: flags.method, Path: flags.path}
	answer, err := askWhy(ctx, client, q, seen)
	if err != nil {
		return err
	}
	answer.DenialsUnknown, answer.DenialsSince, answer.Stranger = unseen, report.Since, from.stranger
	proposals, none, err := propose(ctx, client, answer.Answer)
	if err != nil {
		return err
	}
	for _, p := range proposals {
		answer.Proposals = append(answer.Proposals, p.document)
	}
	if err := c.printAnswer(answer, func() error { return answer.print(c.out) }); err != nil {
		return err
	}
	switch {
	case answer.Allowed():
		return nil
	case !flags.apply:
		return errNo
	case len(proposals) == 0:
		return usagef("--apply: there is no policy to apply: %s", none)
	case from.stranger:
		return usagef("--apply: nothing but its denials is known of %s, which matches %q: if it is the one, give its whole SPIFFE ID",
			from.id, who)
	case answer.chosen != "":
		return usagef("--apply: the client chose the request that is judged above: if it is the one, add %s", answer.chosen)
	}
	return c.applyProposals(ctx, client, proposals, q)
}

// deniedHere returns the denials that the server has seen, or the reason why it does not know.
func deniedHere(ctx context.Context, client *api.Client, flags *whyFlags) (seen *deniedReport, unknown string) {
	report, err := askDenied(ctx, client, &reportedBy{zone: flags.zone, mesh: flags.mesh, since: flags.since, size: 10_000})
	switch {
	case namesZone(err) && flags.zone == "":
		return &deniedReport{}, "each zone keeps what its own proxies report: add --zone NAME"
	case err != nil:
		return &deniedReport{}, err.Error()
	case report.Unknown != "":
		return &deniedReport{}, report.Unknown
	}
	return report, ""
}

// askWhy evaluates the request, and takes its unnamed parts from the client's most recent denial at the service.
func askWhy(ctx context.Context, client *api.Client, q *explain.Query, seen []api.Denial) (*whyAnswer, error) {
	named := *q
	first, err := askSomeInbound(ctx, client, q, seen)
	if err != nil {
		return nil, err
	}
	answer := &whyAnswer{explained: first, Denials: []api.Denial{}}
	for _, d := range seen {
		if d.Client == q.From && answer.about(d.Inbound) {
			answer.Denials = append(answer.Denials, d)
		}
	}
	if complete(q, answer.Denials) {
		if answer.explained, err = askServer(ctx, client, q); err != nil {
			return nil, err
		}
	}
	answer.chosen = chosen(&named, q)
	return answer, nil
}

// maxInbounds bounds the inbounds that are tried if denials say which one is meant.
const maxInbounds = 10

// askSomeInbound asks about the inbound that q names, or about the only one, or else about the one of the client's most
// recent denial at the service.
func askSomeInbound(ctx context.Context, client *api.Client, q *explain.Query, seen []api.Denial) (*explained, error) {
	whole := *q
	first, err := askServer(ctx, client, &whole)
	if err == nil || q.Inbound != "" {
		return first, err
	}
	var tried []string
	for _, d := range seen {
		section := sectionOfKRI(d.Inbound)
		if d.Client != q.From || slices.Contains(tried, section) || len(tried) == maxInbounds {
			continue
		}
		tried = append(tried, section)
		one := *q
		one.Inbound = section
		at, failed := askServer(ctx, client, &one)
		if failed == nil && (&whyAnswer{explained: at}).about(d.Inbound) {
			q.Inbound = section
			return at, nil
		}
	}
	return nil, err
}

// about reports whether the answer is about an inbound.
func (a *whyAnswer) about(inbound string) bool {
	if a.Inbound == inbound {
		return true
	}
	for _, p := range a.Proxies {
		if p.Inbound == inbound {
			return true
		}
	}
	return false
}

func (a *whyAnswer) print(w io.Writer) error {
	if a.DenialsUnknown != "" {
		fmt.Fprintf(w, "what was denied lately is unknown: %s\n\n", a.DenialsUnknown)
	}
	if len(a.Denials) == 0 && !a.DenialsSince.IsZero() {
		fmt.Fprintf(w, "no denial of %s was seen here since %s\n\n", a.Request.From, a.DenialsSince.UTC().Format(time.RFC3339))
	}
	if len(a.Denials) > 0 {
		recent := &deniedReport{Items: a.Denials[:min(len(a.Denials), 5)]}
		if err := recent.print(w); err != nil {
			return err
		}
		if more := len(a.Denials) - len(recent.Items); more > 0 {
			fmt.Fprintf(w, "%d more: causewayctl report denied\n", more)
		}
		fmt.Fprintln(w)
	}
	if a.Stranger {
		fmt.Fprintf(w, "nothing but its denials is known of %s: no MeshService has this identity\n\n", a.Request.From)
	}
	writeAnswer(w, a.Answer)
	writeKnowledge(w, a.Zones)
	if len(a.Proposals) > 0 {
		fmt.Fprintf(w, "\nthis would allow exactly that request, to nobody but %s:\n\n", a.Request.From)
		return printYAML(w, a.Proposals...)
	}
	return nil
}
