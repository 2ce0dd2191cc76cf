package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// supportBundle records each file of a support bundle, including the server's log.
func (l *leaks) supportBundle(s *cluster.Server) {
	l.t.Helper()
	path, log := filepath.Join(l.Dir(), s.Name()+".tar.gz"), filepath.Join(l.Dir(), s.Name()+".support.log")
	l.must(os.WriteFile(log, []byte(s.Log()), 0o600))
	_, err := l.CTL(l.t.Context(), s, nil, "support-bundle", path, "--with-specs", "--diagnostics",
		"http://"+s.Address("diagnostics"), "--log", log)
	l.must(err)
	packed, err := os.ReadFile(path)
	l.must(err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	l.must(err)
	files := 0
	for r := tar.NewReader(plain); ; files++ {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		l.must(err)
		l.given["the support bundle of "+s.Name()+", "+header.Name], err = io.ReadAll(r)
		l.must(err)
	}
	if files < 10 {
		l.t.Errorf("the support bundle of %s has %d files: what was looked at?", s.Name(), files)
	}
}
