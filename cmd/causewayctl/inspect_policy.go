package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

func newInspectPolicy(c *cli) *cobra.Command {
	scope := &scopeFlags{}
	cmd := &cobra.Command{
		Use:   "policy TYPE NAME | policy KRI",
		Short: "Show a policy's role, its state, and the proxies that it affects",
		Long: "A zone knows its own proxies, the global those of all zones. For one proxy, causewayctl inspect\n" +
			"dataplane shows which policies win.",
		Example: "  causewayctl inspect policy meshtrafficpermission allow-frontend\n" +
			"  causewayctl inspect policy kri_mt_default_zone-1_backend-ns_slow_",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTypeAndName(scope),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			key, err := resourceKey(ctx, client, scope, args)
			if err != nil {
				return err
			}
			if d, ok := resources.Lookup(key.Type); !ok || d.Policy == nil && key.Type != resources.TypeTrafficTarget {
				return usagef("%s is not a type of policy; causewayctl get shows such a resource", key.Type)
			}
			return c.show(inspectPolicy(ctx, client, key))
		}),
	}
	scope.add(cmd)
	return cmd
}

// policyView is the view of a policy in inspect.
type policyView struct {
	Type       resources.Type        `json:"type"`
	Mesh       string                `json:"mesh"`
	Namespace  string                `json:"namespace,omitempty"`
	Name       string                `json:"name"`
	KRI        string                `json:"kri"`
	Role       string                `json:"role"`
	Origin     string                `json:"origin"`
	Target     string                `json:"target"`
	Conditions []resources.Condition `json:"conditions"`
	Proxies    []inspect.Meta        `json:"proxies"`
	// Rollout is the progress of the policy's rollout, in one sentence. Zones reports how fresh it is, if the global
	// gave it.
	Rollout string          `json:"rollout"`
	Zones   []zoneKnowledge `json:"zones,omitempty"`
}

func dataplaneKey(p *inspect.Meta) resources.Key {
	return resources.Key{Type: resources.TypeDataplane, Mesh: p.Mesh, Namespace: p.Namespace, Name: p.Name}
}

func inspectPolicy(ctx context.Context, client *api.Client, key resources.Key) (*policyView, error) {
	it, err := fetchItem(ctx, client, key)
	if err != nil {
		return nil, err
	}
	view := &policyView{
		Type: it.Type, Mesh: it.Mesh, Namespace: it.Namespace, Name: it.Name, KRI: it.KRI,
		Role: it.Labels[resources.LabelPolicyRole], Origin: it.origin(), Target: targetText(it.Spec.TargetRef),
	}
	if d := it.Spec.Destination; key.Type == resources.TypeTrafficTarget {
		view.Target = d.Kind + " " + d.Name
	}
	if view.Conditions, err = conditionsOf(it); err != nil {
		return nil, err
	}
	if view.Proxies, err = touchedBy(ctx, client, key); err != nil {
		return nil, err
	}
	status, err := fetchRollout(ctx, client, key)
	if err != nil {
		view.Rollout = "unknown: " + err.Error()
	} else {
		view.Rollout = status.sentence()
	}
	view.Zones = knowledgeOf(ctx, client, append(zonesOfProxies(view.Proxies), zonesOfKRIs(view.KRI)...)...)
	return view, nil
}

// conditionsOf reads the conditions in a resource's status.
func conditionsOf(it *item) ([]resources.Condition, error) {
	var shown struct {
		Status struct {
			Conditions []resources.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(it.whole, &shown); err != nil {
		return nil, fmt.Errorf("%s: %w", it.key(), err)
	}
	return append([]resources.Condition{}, shown.Status.Conditions...), nil
}

// touchedBy lists the Dataplanes that a policy or a service selects, according to the server.
func touchedBy(ctx context.Context, client *api.Client, key resources.Key) ([]inspect.Meta, error) {
	path, _, err := api.ItemPath(key)
	if err != nil {
		return nil, err
	}
	found, err := listAll[inspect.Meta](ctx, client, path+"/_resources/dataplanes", listQuery{namespace: key.Namespace})
	if err != nil {
		return nil, aboutResource(key, err)
	}
	proxies := []inspect.Meta{}
	for _, p := range found {
		proxies = append(proxies, *p)
	}
	return proxies, nil
}

func (v *policyView) print(w io.Writer) error {
	t := &table{}
	t.add("policy",
		string(v.Type)+" "+place(resources.Key{Type: v.Type, Mesh: v.Mesh, Namespace: v.Namespace, Name: v.Name}))
	t.add("kri", v.KRI)
	t.add("target", v.Target)
	t.add("role", v.Role)
	t.add("origin", v.Origin)
	if err := t.print(w); err != nil {
		return err
	}
	writeConditions(w, v.Conditions)
	writeList(w, "rollout", []string{v.Rollout})
	if err := writeProxies(w, v.Proxies); err != nil {
		return err
	}
	writeKnowledge(w, v.Zones)
	return nil
}

func writeConditions(w io.Writer, conditions []resources.Condition) {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message),
			": "))
	}
	writeList(w, "conditions", lines)
}

func writeProxies(w io.Writer, proxies []inspect.Meta) error {
	if len(proxies) == 0 {
		_, err := fmt.Fprintln(w, "\nproxies: none")
		return err
	}
	fmt.Fprintf(w, "\nproxies: %d\n", len(proxies))
	t := &table{}
	for i := range proxies {
		t.add("  "+place(dataplaneKey(&proxies[i])), proxies[i].KRI)
	}
	return t.print(w)
}
