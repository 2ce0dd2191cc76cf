package callers

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// row is one service with its inbounds.
type row struct {
	service  Service
	of       *resources.Resource
	inbounds []*inbound
}

// readRows builds the rows of a mesh: each port of each MeshService, and each inbound without a MeshService.
func (m *mesh) readRows() {
	covered := map[*inbound]bool{}
	for _, r := range m.services {
		service, err := resources.SpecAs[resources.MeshService](r)
		if err != nil {
			continue // nothing can refer to it
		}
		neighbours := m.byHome[home{r.Zone(), r.HomeNamespace()}]
		for i := range service.Ports {
			m.rows = append(m.rows, rowOf(r, &service.Ports[i], neighbours))
		}
	}
	for i := range m.rows {
		for _, in := range m.rows[i].inbounds {
			covered[in] = true
		}
	}
	for _, p := range m.proxies {
		for _, in := range p.inbounds {
			if !covered[in] {
				m.rows = append(m.rows, row{of: p.resource, inbounds: []*inbound{in}, service: Service{KRI: in.kri, Name: in.of.Name,
					Zone: in.of.Zone, Namespace: in.of.Namespace, Port: in.port.Section(), Protocol: string(in.port.Protocol)}})
			}
		}
	}
	slices.SortStableFunc(m.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.service.Zone, b.service.Zone), cmp.Compare(a.service.Namespace, b.service.Namespace),
			cmp.Compare(a.service.Name, b.service.Name))
	})
}

func rowOf(r *resources.Resource, port *resources.MeshServicePort, neighbours []*proxy) row {
	number := strconv.FormatUint(uint64(port.Port), 10)
	section := cmp.Or(port.Name, number)
	out := row{of: r, service: Service{KRI: resources.KRIOf(r).WithSection(section).String(), Name: r.DisplayName(),
		Zone: r.Zone(), Namespace: r.HomeNamespace(), Port: section, Protocol: string(matching.ProtocolOf(port.AppProtocol))}}
	for _, p := range neighbours {
		for _, in := range p.inbounds {
			if matching.Serves(r, p.parsed, in.port, section) {
				out.inbounds = append(out.inbounds, in)
			}
		}
	}
	if len(out.inbounds) > 0 { // what is enforced depends on the inbound
		out.service.Protocol = string(out.inbounds[0].port.Protocol)
	}
	return out
}

// shown holds the rows of a question that a reader may see, and counts of the rest.
type shown struct {
	rows               []row
	elsewhere, leftOut int
}

// rowsFor selects rows. ownZone is that of a zone server, which knows no proxies of other zones.
func (m *mesh) rowsFor(q *question, reader *api.Reader, ownZone string) (out shown) {
	hidden := map[resources.Key]bool{}
	may := func(r *resources.Resource) bool {
		if reader.May(r) {
			return true
		}
		hidden[r.Key] = true
		return false
	}
	for i := range m.rows {
		r := m.rows[i]
		if !may(r.of) {
			continue
		}
		all := len(r.inbounds)
		if reader != nil {
			r.inbounds = slices.DeleteFunc(slices.Clone(r.inbounds), func(in *inbound) bool { return !may(in.dataplane) })
		}
		switch {
		case !q.wants(&r.service):
		case ownZone != "" && r.service.Zone != ownZone:
			out.elsewhere++
		case all > 0 && len(r.inbounds) == 0: // its Dataplanes are counted
		default:
			out.rows = append(out.rows, r)
		}
	}
	for _, p := range m.proxies {
		may(p.resource)
	}
	out.leftOut = len(hidden)
	return out
}
