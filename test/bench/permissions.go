package main

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// The goals of the compiled form: its cost must not grow with the number of identities, and it must not be larger.
const (
	mostCompiledGrowth = 1.3
	mostCompiledSize   = 1.0
)

var (
	identityCounts = []int{10, 100, 1000, 10_000}
	rbacForms      = []rbac.Form{rbac.List, rbac.Compiled}
)

// permissionCase is one listener: a number of identities, a form and a protocol.
type permissionCase struct {
	identities int
	form       rbac.Form
	protocol   matching.Protocol
}

func (c permissionCase) socket() string {
	return fmt.Sprintf("%s-%s-%d", c.protocol, c.form, c.identities)
}

// rulesOf returns rules that allow n identities by name. The last one is the bench's client.
func rulesOf(n int) matching.Rules {
	var conf resources.PermissionConf
	for i := range n {
		conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: identityOf(i)}})
	}
	conf.Allow[n-1].SpiffeID.Value = benchClient
	return matching.Rules{Items: []matching.Rule{{Origin: resources.KRI{Short: "mtp", Mesh: "default", Name: "bench"},
		Conf: conf}}}
}

func identityOf(i int) string {
	return fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/team-%d/sa/service-%d", i%100, i)
}

const benchClient = "spiffe://default.zone-1.mesh.local/ns/team-zz/sa/client"

// measurePermissions makes a real Envoy judge requests and connections by filters of both forms. Each round runs every
// case, so that noise affects all cases alike.
func (b *bench) measurePermissions(ctx context.Context, p plan) (*table, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	b.started++
	var cases []permissionCase
	for _, n := range identityCounts {
		for _, protocol := range []matching.Protocol{matching.HTTP, matching.TCP} {
			for _, form := range rbacForms {
				cases = append(cases, permissionCase{n, form, protocol})
			}
		}
	}
	t := &table{title: "Permissions: Envoy's CPU by the number of identities that an inbound allows, one of them the client"}
	e, err := startEnvoy(ctx, filepath.Join(b.dir, fmt.Sprint(b.started)), benchClient,
		func(transport object) ([]any, error) {
			var out []any
			for _, c := range cases {
				l, err := c.listener(filepath.Join(b.dir, fmt.Sprint(b.started)), transport)
				if err != nil {
					return nil, err
				}
				out = append(out, l)
			}
			return out, nil
		})
	if err != nil {
		return nil, err
	}
	defer e.stop()
	if err := e.ready(ctx, cases[len(cases)-1].socket()); err != nil {
		return nil, err
	}
	cost := map[permissionCase][]float64{}
	for range p.rounds {
		for _, c := range cases {
			each, err := e.costOf(c, p.envoyCPU)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.socket(), err)
			}
			cost[c] = append(cost[c], float64(each.Nanoseconds())/1e3)
		}
	}
	for _, c := range cases {
		for _, sample := range cost[c] {
			t.add(c.title(), "us", 0, sample)
		}
	}
	addGrowth(t, cost)
	addSizes(t)
	return t, nil
}

func (c permissionCase) title() string {
	unit := "request"
	if c.protocol == matching.TCP {
		unit = "connection, with its handshake"
	}
	return fmt.Sprintf("%d identities, %s: CPU per %s", c.identities, c.form, unit)
}

// addGrowth compares the median of the most identities with that of the fewest.
func addGrowth(t *table, cost map[permissionCase][]float64) {
	small, large := identityCounts[0], identityCounts[len(identityCounts)-1]
	for _, protocol := range []matching.Protocol{matching.HTTP, matching.TCP} {
		for _, form := range rbacForms {
			growth := medianOf(cost[permissionCase{large, form, protocol}]) / medianOf(cost[permissionCase{small,
				form, protocol}])
			goal := 0.0
			if form == rbac.Compiled {
				goal = mostCompiledGrowth
			}
			t.add(fmt.Sprintf("%s, %s: %d identities as a multiple of %d", protocol, form, large, small), "times", goal, growth)
		}
	}
}

// addSizes compares the sizes of what a proxy receives.
func addSizes(t *table) {
	for _, n := range identityCounts {
		rules := rulesOf(n)
		list, compiled := proto.Size(rbac.List.HTTPFilter(rules)), proto.Size(rbac.Compiled.HTTPFilter(rules))
		t.add(fmt.Sprintf("%d identities, list: size of the filter", n), "kB", 0, float64(list)/1e3)
		t.add(fmt.Sprintf("%d identities, compiled: size of the filter", n), "kB", 0, float64(compiled)/1e3)
		t.add(fmt.Sprintf("%d identities: size compiled as a multiple of the list's", n), "times", mostCompiledSize,
			float64(compiled)/float64(list))
	}
}

// listener returns a listener that answers 200 to requests, and echoes on connections.
func (c permissionCase) listener(dir string, transport object) (object, error) {
	var filters []any
	add := func(name, messageType string, message proto.Message, fields object) error {
		f, err := extension(name, messageType, message, fields)
		filters = append(filters, f)
		return err
	}
	rules := rulesOf(c.identities)
	if c.protocol == matching.TCP {
		dryRun, enforced := c.form.NetworkFilters(rules, "in.")
		const network = "envoy.extensions.filters.network.rbac.v3.RBAC"
		for _, filter := range []proto.Message{dryRun, enforced} {
			if err := add("envoy.filters.network.rbac", network, filter, nil); err != nil {
				return nil, err
			}
		}
		if err := add("envoy.filters.network.echo", "envoy.extensions.filters.network.echo.v3.Echo", nil, nil); err != nil {
			return nil, err
		}
	} else {
		judge, err := extension("envoy.filters.http.rbac", "envoy.extensions.filters.http.rbac.v3.RBAC",
			c.form.HTTPFilter(rules), nil)
		if err != nil {
			return nil, err
		}
		router, err := extension("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router", nil, nil)
		if err != nil {
			return nil, err
		}
		if err := add("envoy.filters.network.http_connection_manager",
			"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", nil, object{
				"stat_prefix": "in", "normalize_path": true, "merge_slashes": true,
				"path_with_escaped_slashes_action": "REJECT_REQUEST",
				"http_filters":                     []any{judge, router},
				"route_config": object{"virtual_hosts": []any{object{"name": "all", "domains": []any{"*"}, "routes": []any{
					object{"match": object{"prefix": "/"}, "direct_response": object{"status": 200}},
				}}}},
			}); err != nil {
			return nil, err
		}
	}
	return object{
		"name": c.socket(), "address": object{"pipe": object{"path": filepath.Join(dir, c.socket())}},
		"filter_chains": []any{object{"filters": filters, "transport_socket": transport}},
	}, nil
}

// costOf sends until Envoy has used the CPU budget, and returns the CPU cost of one request or connection.
func (e *envoyProcess) costOf(c permissionCase, budget time.Duration) (time.Duration, error) {
	one := func() error { return e.echo(c.socket()) }
	if c.protocol == matching.HTTP {
		conn, err := e.dial(c.socket())
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		one = func() error { return get(conn, r) }
	}
	const batch = 50
	for range batch { // costs that occur once do not count
		if err := one(); err != nil {
			return 0, err
		}
	}
	before, err := cluster.UsageOf(e.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		for range batch {
			if err := one(); err != nil {
				return 0, err
			}
			n++
		}
		now, err := cluster.UsageOf(e.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		if used := now.CPU - before.CPU; used >= budget {
			return used / time.Duration(n), nil
		}
	}
}
