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

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// externalSources reads what MeshExternalServices refer to: secrets of the zone by their name, and files of one folder. Each finds only what
// is of its own mesh and namespace.
type externalSources struct {
	keeper *secrets.Keeper
	// dir is empty where no files can be named.
	dir   string
	store store.Reader
	log   *slog.Logger
}

// sourceInterval is how often files are looked at. Secrets are followed.
const sourceInterval = 2 * time.Second

// read returns what a source refers to, or why it cannot be had.
func (e *externalSources) read(service *resources.Resource, s *resources.DataSource) ([]byte, error) {
	if s.File != nil {
		return e.readFile(service, s.File.Path)
	}
	n := secrets.Named{Mesh: service.Mesh, Namespace: service.HomeNamespace(), Name: s.Secret}
	plain, err := e.keeper.GetNamed(context.Background(), n)
	if err != nil {
		return nil, fmt.Errorf("secret: %w: causewayctl secret set in this zone makes it", err)
	}
	return plain, nil
}

// readFile reads a file of the folder of the service's mesh and namespace. Links lead nowhere outside of it.
func (e *externalSources) readFile(service *resources.Resource, name string) ([]byte, error) {
	if e.dir == "" {
		return nil, errors.New("file: this zone reads no files for MeshExternalServices: start it with --external-secrets-dir")
	}
	if !resources.IsSourceFile(name) {
		return nil, errors.New("file.path: want the name of a file, without a slash")
	}
	folder := filepath.Join(service.Mesh, service.HomeNamespace())
	if !filepath.IsLocal(folder) {
		return nil, errors.New("file: its mesh and namespace are no names of folders")
	}
	root, err := os.OpenRoot(filepath.Join(e.dir, folder))
	if err != nil {
		return nil, fmt.Errorf("file: there is no folder %s in --external-secrets-dir", folder)
	}
	defer root.Close()
	return credential.SecretIn("file.path, in "+folder+" of --external-secrets-dir", root, name)
}

// register adds the routes by which users manage secrets, and tells in conditions what cannot be had.
func (e *externalSources) register(routes *api.Server) {
	(&namedSecrets{keeper: e.keeper, store: e.store}).register(routes)
	routes.AddConditions(e.conditions)
}

// conditions tell of a MeshExternalService that shows a client's certificate whether proxies here can.
func (e *externalSources) conditions(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeMeshExternalService || !resources.RefersToSources(r) {
		return nil
	}
	if err := e.problem(r); err != nil {
		return []resources.Condition{{Type: resources.ConditionReady, Status: resources.ConditionFalse, Reason: "NoClientCertificate",
			Message: "no proxy of this zone sends to it: " + err.Error()}}
	}
	return []resources.Condition{{Type: resources.ConditionReady, Status: resources.ConditionTrue, Reason: resources.ConditionReady}}
}

// problem says which of a service's sources cannot be had here.
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
			return errors.New("clientCert and clientKey are no certificate and its key in PEM")
		}
	}
	return nil
}

// follow tells changed of each mesh in which a file changed that a MeshExternalService names, until ctx ends.
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
				e.log.Info("files of MeshExternalServices changed", "mesh", mesh)
				changed(mesh)
			}
		}
		last = now
	}
}

// files is, by mesh, a text that differs when one of the files is another.
func (e *externalSources) files() map[string]string {
	out := map[string]string{}
	for r := range e.store.Snapshot().List(store.Query{Type: resources.TypeMeshExternalService}) {
		for _, s := range resources.SourcesOf(r) {
			folder := filepath.Join(r.Mesh, r.HomeNamespace())
			if s.File == nil || !filepath.IsLocal(folder) || !resources.IsSourceFile(s.File.Path) {
				continue
			}
			state := "-"
			if info, err := os.Stat(filepath.Join(e.dir, folder, s.File.Path)); err == nil {
				state = fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
			}
			out[r.Mesh] += r.Name + "\x00" + s.File.Path + "\x00" + state + "\x00"
		}
	}
	return out
}
