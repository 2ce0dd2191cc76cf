package node

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Image is an image of one layer, made from files of this machine.
type Image struct {
	// Name has a tag: localhost/x:dev.
	Name, Entrypoint string
	// Cmd is what a container runs after Entrypoint, unless its pod says otherwise.
	Cmd []string
	// Env are variables, as NAME=VALUE.
	Env []string
	// User is a number and a group; root when empty.
	User string
	// Files maps paths in the image, without a leading slash, to files of this machine.
	Files map[string]string
	// Folders are empty folders of the image, each with its owner, who alone may read it.
	Folders map[string]int
}

// Load makes the image and puts it into the node's store. Pods need imagePullPolicy: Never or IfNotPresent.
func (n *Node) Load(ctx context.Context, image *Image) error {
	archive := filepath.Join(n.Dir, "images", strings.NewReplacer("/", "_", ":", "_").Replace(image.Name)+".tar")
	if err := image.write(archive); err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	defer os.Remove(archive)
	cmd, err := n.inside(ctx, "ctr", "-n", "k8s.io", "images", "import", "--local", archive)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("image %s: %w: %s", image.Name, err, out)
	}
	return nil
}

// write writes an archive as `docker save` does.
func (i *Image) write(archive string) error {
	layer := archive + ".layer"
	defer os.Remove(layer)
	sum, err := i.writeLayer(layer)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{"Entrypoint": []string{i.Entrypoint}, "Cmd": i.Cmd, "User": i.User,
			"Env": append([]string{"PATH=/usr/bin"}, i.Env...)},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum}},
		"history": []any{map[string]any{"created": "1970-01-01T00:00:00Z"}},
	})
	if err != nil {
		return err
	}
	configSum := sha256.Sum256(config)
	configName := hex.EncodeToString(configSum[:]) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configName, "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for name, content := range map[string][]byte{configName: config, "manifest.json": manifest} {
		if err := add(w, &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}, strings.NewReader(string(content))); err != nil {
			return err
		}
	}
	if err := addFile(w, "layer.tar", layer); err != nil {
		return err
	}
	return w.Close()
}

// writeLayer writes the files of the image and returns the SHA-256 of the layer.
func (i *Image) writeLayer(layer string) (string, error) {
	f, err := os.Create(layer)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	w := tar.NewWriter(io.MultiWriter(f, sum))
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		if err := addFolders(w, path.Dir(name), made); err != nil {
			return "", err
		}
		if err := addFile(w, name, i.Files[name]); err != nil {
			return "", err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Folders)) {
		if err := addFolders(w, path.Dir(name), made); err != nil {
			return "", err
		}
		owner := i.Folders[name]
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700, Uid: owner, Gid: owner}); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func addFolders(w *tar.Writer, name string, made map[string]bool) error {
	if made[name] {
		return nil
	}
	if err := addFolders(w, path.Dir(name), made); err != nil {
		return err
	}
	made[name] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
}

// addFile adds a file, which every user of the image may read, and run if its owner may here.
func addFile(w *tar.Writer, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	return add(w, &tar.Header{Name: name, Mode: mode, Size: info.Size()}, f)
}

func add(w *tar.Writer, h *tar.Header, content io.Reader) error {
	h.ModTime = time.Unix(0, 0)
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}
