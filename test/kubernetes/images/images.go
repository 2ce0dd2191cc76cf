// Package images describes the images that pods of a test's node run: the servers, and programs of this machine.
package images

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// Nobody is the user and the group of the servers and of the proxies.
const Nobody = 65532

// Server is the image of a server, as deploy/containers/Containerfile makes it, under the name that its chart has by
// default. bin is the folder of the programs, root the repository.
func Server(root, bin, program string) *node.Image {
	return &node.Image{
		Name: "docker.io/library/" + program + ":dev", Entrypoint: "/usr/bin/" + program, Cmd: []string{"run"}, User: "65532:65532",
		Env: []string{"CAUSEWAY_DATA_DIR=/var/lib/causeway"},
		Files: map[string]string{
			"usr/bin/" + program:      filepath.Join(bin, program),
			"usr/bin/causewayctl":     filepath.Join(bin, "causewayctl"),
			"etc/ssl/certs/README.md": filepath.Join(root, "deploy", "README.md"), // a folder that every image has
		},
		Folders: map[string]int{"var/lib/causeway": Nobody, "run/causeway": Nobody},
	}
}

// Envoy is the image localhost/envoy:dev, of the Envoy that tests use.
func Envoy(ctx context.Context, root string) (*node.Image, error) {
	image, err := Linked(ctx, "localhost/envoy:dev", cmp.Or(os.Getenv("ENVOY"), filepath.Join(root, ".tools", "bin", "envoy")))
	if err == nil {
		image.Entrypoint = "/usr/bin/envoy"
	}
	return image, err
}

// Linked is an image of programs of this machine with the libraries that they are linked with. It runs the last one.
func Linked(ctx context.Context, name string, programs ...string) (*node.Image, error) {
	image := &node.Image{Name: name, Files: map[string]string{}, Folders: map[string]int{"tmp": Nobody}}
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, err
		}
		image.Entrypoint = "/usr/bin/" + filepath.Base(program)
		image.Files[strings.TrimPrefix(image.Entrypoint, "/")] = path
		out, err := exec.CommandContext(ctx, "ldd", path).Output()
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w", path, err)
		}
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "/") {
				image.Files[strings.TrimPrefix(word, "/")] = word
			}
		}
	}
	return image, nil
}
