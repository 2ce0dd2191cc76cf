package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

func newInspectService(c *cli) *cobra.Command {
	scope := &scopeFlags{}
	cmd := &cobra.Command{
		Use:   "service NAME | service KRI",
		Short: "Show the proxies behind a service, who may call it, and the policies on traffic to it",
		Long: "Groups inbounds that have the same rules, and callers for whom the same policies win. NAME is a\n" +
			"MeshService; a KRI can also name a MeshMultiZoneService or a MeshExternalService. A zone knows its\n" +
			"own proxies and callers, the global those of all zones.",
		Example: "  causewayctl inspect service backend --address http://127.0.0.1:15681\n" +
			"  causewayctl inspect service kri_msvc_default_zone-1_backend-ns_backend_",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName(resources.TypeMeshService, scope),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			key := resources.Key{Type: resources.TypeMeshService, Mesh: scope.mesh, Namespace: scope.namespace, Name: args[0]}
			if isKRI(args[0]) {
				it, err := fetchKRI(ctx, client, args[0])
				if err != nil {
					return err
				}
				if key = it.key(); !slices.Contains(serviceTypes, key.Type) {
					return usagef("%s names a %s, want a MeshService, a MeshMultiZoneService or a MeshExternalService",
						args[0], key.Type)
				}
			}
			return c.show(c.inspectService(ctx, client, key))
		}),
	}
	scope.add(cmd)
	return cmd
}

// serviceTypes are the types that inspect shows as services.
var serviceTypes = []resources.Type{resources.TypeMeshService, resources.TypeMeshMultiZoneService,
	resources.TypeMeshExternalService}

// serviceView is the view of a service in inspect.
type serviceView struct {
	Type       resources.Type        `json:"type"`
	Mesh       string                `json:"mesh"`
	Namespace  string                `json:"namespace,omitempty"`
	Name       string                `json:"name"`
	KRI        string                `json:"kri"`
	Origin     string                `json:"origin"`
	Conditions []resources.Condition `json:"conditions"`
	// LivesIn is the zone that has the proxies, if this server does not know them.
	LivesIn string         `json:"livesIn,omitempty"`
	Proxies []inspect.Meta `json:"proxies"`
	// Inbounds are the inbounds of the proxies. Equal ones appear once.
	Inbounds []servedInbound `json:"inbounds"`
	// Callers is the number of known proxies that could call the service. Traffic is the result of policies for them.
	Callers int              `json:"callers"`
	Traffic []serviceTraffic `json:"traffic"`
	// Zones reports how fresh the view is, if the global gave it.
	Zones []zoneKnowledge `json:"zones,omitempty"`
}

// servedInbound is the policies on an inbound that several proxies share.
type servedInbound struct {
	inboundView
	// On are the KRIs of all equal inbounds.
	On []string `json:"on"`
}

func (c *cli) inspectService(ctx context.Context, client *api.Client, key resources.Key) (*serviceView, error) {
	it, err := fetchItem(ctx, client, key)
	if err != nil {
		return nil, err
	}
	view := &serviceView{
		Type: it.Type, Mesh: it.Mesh, Namespace: it.Namespace, Name: it.Name, KRI: it.KRI, Origin: it.origin(),
		Proxies: []inspect.Meta{}, Inbounds: []servedInbound{},
	}
	if view.Conditions, err = conditionsOf(it); err != nil {
		return nil, err
	}
	if err := view.fetchTraffic(ctx, client, key); err != nil {
		return nil, err
	}
	view.Zones = knowledgeOf(ctx, client, zonesOfKRIs(view.KRI)...)
	if key.Type != resources.TypeMeshService {
		return view, nil
	}
	if view.Proxies, err = touchedBy(ctx, client, key); err != nil {
		return nil, err
	}
	if zone := it.Labels[resources.LabelZone]; zone != "" &&
		it.Labels[resources.LabelOrigin] == resources.OriginGlobal && len(view.Proxies) == 0 {
		view.LivesIn = zone // a copy in another zone, which has none of the service's Dataplanes
	}
	for i := range view.Proxies {
		c.waiting.say("reading proxy %d of %d", i+1, len(view.Proxies))
		dataplane, err := inspectDataplane(ctx, client, dataplaneKey(&view.Proxies[i]))
		if err != nil {
			return nil, err
		}
		for _, in := range dataplane.Inbounds {
			if err := view.addInbound(in); err != nil {
				return nil, err
			}
		}
	}
	return view, nil
}

// addInbound adds an inbound, or adds its KRI to an equal one.
func (v *serviceView) addInbound(in inboundView) error {
	rules, err := json.Marshal(in.Policies)
	if err != nil {
		return err
	}
	alike := slices.IndexFunc(v.Inbounds, func(other servedInbound) bool {
		same, err := json.Marshal(other.Policies)
		return err == nil && string(same) == string(rules) && other.Name == in.Name && other.Port == in.Port &&
			other.Protocol == in.Protocol
	})
	if alike < 0 {
		v.Inbounds = append(v.Inbounds, servedInbound{inboundView: in, On: []string{in.KRI}})
		return nil
	}
	v.Inbounds[alike].On = append(v.Inbounds[alike].On, in.KRI)
	return nil
}

func (v *serviceView) print(w io.Writer) error {
	t := &table{}
	name := place(resources.Key{Type: v.Type, Mesh: v.Mesh, Namespace: v.Namespace, Name: v.Name})
	if v.Type != resources.TypeMeshService {
		name = string(v.Type) + " " + name
	}
	t.add("service", name)
	t.add("kri", v.KRI)
	t.add("origin", v.Origin)
	if err := t.print(w); err != nil {
		return err
	}
	writeConditions(w, v.Conditions)
	switch {
	case v.LivesIn != "":
		fmt.Fprintf(w, "\nproxies: in %s, where the service lives: ask that zone or the global, by %s\n", v.LivesIn, v.KRI)
	case v.Type == resources.TypeMeshService:
		if err := writeProxies(w, v.Proxies); err != nil {
			return err
		}
	}
	for i := range v.Inbounds {
		v.Inbounds[i].print(w)
		if others := len(v.Inbounds[i].On) - 1; others > 0 {
			fmt.Fprintf(w, "  the same on %d more\n", others)
		}
	}
	for i := range v.Traffic {
		v.Traffic[i].print(w, v.KRI, v.Callers)
	}
	writeKnowledge(w, v.Zones)
	return nil
}
