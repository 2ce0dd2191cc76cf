package hostnames

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

var home = resources.Home{Zone: "zone-1"}

// service returns a service of a zone, or of the global.
func service(t *testing.T, kind resources.Type, zone, namespace, name string) *resources.Resource {
	t.Helper()
	body := map[resources.Type]string{
		resources.TypeMeshService:          `{"ports":[{"port":80}]}`,
		resources.TypeMeshExternalService:  `{"match":{"port":443},"endpoints":[{"address":"192.0.2.1","port":443}]}`,
		resources.TypeMeshMultiZoneService: `{"selector":{"meshService":{"matchLabels":{"a":"b"}}},"ports":[{"port":80}]}`,
	}[kind]
	spec, err := resources.NewSpec(kind, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Key: resources.Key{Type: kind, Mesh: "default", Namespace: namespace, Name: name}, Spec: spec}
	r.Labels = resources.Home{Zone: zone}.ComputedLabels(r)
	if zone != home.Zone {
		r.Labels[resources.LabelOrigin] = resources.OriginGlobal
	}
	return r
}

func hostnameGenerator(t *testing.T, name, selector, template string) *resources.Resource {
	t.Helper()
	spec, err := resources.NewSpec(resources.TypeHostnameGenerator, fmt.Appendf(nil, `{"selector":{%s},"template":%q}`,
		selector, template))
	if err != nil {
		t.Fatal(err)
	}
	return &resources.Resource{Key: resources.Key{Type: resources.TypeHostnameGenerator, Name: name}, Spec: spec}
}

// text describes all names in order.
func (n *Names) text() string {
	var out []string
	for _, s := range n.Services {
		for _, g := range s.Given {
			out = append(out, fmt.Sprintf("%s: %s by %s", s.KRI, g.Hostname, g.Generator.Name))
		}
		for _, r := range s.Refused {
			out = append(out, fmt.Sprintf("%s: none by %s: %s", s.KRI, r.Generator.Name, r.Reason))
		}
	}
	return strings.Join(out, "\n")
}

func TestWhoHasAName(t *testing.T) {
	t.Parallel()
	const all = `"meshService":{}`
	msvc := func(zone, namespace, name string) *resources.Resource {
		return service(t, resources.TypeMeshService, zone, namespace, name)
	}
	for _, tt := range []struct {
		about      string
		services   []*resources.Resource
		generators []*resources.Resource
		want       string
	}{
		{"a name each", []*resources.Resource{msvc("zone-1", "", "a"), msvc("zone-1", "", "b")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.svc.mesh.local")},
			"kri_msvc_default_zone-1__a_: a.svc.mesh.local by g\nkri_msvc_default_zone-1__b_: b.svc.mesh.local by g"},
		{"a namespace does not take a name without one", []*resources.Resource{msvc("zone-1", "evil", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.svc.mesh.local")},
			"kri_msvc_default_zone-1_evil_a_: none by g: NamespaceMissing"},
		{"a part of a label is no namespace", []*resources.Resource{msvc("zone-1", "c", "a-b"), msvc("zone-1", "b-c", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}-{{ .Namespace }}.mesh.local")},
			"kri_msvc_default_zone-1_b-c_a_: none by g: NamespaceMissing\nkri_msvc_default_zone-1_c_a-b_: none by g: NamespaceMissing"},
		{"the system namespace is the operator's", []*resources.Resource{msvc("zone-1", "kuma-system", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.svc.mesh.local")},
			"kri_msvc_default_zone-1_kuma-system_a_: a.svc.mesh.local by g"},
		{"namespaces between dots", []*resources.Resource{msvc("zone-1", "x", "a"), msvc("zone-1", "y", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.{{ .Namespace }}.mesh.local")},
			"kri_msvc_default_zone-1_x_a_: a.x.mesh.local by g\nkri_msvc_default_zone-1_y_a_: a.y.mesh.local by g"},
		{"another zone does not take a name", []*resources.Resource{msvc("zone-1", "", "a"), msvc("zone-2", "", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.mesh.local")},
			"kri_msvc_default_zone-1__a_: a.mesh.local by g\nkri_msvc_default_zone-2__a_: none by g: Collision"},
		{"another zone does not take a name of the global's either", []*resources.Resource{msvc("", "", "a"), msvc("zone-2", "", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.mesh.local")},
			"kri_msvc_default___a_: a.mesh.local by g\nkri_msvc_default_zone-2__a_: none by g: Collision"},
		{"of two equals nobody has it", []*resources.Resource{msvc("zone-2", "", "a"), msvc("zone-3", "", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.mesh.local")},
			"kri_msvc_default_zone-2__a_: none by g: Collision\nkri_msvc_default_zone-3__a_: none by g: Collision"},
		{"a namespace called like a part does not take an operator's name",
			[]*resources.Resource{msvc("zone-1", "", "a"), msvc("zone-1", "svc", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.svc.mesh.local"),
				hostnameGenerator(t, "h", all, "{{ .DisplayName }}.{{ .Namespace }}.mesh.local")},
			"kri_msvc_default_zone-1__a_: a.svc.mesh.local by g\nkri_msvc_default_zone-1__a_: none by h: TemplateError\n" +
				"kri_msvc_default_zone-1_svc_a_: none by g: NamespaceMissing\nkri_msvc_default_zone-1_svc_a_: none by h: Collision"},
		{"the same name twice is one", []*resources.Resource{msvc("zone-1", "", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", all, "{{ .DisplayName }}.mesh.local"),
				hostnameGenerator(t, "h", all, "{{ .Name }}.mesh.local")},
			"kri_msvc_default_zone-1__a_: a.mesh.local by g"},
		{"labels and kinds", []*resources.Resource{msvc("zone-1", "", "a"), msvc("zone-2", "", "b"),
			service(t, resources.TypeMeshExternalService, "zone-1", "", "a")},
			[]*resources.Resource{hostnameGenerator(t, "g", `"meshService":{"matchLabels":{"kuma.io/origin":"zone"}}`,
				"{{ .DisplayName }}.mesh.local"), hostnameGenerator(t, "h", `"meshExternalService":{}`, "{{ .DisplayName }}.ext.local")},
			"kri_extsvc_default_zone-1__a_: a.ext.local by h\nkri_msvc_default_zone-1__a_: a.mesh.local by g"},
	} {
		for range 4 {
			rand.Shuffle(len(tt.services), func(i, j int) { tt.services[i], tt.services[j] = tt.services[j], tt.services[i] })
			rand.Shuffle(len(tt.generators), func(i, j int) {
				tt.generators[i], tt.generators[j] = tt.generators[j], tt.generators[i]
			})
			if got := Of(tt.services, tt.generators, home).text(); got != tt.want {
				t.Errorf("%s:\n%s\nwant:\n%s", tt.about, got, tt.want)
			}
		}
	}
}

// TestNamesStay: whatever services come and go, a name that has an owner goes to nobody else of the same standing.
func TestNamesStay(t *testing.T) {
	t.Parallel()
	var all []*resources.Resource
	for _, zone := range []string{"zone-1", "zone-2", "zone-3"} {
		for _, namespace := range []string{"", "x", "svc"} {
			for _, name := range []string{"a", "b", "x.svc"} {
				all = append(all, service(t, resources.TypeMeshService, zone, namespace, name))
			}
		}
	}
	generators := []*resources.Resource{
		hostnameGenerator(t, "g", `"meshService":{}`, "{{ .DisplayName }}.svc.mesh.local"),
		hostnameGenerator(t, "h", `"meshService":{}`, "{{ .DisplayName }}.{{ .Namespace }}.mesh.local"),
	}
	owners := func(services []*resources.Resource) map[string]*Service {
		out := map[string]*Service{}
		for _, s := range Of(services, generators, home).Services {
			for _, g := range s.Given {
				if out[g.Hostname] != nil {
					t.Errorf("%s is the name of two: %s and %s", g.Hostname, out[g.Hostname].KRI, s.KRI)
				}
				out[g.Hostname] = s
			}
		}
		return out
	}
	for range 200 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		some := all[:1+rand.IntN(len(all)-1)]
		before, after := owners(some), owners(append(slices.Clone(some), all[len(some)]))
		for name, was := range before {
			if now := after[name]; now != nil && now.KRI != was.KRI && now.rank == was.rank {
				t.Errorf("%s went from %s to %s", name, was.KRI, now.KRI)
			}
		}
	}
}

// TestAddresses: each service has an address of its own kind, on loopback too, which stays when others come.
func TestAddresses(t *testing.T) {
	t.Parallel()
	var all []*resources.Resource
	for i := range 6000 {
		r := service(t, kinds[i%len(kinds)], "zone-1", "", fmt.Sprintf("s-%d", i))
		r.CreationTime = time.Unix(int64(i), 0)
		all = append(all, r)
	}
	fewer, more := Of(all[:5000], nil, home), Of(all, nil, home)
	seen := map[netip.Addr]bool{}
	for _, s := range more.Services {
		at := s.VIP.As4()
		local := Loopback(s.VIP)
		if !slices.ContainsFunc(Ranges(), func(r netip.Prefix) bool { return r.Contains(s.VIP) }) || !local.IsLoopback() || local.As4()[1] < 64 || at[3] == 0 || at[3] == 255 || seen[s.VIP] ||
			seen[local] {
			t.Errorf("%s has %s, on loopback %s", s.KRI, s.VIP, local)
		}
		seen[s.VIP], seen[local] = true, true
		if was := fewer.Find(s.Resource.Key); was != nil && was.VIP != s.VIP {
			t.Errorf("%s had %s, and has %s", s.KRI, was.VIP, s.VIP)
		}
	}
	first := Of(all[:1], nil, home).Services[0]
	if again := Of(all[:1], nil, home).Services[0]; again.VIP != first.VIP {
		t.Errorf("%s, then %s", first.VIP, again.VIP)
	}
}

// TestWhoIsFar: the services of the zone and of the global keep their addresses before those of other zones.
func TestWhoIsFar(t *testing.T) {
	t.Parallel()
	for zone, far := range map[string]bool{home.Zone: false, "": false, "zone-2": true} {
		r := service(t, resources.TypeMeshService, zone, "", "a")
		if got := Of([]*resources.Resource{r}, nil, home).Find(r.Key).far; got != far {
			t.Errorf("zone %q: far %t, want %t", zone, got, far)
		}
	}
}

// TestDefaults: the default generators parse, and give the names that Kuma's give.
func TestDefaults(t *testing.T) {
	t.Parallel()
	var generators []*resources.Resource
	for _, of := range []resources.Home{{}, home} {
		for name, g := range resources.DefaultHostnameGenerators(of) {
			kind, labels := g.Selector.Of()
			field := map[resources.Type]string{resources.TypeMeshService: "meshService",
				resources.TypeMeshExternalService: "meshExternalService", resources.TypeMeshMultiZoneService: "meshMultiZoneService"}[kind]
			var pairs []string
			for k, v := range labels {
				pairs = append(pairs, fmt.Sprintf("%q:%q", k, v))
			}
			r := hostnameGenerator(t, name, fmt.Sprintf("%q:{%q:{%s}}", field, "matchLabels", strings.Join(pairs, ",")), g.Template)
			r.Labels = of.ComputedLabels(r)
			if err := resources.Validate(r, of); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			generators = append(generators, r)
		}
	}
	for want, r := range map[string]*resources.Resource{
		"a.svc.mesh.local":          service(t, resources.TypeMeshService, "zone-1", "", "a"),
		"a.x.svc.mesh.local":        service(t, resources.TypeMeshService, "zone-1", "x", "a"),
		"a.svc.zone-2.mesh.local":   service(t, resources.TypeMeshService, "zone-2", "", "a"),
		"a.x.svc.zone-2.mesh.local": service(t, resources.TypeMeshService, "zone-2", "x", "a"),
		"a.extsvc.mesh.local":       service(t, resources.TypeMeshExternalService, "zone-1", "", "a"),
		"a.mzsvc.mesh.local":        service(t, resources.TypeMeshMultiZoneService, "", "", "a"),
	} {
		s := Of([]*resources.Resource{r}, generators, home).Services[0]
		if len(s.Given) != 1 || s.Given[0].Hostname != want {
			t.Errorf("%s: %v, want %s", s.KRI, s.Given, want)
		}
	}
}
