package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
)

func newExplain(c *cli) *cobra.Command {
	scope, q := &scopeFlags{}, &explain.Query{}
	var filenames, headers []string
	cmd := &cobra.Command{
		Use:   "explain --to DESTINATION --from SPIFFE-ID",
		Short: "Explain whether a request is allowed, what decides, and what would change it",
		Long: "DESTINATION is the name of a Dataplane or a MeshService, a KRI of either, or labels of Dataplanes\n" +
			"(app=backend). A zone answers for its own proxies, the global for those of all zones; --zone narrows\n" +
			"it to one. With -f, the command evaluates the resources of files, without a server.\n\n" +
			"Exit status: 0 allowed, 1 denied, 2 unknown.",
		Example: "  causewayctl explain --to backend --inbound http-port --from spiffe://default.zone-1.mesh.local/workload/frontend\n" +
			"  causewayctl explain --to backend --zone zone-1 --from spiffe://default.zone-2.mesh.local/ns/a/sa/b --method POST --path /orders\n" +
			"  causewayctl explain -f policies/ -f services/ --to app=backend --inbound 8080 --from spiffe://default.local.mesh.local/workload/x",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Mesh, q.Namespace = scope.mesh, scope.namespace
			if err := readHeaders(q, headers); err != nil {
				return err
			}
			if q.From != "" && !strings.HasPrefix(q.From, "spiffe://") {
				return usagef("--from: want a SPIFFE ID, such as spiffe://default.zone-1.mesh.local/workload/frontend, got %q; "+
					"causewayctl why takes a part of one", q.From)
			}
			if len(filenames) > 0 {
				return c.offline(func(ctx context.Context) error {
					world, err := c.readWorld(ctx, filenames, q.Zone)
					if err != nil {
						return err
					}
					answer, err := world.Explain(*q)
					return c.printExplained(&explained{Answer: answer}, flagged(err))
				})(cmd, args)
			}
			return c.question(func(ctx context.Context, client *api.Client, _ []string) error {
				return c.printExplained(askServer(ctx, client, q))
			})(cmd, args)
		},
	}
	scope.add(cmd)
	f := cmd.Flags()
	f.StringVar(&q.To, "to", "", "`destination`: a Dataplane, a MeshService, a KRI, or labels KEY=VALUE,...")
	f.StringVar(&q.Inbound, "inbound", "", "`name` or port of the inbound; may be left out where there is only one")
	f.StringVar(&q.From, "from", "", "`SPIFFE ID` of the client")
	f.StringVar(&q.Method, "method", "", "HTTP `method`, GET when left out; for HTTP inbounds")
	f.StringVar(&q.Path, "path", "", "HTTP `path`, / when left out; for HTTP inbounds")
	f.StringVar(&q.SNI, "sni", "", "server `name` that the client asks for in its handshake")
	f.StringArrayVar(&headers, "header", nil,
		"`NAME: VALUE` of the request, for TrafficTargets that ask for headers; may be repeated")
	f.StringVar(&q.Zone, "zone", "", "`zone` of the destination; with -f, also that of resources that name none")
	addFilenameFlag(cmd, &filenames)
	for _, required := range []string{"to", "from"} {
		_ = cmd.MarkFlagRequired(required)
	}
	c.completeZoneAndType(cmd)
	return cmd
}

// readHeaders parses headers in the form of a request, `name: value`.
func readHeaders(q *explain.Query, headers []string) error {
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return usagef("--header: %q: want NAME: VALUE", h)
		}
		if q.Headers == nil {
			q.Headers = map[string]string{}
		}
		q.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return nil
}

// offline returns the RunE of a question that needs no server.
func (c *cli) offline(run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c.waiting = startProgress(c.errOut, "reading files")
		defer c.waiting.stop()
		return unanswered(failed(c.said(run(cmd.Context()))))
	}
}

// readWorld reads resources from files and evaluates them as a server would.
func (c *cli) readWorld(ctx context.Context, filenames []string, zone string) (*explain.World, error) {
	docs, err := c.readDocuments(ctx, filenames)
	if err != nil {
		return nil, err
	}
	return c.worldOf(docs, zone), nil
}

// worldOf returns the world that the documents describe. zone is the zone of those that name none.
func (c *cli) worldOf(docs []document, zone string) *explain.World {
	c.waiting.say("judging %d resources", len(docs))
	return explain.FromFiles(resourcesOf(docs), explain.Options{Zone: zone})
}

// flagged names the flag of an invalid question instead of its field.
func flagged(err error) error {
	var wrong *explain.QueryError
	if errors.As(err, &wrong) && !wrong.NotFound {
		return usagef("--%s: %s", wrong.Field, wrong.Reason)
	}
	return err
}

func askServer(ctx context.Context, client *api.Client, q *explain.Query) (*explained, error) {
	if kri, err := resources.ParseKRI(q.To); err == nil && kri.Mesh != q.Mesh {
		if q.Mesh != "" && q.Mesh != defaultMesh {
			return nil, usagef("--mesh %s: %s is in the mesh %s", q.Mesh, q.To, kri.Mesh)
		}
		q.Mesh = kri.Mesh
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	path := "/meshes/" + url.PathEscape(cmp.Or(q.Mesh, defaultMesh)) + "/_explain"
	answer := &explain.Answer{}
	err = client.JSON(ctx, api.Request{Method: http.MethodPost, Path: path, Body: body}, answer)
	var refused *api.Error
	if errors.As(err, &refused) && len(refused.InvalidParameters) > 0 {
		p := refused.InvalidParameters[0]
		wrong := flagged(&explain.QueryError{Field: p.Field, Reason: p.Reason,
			NotFound: refused.Status == http.StatusNotFound})
		if q.Zone != "" && refused.Status == http.StatusNotFound {
			zone := resources.Key{Type: resources.TypeZone, Name: q.Zone}
			missing := fetch(ctx, client, zone, "", &item{})
			if api.IsNotFound(missing) && !api.IsElsewhere(missing) {
				return nil, unknownZone(q.Zone, missing)
			}
		}
		if near := nearestIn(refused); near != "" {
			wrong = &advised{wrong, near}
		}
		if p.Field == "to" && refused.Status == http.StatusNotFound {
			wrong = unknown(resources.Key{Type: resources.TypeDataplane}, wrong)
		}
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	at := []string{answer.Inbound}
	for _, p := range answer.Proxies {
		at = append(at, p.Inbound)
	}
	return &explained{answer, knowledgeOf(ctx, client, zonesOfKRIs(at...)...)}, nil
}

// explained is an answer. If the global gave it, Zones says how fresh it is.
type explained struct {
	*explain.Answer
	Zones []zoneKnowledge `json:"zones,omitempty"`
}

// printExplained prints the answer. "denied" is the answer no.
func (c *cli) printExplained(answer *explained, err error) error {
	if err != nil {
		return err
	}
	err = c.printAnswer(answer, func() error {
		writeAnswer(c.out, answer.Answer)
		writeKnowledge(c.out, answer.Zones)
		return nil
	})
	if err == nil && !answer.Allowed() {
		err = errNo
	}
	return err
}

// writeAnswer writes the answer as text: the verdict, who decided, and all matches in the order of evaluation.
func writeAnswer(w io.Writer, a *explain.Answer) {
	fmt.Fprintln(w, lineOf("%s by %s", verdictText(a), joined(a.Policy, a.Field)))
	fmt.Fprintln(w, lineOf("  %s", a.Reason))
	fmt.Fprintln(w, lineOf("  %s at %s (%s)", requestText(a.Request), a.Inbound, a.Protocol))
	if a.Shadow != nil {
		fmt.Fprintln(w, lineOf("  if every shadow denial were enforced: %s by %s", a.Shadow.Verdict, a.Shadow.Policy))
	}
	if len(a.Matched) > 0 {
		fmt.Fprintln(w, "\nmatched, in the order of evaluation")
	}
	for i, m := range a.Matched {
		mark := ""
		if m.Decides {
			mark = "  <- decides"
		}
		fmt.Fprintln(w, lineOf("  %d. %s  %s%s", i+1, m.Action, joined(m.Policy, m.Field), mark))
		if m.Entry != nil {
			fmt.Fprintln(w, lineOf("     %s", entryText(m.Entry)))
			for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
				fmt.Fprintln(w, lineOf("     and header %s matching %s", name, m.Headers[name]))
			}
		}
	}
	if len(a.Proxies) > 0 {
		fmt.Fprintln(w, "\nat each proxy")
	}
	for _, p := range a.Proxies {
		fmt.Fprintln(w, lineOf("  %s  %s by %s", p.Inbound, p.Verdict, p.Policy))
	}
	writeList(w, "what would change it", a.Would)
	writeList(w, "patches that may admit clients that permissions deny", a.Unguarded)
	writeList(w, "warnings", a.Warnings)
}

func verdictText(a *explain.Answer) string {
	if a.Allowed() {
		return "allowed"
	}
	return "denied"
}

func joined(policy, field string) string {
	if field == "" {
		return policy
	}
	return policy + " " + field
}

func requestText(r explain.Request) string {
	text := "from " + r.From
	for _, part := range []string{r.Path, r.Method} {
		if part != "" {
			text = part + " " + text
		}
	}
	if r.SNI != "" {
		text += " to the name " + r.SNI
	}
	return text
}

// entryText returns an entry of a permission in one line.
func entryText(entry *resources.PermissionMatch) string {
	raw, err := json.Marshal(entry)
	if err != nil {
		return err.Error()
	}
	return matchText(raw)
}

func writeList(w io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n", title)
	}
	for _, line := range lines {
		fmt.Fprintln(w, lineOf("  - %s", line))
	}
}
