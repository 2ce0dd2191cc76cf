package kubernetes

import (
	"path/filepath"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/server"
)

// folder holds the webhook's certificate, in the data folder.
const folder = "kubernetes"

// Host is where a bridge keeps its durable files, and its name.
type Host struct {
	// DataDir is the server's. Box seals the keys in it.
	DataDir string
	Box     server.Sealer
	// Agent names the server to the API server.
	Agent string
}

// Open returns a bridge with its clients and its certificate, which c lacks, and tells the HTTP API what users write in
// the cluster.
func Open(c Config, at Host, diagnostics *server.Diagnostics) (*Bridge, error) {
	var err error
	for _, client := range []**apiserver.Client{&c.Client, &c.Prompt} {
		if *client, err = apiserver.Connect(apiserver.Config{Kubeconfig: c.Settings.Kubeconfig,
			UserAgent: at.Agent + "/" + server.Version(), RequestsPerSecond: c.Settings.RequestsPerSecond,
			Held: c.Term.Held}); err != nil {
			return nil, err
		}
	}
	if c.Serving, err = OpenCertificate(filepath.Join(at.DataDir, folder), at.Box, c.Now); err != nil {
		return nil, err
	}
	b, err := New(c)
	if err != nil {
		return nil, err
	}
	c.Routes.SetObjects(b)
	diagnostics.AddExpiries(c.Serving.Expiries)
	diagnostics.Registry.MustRegister(c.Panics.Collector("metrics", b))
	if c.Term != nil {
		diagnostics.Registry.MustRegister(c.Panics.Collector("metrics", c.Term))
	}
	return b, nil
}
