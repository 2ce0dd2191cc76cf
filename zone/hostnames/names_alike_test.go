package hostnames

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestTwoOnOneAddress: of two services with one address, the one that is there longer keeps it, whatever it is called.
func TestTwoOnOneAddress(t *testing.T) {
	t.Parallel()
	byAddress := map[netip.Addr]*Service{}
	var older, younger *resources.Resource
	for i := 0; older == nil; i++ {
		r := service(t, resources.TypeMeshService, "zone-1", "x", fmt.Sprintf("s-%d", i))
		s := &Service{Resource: r, KRI: resources.KRIOf(r)}
		if other := byAddress[addressOf(s, 0)]; other != nil {
			older, younger = r, other.Resource
		}
		byAddress[addressOf(s, 0)] = s
	}
	older.CreationTime, younger.CreationTime = time.Unix(1, 0), time.Unix(2, 0)
	alone, both := Of([]*resources.Resource{older}, nil, home), Of([]*resources.Resource{younger, older}, nil, home)
	if both.Find(older.Key).VIP != alone.Find(older.Key).VIP || both.Find(younger.Key).VIP == both.Find(older.Key).VIP {
		t.Errorf("alone %s; both %s and %s", alone.Find(older.Key).VIP, both.Find(older.Key).VIP, both.Find(younger.Key).VIP)
	}
}

// TestManyOfOneName: what it costs that nobody gets a name does not grow with the square of those who want it. Allocations are
// counted, so it is not in parallel with others.
func TestManyOfOneName(t *testing.T) {
	cost := func(services int) float64 {
		var all []*resources.Resource
		for i := range services {
			r := service(t, resources.TypeMeshService, "zone-1", "shop", fmt.Sprint("s-", i))
			r.Labels["team"] = "a"
			all = append(all, r)
		}
		generators := []*resources.Resource{hostnameGenerator(t, "g", `"meshService":{}`, `{{ label "team" }}.{{ .Namespace }}.internal`)}
		if n := Of(all, generators, home); len(n.Find(all[0].Key).Refused) != 1 {
			t.Fatalf("it has the name: %s", n.text())
		}
		return testing.AllocsPerRun(1, func() { Of(all, generators, home) })
	}
	if few, many := cost(100), cost(1000); many > 15*few {
		t.Errorf("%.0f allocations for 100 services, %.0f for 1000", few, many)
	}
}

// TestNamesThatReadAsAnother: the owner of a namespace gets no name that could be one of another namespace, whether or not
// that has a service, by dots in a name or a label, or by a template of another generator.
func TestNamesThatReadAsAnother(t *testing.T) {
	t.Parallel()
	const all = `"meshService":{}`
	labelled := func(r *resources.Resource, value string) *resources.Resource {
		r.Labels["team"] = value
		return r
	}
	mesh := resources.TypeMeshService
	for _, tt := range []struct {
		name      string
		templates []string
		service   *resources.Resource
		want      string // the name, or the reason why there is none
	}{
		{"a label behind", []string{`{{ .DisplayName }}.{{ .Namespace }}.{{ label "team" }}.internal`},
			labelled(service(t, mesh, "zone-1", "evil", "x"), "a.bank.b"), ReasonNamespace},
		{"a label without a dot", []string{`{{ .DisplayName }}.{{ .Namespace }}.{{ label "team" }}.internal`},
			labelled(service(t, mesh, "zone-1", "shop", "x.y"), "a"), "x.y.shop.a.internal"},
		{"an operator's label", []string{`{{ .DisplayName }}.{{ .Namespace }}.{{ label "team" }}.internal`},
			labelled(service(t, mesh, "zone-1", "kuma-system", "x"), "a.bank.b"), "x.kuma-system.a.bank.b.internal"},
		{"the namespace first", []string{`{{ .Namespace }}.{{ .DisplayName }}.internal`},
			service(t, mesh, "zone-1", "shop", "x.bank"), "shop.x.bank.internal"},
		{"another template", []string{`{{ .DisplayName }}.{{ .Namespace }}.internal`, `{{ .DisplayName }}.{{ .Namespace }}.pay.internal`},
			service(t, mesh, "zone-1", "pay", "x.bank"), ReasonNamespace},
		{"another template, first", []string{`{{ .Namespace }}.{{ .DisplayName }}.internal`, `{{ .DisplayName }}.{{ .Namespace }}.internal`},
			service(t, mesh, "zone-1", "evil", "x.bank"), ReasonNamespace},
		{"another template that is for the same", []string{`{{ .DisplayName }}.{{ .Namespace }}.internal`, `a.{{ .DisplayName }}.{{ .Namespace }}.internal`},
			service(t, mesh, "zone-1", "shop", "x"), "x.shop.internal"},
	} {
		var generators []*resources.Resource
		for i, template := range tt.templates {
			generators = append(generators, hostnameGenerator(t, fmt.Sprint("g-", i), all, template))
		}
		n := Of([]*resources.Resource{tt.service}, generators, home)
		text := n.text()
		if strings.Contains(tt.want, ".") != strings.Contains(text, ": "+tt.want+" by") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestAddressesOfOthersGiveWay: the name of a service is chosen, and with it its address. Another zone's takes none that
// an owner of this zone has.
func TestAddressesOfOthersGiveWay(t *testing.T) {
	t.Parallel()
	own := service(t, resources.TypeMeshService, "zone-1", "shop", "x")
	own.CreationTime = time.Unix(2000, 0)
	want := Of([]*resources.Resource{own}, nil, home).Find(own.Key).VIP
	other := service(t, resources.TypeMeshService, "zone-2", "evil", "e-7811602") // found by trying
	other.CreationTime = time.Unix(1000, 0)
	if got := Of([]*resources.Resource{other}, nil, home).Find(other.Key).VIP; got != want {
		t.Fatalf("alone it has %s, and not %s: look for another name", got, want)
	}
	n := Of([]*resources.Resource{own, other}, nil, home)
	if got := n.Find(own.Key).VIP; got != want || n.Find(other.Key).VIP == want {
		t.Errorf("the address %s went to another zone's: %s, %s", want, got, n.Find(other.Key).VIP)
	}
}
