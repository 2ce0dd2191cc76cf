package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// written is a policy, the role that it has, and the servers that show a copy of it.
type written struct {
	applied
	typ       resources.Type
	namespace string
	name      string
	role      string
	copies    []string
}

// roles are policies of each role. A producer's and the operator's reach other zones, of which one is asked; the others only
// the global.
var roles = []written{
	{applied{operatorAllows, onGlobal}, resources.TypeMeshTrafficPermission, globalNamespace, "by-mesh-operator", "system", []string{zone1, zone2}},
	{applied{"producer-timeout.yaml", zone1}, resources.TypeMeshTimeout, "backend-ns", "producer-timeout", "producer", []string{onGlobal, zone2}},
	{applied{"consumer-timeout.yaml", zone1}, resources.TypeMeshTimeout, "frontend-ns", "consumer-timeout", "consumer", []string{onGlobal}},
	{applied{ownerAllows, zone1}, resources.TypeMeshTrafficPermission, "backend-ns", "by-backend-owner", "workload-owner", []string{onGlobal}},
}

// zoneOf is the zone in the name of a copy.
func (w *written) zoneOf() string {
	if w.on == onGlobal {
		return ""
	}
	return w.on
}

// showRoles writes a policy of each role, and looks for its role at home and for its copies, which have the same name
// everywhere.
func (m *mesh) showRoles(ctx context.Context) ([]row, error) {
	var rows []row
	for i := range roles {
		w := &roles[i]
		programmed, err := m.write(ctx, w.applied)
		if err != nil {
			return rows, err
		}
		for _, r := range programmed {
			r.title = "roles"
			rows = append(rows, r)
		}
		out, err := kubectl(ctx, m.clusterOf(w.on), "-n", w.namespace, "get", strings.ToLower(string(w.typ)), w.name, "-o",
			`jsonpath={.metadata.labels.kuma\.io/policy-role}`)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{title: "roles", what: fmt.Sprintf("the role of %s %s, of %s", w.typ, w.name, w.on), want: w.role, got: out})
	}
	for i := range roles {
		w := &roles[i]
		name := hashing.Name(meshName, w.name, w.zoneOf(), w.namespace)
		for _, server := range []string{onGlobal, zone1, zone2} {
			if server == w.on {
				continue
			}
			r := row{title: "copies", what: fmt.Sprintf("%s %s of %s, shown by %s", w.typ, w.name, w.on, server), want: "nothing"}
			for _, one := range w.copies {
				if one == server {
					r.want = name
				}
			}
			r.got = m.copyIn(ctx, server, w, r.want)
			rows = append(rows, r)
		}
	}
	for i := range roles {
		if err := m.remove(ctx, roles[i].applied); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// copyIn waits until a server shows what is wanted of a policy, and returns what it shows. All of them are written, and
// have arrived where they are wanted, before one is looked for where it is not.
func (m *mesh) copyIn(ctx context.Context, server string, w *written, want string) string {
	got := ""
	err := cluster.Until(ctx, patience, "a copy", func(ctx context.Context) (err error) {
		if got, err = m.copiesIn(ctx, server, w); err == nil && got != want {
			err = fmt.Errorf("it shows %s", got)
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return got
}

func (m *mesh) copiesIn(ctx context.Context, server string, w *written) (string, error) {
	out := ""
	if k := m.clusterOf(server); k != nil {
		system := map[string]string{onGlobal: globalNamespace, zone1: zoneNamespace}[server]
		names, err := kubectl(ctx, k, "-n", system, "get", strings.ToLower(string(w.typ)), "-l",
			"causeway.io/copy=true,kuma.io/display-name="+w.name, "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return "", err
		}
		out = names
	} else {
		d, _ := resources.LookupStored(w.typ)
		all, err := m.two.API.List(ctx, "/meshes/"+meshName+"/"+d.Path)
		if err != nil {
			return "", err
		}
		for _, it := range all {
			if it.Labels[resources.LabelDisplayName] == w.name && it.Name != w.name {
				out = it.Name
			}
		}
	}
	if out == "" {
		return "nothing", nil
	}
	return out, nil
}
