package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// defaultRefresh is how often a watch checks whether its files are fresh. An SVID lives for hours, and a new trust
// domain can wait that long. The interval also limits the load of many watches on a zone.
const defaultRefresh = 15 * time.Second

// svidWatch keeps the files of an identity fresh.
type svidWatch struct {
	client    *api.Client
	dataplane resources.Key
	dir       string
	// refresh is the time between two checks; timeout limits one check.
	refresh, timeout time.Duration
	log              io.Writer

	// renewAt is the middle of the certificate's lifetime; trusted is the digest of the bundle's sources.
	renewAt time.Time
	trusted [sha256.Size]byte
	// said is the last reported problem, so that an absent zone is reported once.
	said string
}

// run writes the files and reports them, then checks them periodically until ctx ends. Only the first fetch can fail: a
// wrong name must end the program, a zone that restarts must not.
func (w *svidWatch) run(ctx context.Context, tell func(dir string, signed *api.SVID) error) error {
	if err := w.renew(ctx, tell); err != nil {
		return err
	}
	tick := time.NewTicker(w.refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.note(w.look(ctx, tell))
		}
	}
}

// look renews the files when they are due or when the trust of the mesh changes.
func (w *svidWatch) look(ctx context.Context, tell func(string, *api.SVID) error) error {
	if time.Now().Before(w.renewAt) {
		trusted, err := w.trust(ctx)
		if err != nil || trusted == w.trusted {
			return err
		}
	}
	return w.renew(ctx, tell)
}

func (w *svidWatch) renew(ctx context.Context, tell func(string, *api.SVID) error) error {
	trusted, err := w.trust(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	signed, err := fetchSVID(ctx, w.client, w.dataplane, w.dir)
	if err != nil {
		return err
	}
	w.trusted = trusted
	if w.renewAt, err = halfLife([]byte(signed.Certificate)); err != nil {
		return err
	}
	return tell(w.dir, signed)
}

// trust returns a digest of the mesh's MeshTrusts, the sources of the bundles.
func (w *svidWatch) trust(ctx context.Context) (digest [sha256.Size]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	trusts, err := w.client.List(ctx, api.ListOptions{Type: resources.TypeMeshTrust, Mesh: w.dataplane.Mesh})
	if err != nil {
		return digest, err
	}
	hash := sha256.New()
	for _, r := range trusts {
		fmt.Fprintf(hash, "%s %s\n", r.Key, r.Spec.JSON())
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// note reports a problem if it differs from the last one, and reports its end.
func (w *svidWatch) note(err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil && err.Error() != w.said:
		w.said = err.Error()
		fmt.Fprintf(w.log, "%v; trying again every %s\n", err, w.refresh)
	case err == nil && w.said != "":
		w.said = ""
		fmt.Fprintf(w.log, "%s is fresh again\n", filepath.Join(w.dir, svidFile))
	}
}

// halfLife returns the middle between a certificate's two dates.
func halfLife(certificate []byte) (time.Time, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return time.Time{}, errors.New("the server's certificate is not PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("the server's certificate: %w", err)
	}
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2), nil
}
