package zone

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// externalSources reads the data that MeshExternalServices and MeshGateways refer to: secrets of the zone by name, and
// files in one folder. A resource can read only what belongs to its own mesh and namespace.
type externalSources struct {
	keeper *secrets.Keeper
	// dir is empty if services may not name files.
	dir   string
	store store.Reader
	now   func() time.Time
	log   *slog.Logger
}

// sourceInterval is how often the files are checked for changes. Changes of secrets are followed without polling.
const sourceInterval = 2 * time.Second

// read returns the data that a source refers to. The error says why it is unavailable.
func (e *externalSources) read(of *resources.Resource, s *resources.DataSource) ([]byte, error) {
	if s.File != nil {
		return e.readFile(of, s.File.Path)
	}
	n := secrets.Named{Mesh: of.Mesh, Namespace: of.HomeNamespace(), Name: s.Secret}
	plain, err := e.keeper.GetNamed(context.Background(), n)
	if err != nil {
		return nil, fmt.Errorf("secret: %w: create it in this zone with causewayctl secret set", err)
	}
	return plain, nil
}

// readFile reads a file from the folder of the resource's mesh and namespace. Links cannot lead outside that folder.
func (e *externalSources) readFile(of *resources.Resource, name string) ([]byte, error) {
	if e.dir == "" {
		return nil,
			errors.New("file: this zone reads no files for resources: restart it with --external-secrets-dir")
	}
	if !resources.IsSourceFile(name) {
		return nil, errors.New("file.path: want the name of a file, without a slash")
	}
	folder := filepath.Join(of.Mesh, of.HomeNamespace())
	if !filepath.IsLocal(folder) {
		return nil, errors.New("file: its mesh and namespace are not valid folder names")
	}
	root, err := os.OpenRoot(filepath.Join(e.dir, folder))
	if err != nil {
		return nil, fmt.Errorf("file: --external-secrets-dir has no folder %s", folder)
	}
	defer root.Close()
	return credential.SecretIn("file.path, in "+folder+" of --external-secrets-dir", root, name)
}

// register adds the routes with which users manage secrets, and the conditions that report unavailable sources.
func (e *externalSources) register(routes *api.Server) {
	(&namedSecrets{keeper: e.keeper, store: e.store}).register(routes)
	routes.AddConditions(e.conditions)
	routes.AddConditions(e.gatewayConditions)
}

// conditions report whether the proxies of this zone can send to a MeshExternalService that uses a client certificate.
func (e *externalSources) conditions(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeMeshExternalService || !resources.RefersToSources(r) {
		return nil
	}
	if err := e.problem(r); err != nil {
		return []resources.Condition{{Type: resources.ConditionReady, Status: resources.ConditionFalse,
			Reason:  "NoClientCertificate",
			Message: "no proxy of this zone sends to it: " + err.Error()}}
	}
	return []resources.Condition{{Type: resources.ConditionReady, Status: resources.ConditionTrue,
		Reason: resources.ConditionReady}}
}

// problem returns an error for the first source of a service that is unavailable here.
func (e *externalSources) problem(r *resources.Resource) error {
	var read [][]byte
	for _, s := range resources.SourcesOf(r) {
		text, err := e.read(r, s)
		if err != nil {
			return err
		}
		read = append(read, text)
	}
	if len(read) == 2 {
		if _, err := tls.X509KeyPair(read[0], read[1]); err != nil {
			return errors.New("clientCert and clientKey are not a PEM certificate and its key")
		}
	}
	return nil
}

// follow calls changed for each mesh with a changed file that a resource names, until ctx ends.
func (e *externalSources) follow(ctx context.Context, changed func(mesh string)) error {
	if e.dir == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(sourceInterval)
	defer tick.Stop()
	last := e.files()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := e.files()
		for mesh, state := range now {
			if state != last[mesh] {
				e.log.Info("files that resources name changed", "mesh", mesh)
				changed(mesh)
			}
		}
		last = now
	}
}

// files returns, by mesh, a fingerprint that changes when one of the files changes.
func (e *externalSources) files() map[string]string {
	out := map[string]string{}
	for _, t := range []resources.Type{resources.TypeMeshExternalService, resources.TypeMeshGateway} {
		for r := range e.store.Snapshot().List(store.Query{Type: t}) {
			out[r.Mesh] += e.filesOf(r)
		}
	}
	return out
}

func (e *externalSources) filesOf(r *resources.Resource) (out string) {
	for _, s := range resources.SourcesOf(r) {
		folder := filepath.Join(r.Mesh, r.HomeNamespace())
		if s.File == nil || !filepath.IsLocal(folder) || !resources.IsSourceFile(s.File.Path) {
			continue
		}
		state := "-"
		if info, err := os.Stat(filepath.Join(e.dir, folder, s.File.Path)); err == nil {
			state = fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
		}
		out += r.Name + "\x00" + s.File.Path + "\x00" + state + "\x00"
	}
	return out
}
