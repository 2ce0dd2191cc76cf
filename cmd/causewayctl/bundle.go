package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/server"
)

// bundleFormat is the version of the layout of a support bundle.
const bundleFormat = 1

// bundleFlags select what goes into a bundle besides the responses of the HTTP API.
type bundleFlags struct {
	diagnostics, config, log string
	withSpecs                bool
}

func newSupportBundle(c *cli) *cobra.Command {
	flags := &bundleFlags{}
	cmd := &cobra.Command{
		Use:   "support-bundle FILE",
		Short: "Collect what support needs to know about a server in one file, without secrets",
		Long: "Writes a .tar.gz: versions, what doctor finds, readiness, metrics, goroutines, zones, sync with\n" +
			"refusals, proxies, keys (never the keys themselves), and the names, labels and times of all\n" +
			"resources; with --with-specs their specs too. REDACTED replaces whatever looks like a key, a token,\n" +
			"a password or a join string. manifest.json lists the files with their SHA-256, and what could not be\n" +
			"read. The bundle has names of zones, services and users: check it before you share it.",
		Example: "  causewayctl support-bundle causeway-support.tar.gz\n" +
			"  causewayctl support-bundle support.tar.gz --config /etc/causeway/global.yaml --log global.log   # on the server's machine\n" +
			"  causewayctl support-bundle zone-1.tar.gz --address http://127.0.0.1:15681 --diagnostics http://127.0.0.1:15680",
		Args: cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			return c.supportBundle(ctx, client, args[0], flags)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.diagnostics, "diagnostics", "",
		"`URL` of the server's --diagnostics-address; http://127.0.0.1:5680 when the API is at its default address")
	f.StringVar(&flags.config, "config", "", "the server's `file` of settings")
	f.StringVar(&flags.log, "log", "",
		"`file` with the server's log; the bundle includes the end of it: journalctl -u causeway-global > FILE")
	f.BoolVar(&flags.withSpecs, "with-specs", false, "include the specs of resources")
	return cmd
}

// bundle holds the collected files, in the order in which they are written.
type bundle struct {
	files   []bundledFile
	missing map[string]string
	scrub   scrubber
}

type bundledFile struct {
	name string
	data []byte
}

// manifest describes a bundle; it is its last file.
type manifest struct {
	Format  int            `json:"format"`
	Created time.Time      `json:"created"`
	Address string         `json:"address"`
	Client  string         `json:"client"`
	Files   []manifestFile `json:"files"`
	// Missing maps the name of a missing file to the reason.
	Missing map[string]string `json:"missing,omitempty"`
}

type manifestFile struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (c *cli) supportBundle(ctx context.Context, client *api.Client, path string, flags *bundleFlags) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return &advised{fmt.Errorf("%s already exists", path), "choose another name: nothing is overwritten"}
	}
	b, err := c.collect(ctx, client, flags)
	if err != nil {
		return err
	}
	m := b.manifest(c.address, time.Now())
	raw, err := b.pack(m)
	if err != nil {
		return err
	}
	if err := writeNew(path, raw); err != nil {
		return err
	}
	return c.printAnswer(m, func() error {
		_, err := fmt.Fprintf(c.out, "%s: %d files, %d missing (manifest.json has the reasons)\n", path, len(m.Files),
			len(m.Missing))
		return err
	})
}

// add adds a file, with its secrets redacted.
func (b *bundle) add(name string, data []byte) {
	b.files = append(b.files, bundledFile{name: name, data: b.scrub.text(data)})
}

// addJSON adds a value, with its secrets redacted. If err is not nil or the value cannot be encoded, it records why the
// file is missing.
func (b *bundle) addJSON(name string, v any, err error) {
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(v)
	}
	if err == nil {
		raw, err = b.scrub.document(raw)
	}
	if err != nil {
		b.miss(name, err)
		return
	}
	b.add(name, raw)
}

func (b *bundle) miss(name string, err error) {
	b.missing[name] = string(b.scrub.text([]byte(err.Error())))
}

func (b *bundle) manifest(address string, now time.Time) *manifest {
	m := &manifest{Format: bundleFormat, Created: now.UTC(), Address: address, Client: server.Version(),
		Files: []manifestFile{}, Missing: b.missing}
	for _, f := range b.files {
		sum := sha256.Sum256(f.data)
		m.Files = append(m.Files, manifestFile{Name: f.name, Bytes: len(f.data), SHA256: hex.EncodeToString(sum[:])})
	}
	return m
}

// pack returns the bundle as .tar.gz.
func (b *bundle) pack(m *manifest) ([]byte, error) {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, f := range append(b.files, bundledFile{"manifest.json", raw}) {
		header := &tar.Header{Name: "causeway-support/" + f.name, Mode: 0o600, Size: int64(len(f.data)),
			ModTime: m.Created.Truncate(time.Second)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeNew writes a file that only its owner can read. It never overwrites an existing file.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the file that we were told to write
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
