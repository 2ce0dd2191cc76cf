package xds

import (
	_ "embed" // for metrics.lua
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// applicationPrefix is the prefix of the names of the clusters for applications' metrics.
const applicationPrefix = "causeway_application:"

// maxMetrics limits the response that metricsFilter modifies, in bytes. It refuses a longer one.
const maxMetrics = 32 << 20

//go:embed metrics.lua
var metricsScript string

// basicNames matches the same metrics as basicMetrics, by the names that Prometheus sees.
const basicNames = `(_rq_|_cx_|_rbac_|^envoy_server_(live|state|uptime|memory)|^envoy_listener_manager_|^envoy_cluster_manager_|^envoy_control_plane_|membership_)`

// askedApplication is an application whose metrics follow the proxy's.
type askedApplication struct {
	at          endpoint
	path, label string
}

func (a *askedApplication) cluster() string { return applicationPrefix + a.at.String() }

// askApplications returns the applications to ask, and adds their clusters. It leaves out one that cannot be asked,
// which is a problem of the policy.
func (t *target) askApplications(origin string, list []resources.MetricApplication) ([]askedApplication, error) {
	var out []askedApplication
	for i := range list {
		if i == resources.MaxApplications {
			t.observed.problem(origin, fmt.Sprintf("applications: a proxy asks at most %d: the others are omitted", i))
			break
		}
		app, field, err := t.application(&list[i])
		if err != nil {
			t.observed.problem(origin, strings.TrimSuffix(fmt.Sprintf("applications[%d].%s", i, field), ".")+": "+err.Error())
			continue
		}
		cluster, err := newCollector(app.cluster(), app.at.address, app.at.port, false)
		if err != nil {
			return nil, err
		}
		t.observed.collect([]*resource{cluster})
		out = append(out, app)
	}
	return out, nil
}

// application resolves an application. It must be on the proxy's machine, and must be neither this server nor the
// proxy's admin interface, which exposes only metrics.
func (t *target) application(a *resources.MetricApplication) (out askedApplication, field string, err error) {
	if field, err = a.Check(); err != nil {
		return out, field, err
	}
	out = askedApplication{at: endpoint{"127.0.0.1", a.Port}, path: resources.DefaultApplicationPath}
	if a.Address != nil {
		out.at.address = *a.Address
	}
	if a.Path != nil {
		out.path = *a.Path
	}
	if a.Name != nil {
		out.label = `application="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*a.Name) + `"`
	}
	ip, err := resources.ParseIP(out.at.address)
	switch {
	case err != nil:
		return out, "address", err
	case !ip.IsLoopback() && !t.isHere(out.at.address):
		return out, "address", fmt.Errorf("%s is not an address of the Dataplane: a proxy asks only applications on its machine", ip)
	case t.own != nil && t.own(out.at.address, out.at.port):
		return out, "port", fmt.Errorf("%s is a port of the zone server, not of an application", out.at)
	case t.measured.adminPort == 0:
		return out, "", fmt.Errorf("the proxy's admin port is unknown: recreate its bootstrap")
	case t.measured.adminPort == out.at.port:
		return out, "port", fmt.Errorf("%d is the proxy's own admin port, not an application's", out.at.port)
	}
	return out, "", nil
}

// isHere reports whether an address is one of the Dataplane.
func (t *target) isHere(address string) bool {
	spec, _ := resources.SpecAs[meshpb.Dataplane](t.dataplane)
	return spec.GetNetworking().GetAddress() == address || slices.ContainsFunc(t.inbounds, func(in inbound) bool {
		return in.listen.address == address || in.service.address == address
	})
}

// metricsFilter returns the filter that modifies the response of the admin interface; nil if it passes unchanged.
func metricsFilter(apps []askedApplication, s *selectedMetrics) (*hcmv3.HttpFilter, error) {
	if len(apps) == 0 && !s.byName() {
		return nil, nil
	}
	var script strings.Builder
	script.WriteString("local applications = {")
	for i := range apps {
		a := &apps[i]
		fmt.Fprintf(&script, "{cluster=%s,host=%s,path=%s", luaText(a.cluster()), luaText(a.at.String()), luaText(a.path))
		if a.label != "" {
			fmt.Fprintf(&script, ",label=%s", luaText(a.label))
		}
		script.WriteString("},")
	}
	script.WriteString("}\n")
	if len(s.base) > 0 {
		fmt.Fprintf(&script, "local base = %s\n", luaSelectors(s.base))
	} else {
		script.WriteString("local base = nil\n")
	}
	fmt.Fprintf(&script, "local exclude = %s\nlocal include = %s\n%s", luaSelectors(s.exclude), luaSelectors(s.include),
		metricsScript)
	config, err := pack(&luav3.Lua{DefaultSourceCode: &corev3.DataSource{
		Specifier: &corev3.DataSource_InlineString{InlineString: script.String()}}})
	return &hcmv3.HttpFilter{Name: "envoy.filters.http.lua",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}, err
}

// luaText writes a string of bytes as Lua reads it.
func luaText(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&out, `\%03d`, c)
		} else {
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func luaSelectors(list []resources.MetricSelector) string {
	var out strings.Builder
	out.WriteByte('{')
	for i := range list {
		text := luaText(list[i].Match)
		if list[i].Type == resources.SelectRegex {
			prog, err := resources.MetricNames(list[i].Match)
			if err != nil {
				continue // selectMetrics has left it out
			}
			text = luaProgram(prog)
		}
		fmt.Fprintf(&out, "{%s,%s},", luaText(list[i].Type), text)
	}
	out.WriteByte('}')
	return out.String()
}

// nameLetters are the characters of metric names.
const nameLetters = "0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// luaProgram writes an expression as the steps that metrics.lua executes. The first leads to the start.
func luaProgram(prog *syntax.Prog) string {
	step := func(pc uint32) uint32 { return pc + 2 }
	var out strings.Builder
	fmt.Fprintf(&out, `{{"fork",%d,%d},`, step(uint32(prog.Start)), step(uint32(prog.Start)))
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		switch inst.Op {
		case syntax.InstMatch:
			out.WriteString(`{"end"},`)
		case syntax.InstFail:
			out.WriteString(`{"fail"},`)
		case syntax.InstAlt, syntax.InstAltMatch:
			fmt.Fprintf(&out, `{"fork",%d,%d},`, step(inst.Out), step(inst.Arg))
		case syntax.InstCapture, syntax.InstNop:
			fmt.Fprintf(&out, `{"fork",%d,%[1]d},`, step(inst.Out))
		case syntax.InstEmptyWidth:
			kind := "last"
			if syntax.EmptyOp(inst.Arg)&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0 {
				kind = "first"
			}
			fmt.Fprintf(&out, `{%q,%d},`, kind, step(inst.Out))
		default:
			fmt.Fprintf(&out, `{"take",%d,%s},`, step(inst.Out), luaText(lettersOf(inst)))
		}
	}
	out.WriteByte('}')
	return out.String()
}

// lettersOf returns the nameLetters that a step matches.
func lettersOf(inst *syntax.Inst) string {
	var out strings.Builder
	for _, r := range nameLetters {
		if inst.MatchRune(r) {
			out.WriteRune(r)
		}
	}
	return out.String()
}
