package zone

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Reasons of the conditions of MeshGateways.
const (
	reasonNoCertificate    = "NoCertificate"
	reasonWrongCertificate = "CertificateNotValid"
)

// gatewayConditions reports listeners of a MeshGateway whose certificates are missing or invalid for clients. A value
// in the resource itself was checked when it was written, and is sealed here.
func (e *externalSources) gatewayConditions(r *resources.Resource) (out []resources.Condition) {
	if r.Type != resources.TypeMeshGateway {
		return nil
	}
	spec, err := resources.SpecAs[meshpb.MeshGateway](r)
	if err != nil {
		return nil
	}
	for i, l := range spec.GetConf().GetListeners() {
		for j, c := range l.GetTls().GetCertificates() {
			if reason, problem := e.certificateProblem(r, l, resources.GatewaySource(c)); problem != "" {
				out = append(out, resources.Condition{Type: resources.ConditionReady, Status: resources.ConditionFalse,
					Reason: reason, Message: fmt.Sprintf("conf.listeners[%d].tls.certificates[%d]: %s", i, j, problem)})
			}
		}
	}
	return out
}

func (e *externalSources) certificateProblem(r *resources.Resource, l *meshpb.MeshGateway_Listener,
	source *resources.DataSource) (reason, problem string) {
	if !source.Refers() {
		return "", ""
	}
	text, err := e.read(r, source)
	if err != nil {
		return reasonNoCertificate, err.Error()
	}
	certificate, err := resources.ReadServerCertificate(text)
	if err != nil {
		return reasonNoCertificate, "the text " + err.Error()
	}
	if problem := certificate.Problem(resources.GatewayHost(l), e.now()); problem != "" {
		return reasonWrongCertificate, "the certificate " + problem
	}
	return "", ""
}
