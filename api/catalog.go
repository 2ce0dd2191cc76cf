package api

import (
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Product is the product name in the response to `GET /`.
const Product = "Causeway"

// Modes of a server in `GET /`.
const (
	ModeGlobal = "global"
	ModeZone   = "zone"
)

// Index is the response to `GET /`.
type Index struct {
	ClusterID  string `json:"clusterId"`
	GUI        string `json:"gui"`
	Hostname   string `json:"hostname"`
	InstanceID string `json:"instanceId"`
	Product    string `json:"product"`
	Version    string `json:"version"`
	Mode       string `json:"mode"`
	Zone       string `json:"zone,omitempty"`
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	hostname, _ := os.Hostname()
	answer := Index{
		ClusterID: s.config.ClusterID, Hostname: hostname, InstanceID: s.config.InstanceID,
		Product: Product, Version: s.config.Version, Mode: s.mode(), Zone: s.config.Home.Zone,
	}
	if s.config.Page != nil && s.config.Page.Built() {
		answer.GUI = pagePath
	}
	return WriteJSON(w, http.StatusOK, answer)
}

// ResourceTypes is the response to `GET /_resources`.
type ResourceTypes struct {
	Resources []TypeInfo `json:"resources"`
}

// TypeInfo describes one type.
type TypeInfo struct {
	Name                string          `json:"name"`
	Path                string          `json:"path"`
	Scope               resources.Scope `json:"scope"`
	ReadOnly            bool            `json:"readOnly"`
	SingularDisplayName string          `json:"singularDisplayName"`
	PluralDisplayName   string          `json:"pluralDisplayName"`
	ShortName           string          `json:"shortName"`
	IncludeInFederation bool            `json:"includeInFederation"`
	Policy              *PolicyInfo     `json:"policy,omitempty"`
}

// PolicyInfo describes which parts a type of policy has.
type PolicyInfo struct {
	IsTargetRef       bool `json:"isTargetRef"`
	HasToTargetRef    bool `json:"hasToTargetRef"`
	HasFromTargetRef  bool `json:"hasFromTargetRef"`
	HasRulesTargetRef bool `json:"hasRulesTargetRef"`
	IsFromAsRules     bool `json:"isFromAsRules"`
}

func (s *Server) resourceTypes(w http.ResponseWriter, _ *http.Request) error {
	out := []TypeInfo{}
	for _, d := range resources.Descriptors() {
		info := TypeInfo{
			Name: string(d.Type), Path: d.Path, Scope: d.Scope, ReadOnly: !s.config.Home.MayWrite(d),
			SingularDisplayName: spaced(string(d.Type)), PluralDisplayName: plural(spaced(string(d.Type))), ShortName: d.Short,
			IncludeInFederation: d.GlobalToZone && d.WrittenOn != resources.Nowhere,
		}
		if p := d.Policy; p != nil {
			info.Policy = &PolicyInfo{
				IsTargetRef: true, HasToTargetRef: p.To, HasFromTargetRef: p.From,
				HasRulesTargetRef: p.Rules, IsFromAsRules: p.FromAsRules,
			}
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b TypeInfo) int { return strings.Compare(a.Name, b.Name) })
	return WriteJSON(w, http.StatusOK, ResourceTypes{Resources: out})
}

// PolicyTypes is the response to `GET /policies`.
type PolicyTypes struct {
	Policies []PolicyType `json:"policies"`
}

// PolicyType describes one type of policy.
type PolicyType struct {
	Name                string `json:"name"`
	ReadOnly            bool   `json:"readOnly"`
	Path                string `json:"path"`
	SingularDisplayName string `json:"singularDisplayName"`
	PluralDisplayName   string `json:"pluralDisplayName"`
	IsExperimental      bool   `json:"isExperimental"`
	IsTargetRefBased    bool   `json:"isTargetRefBased"`
	IsInbound           bool   `json:"isInbound"`
	IsOutbound          bool   `json:"isOutbound"`
}

func (s *Server) policyTypes(w http.ResponseWriter, _ *http.Request) error {
	out := []PolicyType{}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil {
			continue
		}
		out = append(out, PolicyType{
			Name: string(d.Type), ReadOnly: !s.config.Home.MayWrite(d), Path: d.Path,
			SingularDisplayName: spaced(string(d.Type)), PluralDisplayName: plural(spaced(string(d.Type))),
			IsTargetRefBased: true, IsInbound: d.Policy.From || d.Policy.Rules, IsOutbound: d.Policy.To,
		})
	}
	slices.SortFunc(out, func(a, b PolicyType) int { return strings.Compare(a.Name, b.Name) })
	return WriteJSON(w, http.StatusOK, PolicyTypes{Policies: out})
}

// spaced converts MeshHTTPRoute to "Mesh HTTP Route".
func spaced(name string) string {
	var b strings.Builder
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		if i > 0 && upper(i) && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
			b.WriteByte(' ')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func plural(name string) string {
	switch {
	case strings.HasSuffix(name, "Policy"), strings.HasSuffix(name, "Strategy"), strings.HasSuffix(name, "Retry"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "S"), strings.HasSuffix(name, "sh"),
		strings.HasSuffix(name, "ch"):
		return name + "es"
	default:
		return name + "s"
	}
}
