package xds

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// part is a part of a proxy's config that is built separately.
type part uint8

const (
	partAll   part = iota // of a Dataplane, or a ZoneIngress, that appeared or changed
	partSends             // its outbounds
	partReceives
)

// unbuilt records the parts of a proxy's config that are older than the store, because they could not be built.
// Proxies' mu guards it.
type unbuilt struct {
	why [partReceives + 1]string
	// dataplane is the newest Dataplane, if its config could not be built.
	dataplane *resources.Resource
}

// built notes that a part is up to date with the store.
func (u *unbuilt) built(of part) {
	if u.why[of] = ""; of == partAll {
		*u = unbuilt{}
	}
}

func (u *unbuilt) String() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(u.why[:]), isEmpty), "; ")
}

// newest returns the Dataplane as stored, even if the proxy has the config of an older one. p.target is not nil.
func (p *proxy) newest() *resources.Resource {
	if p.unbuilt.dataplane != nil {
		return p.unbuilt.dataplane
	}
	return p.target.dataplane
}

// retryUnreadyLocked builds the first config of the mesh's proxies that have none, after a change of its policies.
func (x *Proxies) retryUnreadyLocked(m *mesh) {
	if !m.changed {
		return
	}
	m.changed = false
	for p := range m.unready {
		if p.ingress == nil && p.unbuilt.dataplane != nil {
			x.setDataplaneLocked(p, p.unbuilt.dataplane)
		}
	}
}

// failed keeps the proxy's last state and shows why, until that part can be built.
func (x *Proxies) failed(p *proxy, of part, err error) {
	x.metrics.failures.Inc()
	x.cfg.Log.Error("cannot build the proxy's config; it keeps the previous one", "mesh", p.key.Mesh, "name",
		p.key.Name, "error", err)
	p.unbuilt.why[of] = err.Error()
	if p.target == nil {
		p.mesh.unready[p] = struct{}{}
	}
	p.record.setProblem(p.configProblem(), p.unbuilt.String())
	x.insights.mark(p.record, soon)
}
