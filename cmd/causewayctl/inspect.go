package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

func newInspect(c *cli) *cobra.Command {
	return newGroup("inspect", "Show the effect of a resource, as the server computes it", newInspectDataplane(c), newInspectPolicy(c),
		newInspectService(c), newInspectSync(c))
}

func newInspectDataplane(c *cli) *cobra.Command {
	scope := &scopeFlags{}
	cmd := &cobra.Command{
		Use:   "dataplane NAME | dataplane KRI",
		Short: "Show the policies of a Dataplane in order, which wins and why, and its connection",
		Example: "  causewayctl inspect dataplane backend-1\n" +
			"  causewayctl inspect dataplane backend-1 --mesh payments -o json\n" +
			"  causewayctl inspect dataplane kri_dp_default_zone-1__backend-1_   # on the global",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName(resources.TypeDataplane, scope),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			key, err := namedDataplane(ctx, client, scope, args[0])
			if err != nil {
				return err
			}
			return c.show(inspectDataplane(ctx, client, key))
		}),
	}
	scope.add(cmd)
	return cmd
}

// dataplaneView is the view of a Dataplane in inspect.
type dataplaneView struct {
	Mesh       string         `json:"mesh"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	KRI        string         `json:"kri"`
	Address    string         `json:"address,omitempty"`
	Connection connectionView `json:"connection"`
	Inbounds   []inboundView  `json:"inbounds"`
	// Rules are the results of policies for the whole proxy and for its outgoing traffic, by type.
	Rules []typeRules `json:"rules"`
	// Zones reports how fresh the view is, if the global gave it.
	Zones []zoneKnowledge `json:"zones,omitempty"`
}

// connectionView reports whether the Dataplane's proxy is connected to the zone.
type connectionView struct {
	// State is online, offline, "not seen", unknown while the zone is away, or hidden if the caller may not read the
	// DataplaneInsight.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Reason is why the state is unknown.
	Reason string `json:"reason,omitempty"`
}

// reason returns why the state is unknown, and since when.
func (v connectionView) reason() string {
	if v.Since.IsZero() {
		return v.Reason
	}
	return v.Reason + " since " + v.Since.UTC().Format(time.RFC3339)
}

// inboundView is one inbound and the policies on it.
type inboundView struct {
	KRI      string                 `json:"kri"`
	Name     string                 `json:"name,omitempty"`
	Port     uint32                 `json:"port"`
	Protocol string                 `json:"protocol"`
	Policies []inspect.KindPolicies `json:"policies"`
}

func inspectDataplane(ctx context.Context, client *api.Client, key resources.Key) (*dataplaneView, error) {
	it, err := fetchItem(ctx, client, key)
	if err != nil {
		return nil, err
	}
	var spec protoJSON[*meshpb.Dataplane]
	if err := json.Unmarshal(it.whole, &spec); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	view := &dataplaneView{
		Mesh: it.Mesh, Namespace: it.Namespace, Name: it.Name, KRI: it.KRI, Address: spec.Message.GetNetworking().GetAddress(),
		Inbounds: []inboundView{},
	}
	if view.Connection, err = connectionOf(ctx, client, key); err != nil {
		return nil, err
	}
	for _, in := range spec.Message.GetNetworking().GetInbound() {
		v, err := inspectInbound(ctx, client, it, in)
		if err != nil {
			return nil, fmt.Errorf("%s: inbound %s: %w", key, sectionOf(in), err)
		}
		view.Inbounds = append(view.Inbounds, v)
	}
	if view.Rules, err = fetchRules(ctx, client, key); err != nil {
		return nil, err
	}
	view.Zones = knowledgeOf(ctx, client, zonesOfKRIs(view.KRI)...)
	return view, nil
}

func inspectInbound(ctx context.Context, client *api.Client, dataplane *item, in *inboundSpec) (inboundView, error) {
	v := inboundView{Name: in.GetName(), Port: in.GetPort(), Protocol: protocolOf(in)}
	of, err := resources.ParseKRI(dataplane.KRI)
	if err != nil {
		return v, err
	}
	v.KRI = of.WithSection(sectionOf(in)).String()
	var answer inspect.InboundPolicies
	err = fetch(ctx, client, dataplane.key(), "/_inbounds/"+url.PathEscape(v.KRI)+"/_policies", &answer)
	v.Policies = append([]inspect.KindPolicies{}, answer.Policies...)
	return v, err
}

// connectionOf reads the overview of the Dataplane, with the DataplaneInsight, which exists once a proxy has connected.
func connectionOf(ctx context.Context, client *api.Client, dataplane resources.Key) (connectionView, error) {
	var overview dataplaneOverview
	err := fetch(ctx, client, dataplane, overviewSuffix, &overview)
	if err != nil {
		return connectionView{}, fmt.Errorf("%s: %w", dataplane, err)
	}
	return overview.connection(), nil
}
