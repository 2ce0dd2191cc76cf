package callers

import (
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// unsure returns why there may be newer policies, and the zones of the services whose current state this server does
// not know.
func (h *handler) unsure(services []Service) (out []Unsure) {
	if h.config.Away != nil {
		if since, away := h.config.Away(); away {
			out = append(out, Unsure{Unknown: api.Unknown{Since: since.UTC(),
				Reason: "the global is away: whether it has newer policies is unknown"}})
		}
	}
	if h.config.Waiting != nil {
		if since, waits := h.config.Waiting(); waits {
			out = append(out, Unsure{Unknown: api.Unknown{Since: since.UTC(),
				Reason: "changes of the global wait, as the store here cannot write: whether there are newer policies among them is unknown"}})
		}
	}
	if h.config.Comparing != nil {
		if since, why := h.config.Comparing(""); why != "" {
			out = append(out, Unsure{Unknown: api.Unknown{Since: since.UTC(),
				Reason: why + ": whether it has newer policies is unknown"}})
		}
	}
	if h.config.Outdated != nil {
		if since, is := h.config.Outdated(); is {
			out = append(out, Unsure{Unknown: api.Unknown{Since: since.UTC(),
				Reason: "etcd does not answer this replica: whether there are newer policies is unknown"}})
		}
	}
	last := ""
	for i := range services { // sorted by zone
		if zone := services[i].Zone; zone != last {
			last = zone
			out = append(out, h.unsureOf(zone)...)
		}
	}
	return out
}

// unsureOf returns why this server does not know which permissions the proxies of a zone use now.
func (h *handler) unsureOf(zone string) (out []Unsure) {
	if h.config.Absent != nil {
		if why := h.config.Absent(zone); why != nil {
			return []Unsure{{Zone: zone, Unknown: *why}}
		}
	}
	if h.config.Lacking != nil {
		for _, why := range h.config.Lacking(zone) {
			out = append(out, Unsure{Zone: zone, Unknown: why})
		}
	}
	return out
}

// namedPatches is the number of patches that a reason names.
const namedPatches = 3

// patches holds the patches of one kind that select proxies of the services.
type patches struct {
	names []string
	more  int
	since time.Time
}

func (p *patches) add(name string, since time.Time) {
	if p.since.IsZero() || since.Before(p.since) {
		p.since = since
	}
	if len(p.names) == namedPatches {
		p.more++
		return
	}
	p.names = append(p.names, name)
}

// unsure returns the reason, if there are any.
func (p *patches) unsure(what string) []Unsure {
	if len(p.names) == 0 {
		return nil
	}
	names := strings.Join(p.names, ", ")
	if p.more > 0 {
		names += fmt.Sprintf(" and %d more", p.more)
	}
	return []Unsure{{Unknown: api.Unknown{Since: p.since.UTC(), Reason: what + " is unknown: " + names}}}
}

// patched names the patches that may make proxies of the services deviate from permissions: verdicts do not depend on
// them.
func (h *handler) patched(mesh string, reader *api.Reader, rows []row) []Unsure {
	var refusing, admitting patches
	for r := range h.config.Store.Snapshot().List(store.Query{Type: resources.TypeMeshProxyPatch, Mesh: mesh}) {
		policy := matching.NewPolicy(r, h.config.SystemNamespace)
		if !policy.Enforced() || !selectsAny(policy, rows) {
			continue
		}
		name := "one that you may not read"
		if reader.May(r) {
			name = policy.KRI.String()
		}
		refusing.add(name, r.ModificationTime)
		if resources.Unguarded(r) {
			admitting.add(name, r.ModificationTime)
		}
	}
	return append(refusing.unsure("whether proxies refuse by a patch what permissions allow"),
		admitting.unsure("whether proxies admit by a patch what permissions deny")...)
}

func selectsAny(policy *matching.Policy, rows []row) bool {
	home := policy.Resource.Zone()
	for i := range rows {
		for _, in := range rows[i].inbounds {
			if (home == "" || home == in.of.Zone) && matching.Selects(policy, in.of) {
				return true
			}
		}
	}
	return false
}
