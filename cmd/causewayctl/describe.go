package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	"github.com/causeway-mesh/causeway/zone/inspect"
)

func newDescribe(c *cli) *cobra.Command {
	scope := &scopeFlags{}
	cmd := &cobra.Command{
		Use:   "describe TYPE NAME | describe KRI",
		Short: "Show a resource with its state, rollout, proxies and recent changes",
		Long: "Shows the source of a resource, its role and origin, its conditions, which zones and proxies have it\n" +
			"and which refuse it, the proxies that a policy or a service selects, and who changed it, as far as\n" +
			"the audit log of this server reaches. What cannot be read is shown as unknown, with the reason.",
		Example: "  causewayctl describe meshtrafficpermission allow-frontend\n" +
			"  causewayctl describe kri_mt_default_zone-1_backend-ns_slow_",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 1 && isKRI(args[0]) {
				return nil
			}
			return fmt.Errorf("name what to describe: TYPE NAME, or KRI")
		},
		ValidArgsFunction: c.completeTypeAndName(scope),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			key, err := resourceKey(ctx, client, scope, args)
			if err != nil {
				return err
			}
			return c.show(describe(ctx, client, key))
		}),
	}
	scope.add(cmd)
	return cmd
}

// description is everything that a server knows about a resource.
type description struct {
	Resource   json.RawMessage       `json:"resource"`
	Conditions []resources.Condition `json:"conditions"`
	// Rollout is the progress of the newest revision in one sentence, and Advice what to do about it.
	Rollout string   `json:"rollout"`
	Advice  []string `json:"advice,omitempty"`
	// Proxies are those that a policy or a service selects, or nil for other types.
	Proxies []inspect.Meta `json:"proxies,omitempty"`
	// History has the latest changes, newest first.
	History []access.Entry `json:"history"`
	// Unknown maps the parts that could not be read to the reasons.
	Unknown map[string]string `json:"unknown,omitempty"`

	item *item
}

func describe(ctx context.Context, client *api.Client, key resources.Key) (*description, error) {
	it, err := fetchItem(ctx, client, key)
	if err != nil {
		return nil, err
	}
	d := &description{Resource: it.whole, item: it, Unknown: map[string]string{}, History: []access.Entry{}}
	if d.Conditions, err = conditionsOf(it); err != nil {
		return nil, err
	}
	if status, err := fetchRollout(ctx, client, key); err != nil {
		d.Unknown["rollout"] = err.Error()
	} else {
		d.Rollout, d.Advice = status.sentence(), status.advice()
	}
	if selectsProxies(key.Type) {
		if d.Proxies, err = touchedBy(ctx, client, key); err != nil {
			d.Unknown["proxies"] = err.Error()
		}
	}
	if history, err := historyOf(ctx, client, key); err != nil {
		d.Unknown["history"] = err.Error()
	} else {
		d.History = history
	}
	return d, nil
}

// selectsProxies reports whether resources of a type select Dataplanes.
func selectsProxies(t resources.Type) bool {
	d, ok := resources.Lookup(t)
	return ok && (d.Policy != nil || t == resources.TypeTrafficTarget || t == resources.TypeMeshService)
}

const (
	// historyEntries is how many entries of the audit log about the name are searched: they may be of another namespace,
	// or refused. shownHistory is how many are shown.
	historyEntries = 1000
	shownHistory   = 5
)

// historyOf returns the newest entries of the audit log that changed a resource.
func historyOf(ctx context.Context, client *api.Client, key resources.Key) ([]access.Entry, error) {
	var page api.AuditPage
	query := url.Values{"type": {string(key.Type)}, "name": {key.Name}, "last": {strconv.Itoa(historyEntries)}}
	for name, value := range map[string]string{"mesh": key.Mesh, "namespace": key.Namespace} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if err := client.JSON(ctx, api.Request{Path: "/_audit", Query: query}, &page); err != nil {
		return nil, err
	}
	out := []access.Entry{}
	for _, e := range slices.Backward(page.Entries) {
		changed := len(e.Changes) == 0 && (e.Event == access.EventWrite || e.Event == access.EventZone) && e.Outcome == access.Done &&
			e.Mesh == key.Mesh && e.Namespace == key.Namespace && e.Name == key.Name ||
			slices.ContainsFunc(e.Changes, func(c access.ResourceChange) bool {
				return c.Type == string(key.Type) && c.Mesh == key.Mesh && c.Namespace == key.Namespace && c.Name == key.Name
			})
		if changed && len(out) < shownHistory {
			out = append(out, e)
		}
	}
	return out, nil
}

func (d *description) print(w io.Writer) error {
	it := d.item
	t := &table{}
	add := func(name, value string) {
		if value != "" {
			t.add(name+":", value)
		}
	}
	add("Type", string(it.Type))
	add("Name", it.Name)
	add("Mesh", it.Mesh)
	add("Namespace", it.Namespace)
	add("KRI", it.KRI)
	add("Origin", it.origin())
	add("Role", it.Labels[resources.LabelPolicyRole])
	add("Created", timeAndAge(it.CreationTime))
	add("Changed", timeAndAge(it.ModificationTime))
	for i, key := range slices.Sorted(maps.Keys(it.Labels)) {
		name := ""
		if i == 0 {
			name = "Labels:"
		}
		t.add(name, key+"="+it.Labels[key])
	}
	if err := t.print(w); err != nil {
		return err
	}
	if err := d.printSpec(w); err != nil {
		return err
	}
	writeConditions(w, d.Conditions)
	fmt.Fprintf(w, "\nrollout: %s\n", printing.Line(cmp.Or(d.Rollout, d.unknownText("rollout"))))
	for _, line := range d.Advice {
		fmt.Fprintln(w, toDo(line))
	}
	return d.printConcerned(w)
}

// printConcerned prints the proxies and the history.
func (d *description) printConcerned(w io.Writer) error {
	switch {
	case d.Unknown["proxies"] != "":
		fmt.Fprintf(w, "\nproxies: %s\n", printing.Line(d.unknownText("proxies")))
	case selectsProxies(d.item.Type):
		if err := writeProxies(w, d.Proxies); err != nil {
			return err
		}
	}
	if d.Unknown["history"] != "" {
		_, err := fmt.Fprintf(w, "\nhistory: %s\n", printing.Line(d.unknownText("history")))
		return err
	}
	if len(d.History) == 0 {
		_, err := fmt.Fprintln(w, "\nhistory: this server's audit log has no change of it that a user made")
		return err
	}
	fmt.Fprintln(w, "\nhistory:")
	t := &table{}
	for i := range d.History {
		e := &d.History[i]
		t.add("  "+timeAndAge(e.Time), e.User, e.Outcome, auditSubject(e, false))
	}
	return t.print(w)
}

// printSpec prints the spec as YAML, or the fields at the top level that take its place.
func (d *description) printSpec(w io.Writer) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(d.Resource, &fields); err != nil {
		return err
	}
	for _, meta := range []string{"type", "mesh", "name", "namespace", "kri", "labels", "creationTime", "modificationTime",
		"status"} {
		delete(fields, meta)
	}
	if len(fields) == 0 {
		return nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := printYAML(&text, json.RawMessage(raw)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s", text.String())
	return err
}

func (d *description) unknownText(part string) string { return "unknown: " + d.Unknown[part] }

// timeAndAge returns a time and its age, or "" for the zero time.
func timeAndAge(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + ageText(time.Since(t)) + ")"
}

// ageText returns a duration in its largest unit, for people.
func ageText(age time.Duration) string {
	switch {
	case age < 0:
		return "in the future"
	case age < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(age.Seconds()))
	case age < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(age.Hours()))
	}
	return strings.TrimSpace(fmt.Sprintf("%dd ago", int(age.Hours()/24)))
}
