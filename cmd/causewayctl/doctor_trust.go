package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
)

// trust lists the MeshTrusts that a zone refuses, its own and others. A global refuses none.
func (e *examination) trust(ctx context.Context) {
	meshes, err := e.meshes(ctx)
	if err != nil {
		return // the check of proxies reports it
	}
	for _, mesh := range meshes {
		var answer api.Trust
		err := e.client.JSON(ctx, api.Request{Path: "/meshes/" + mesh + "/_trust"}, &answer)
		var refused *api.Error
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			return
		case err != nil:
			e.unknown("trust", "mesh "+mesh, err, "")
			continue
		}
		e.add(trustFindings(&answer)...)
	}
}

func trustFindings(answer *api.Trust) (out []finding) {
	for i := range answer.Refused {
		r := &answer.Refused[i]
		about := r.KRI
		if about == "" {
			about = r.Name
		}
		out = append(out, finding{
			findingWarning, "trust", about, "is a MeshTrust that this zone does not trust: " + r.Reason,
			"clients with identities from its authorities are refused, unless another MeshTrust has the same authorities",
			"check who wrote it; correct it in its own zone, or delete it there",
		})
	}
	return out
}
