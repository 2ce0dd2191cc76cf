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

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// defaultRefresh is how often a watch looks whether its files are still fresh. An SVID lives for hours, and a new trust
// domain may wait that long; it also bounds what many watches ask of a zone.
const defaultRefresh = 15 * time.Second

// svidWatch keeps the files of an identity fresh.
type svidWatch struct {
	client    *api.Client
	dataplane resources.Key
	dir       string
	// refresh is the time between two looks, timeout what one of them may take.
	refresh, timeout time.Duration
	log              io.Writer

	// renewAt is when half of the certificate's life is over; trusted is what the bundle was made from.
	renewAt time.Time
	trusted [sha256.Size]byte
	// said is the last problem that was told, so that an absent zone is told of once.
	said string
}

// run writes the files and tells of them, then looks at them in turn until ctx ends. Only the first fetch can fail: a
// wrong name should end the program, a zone that restarts should not.
func (w *svidWatch) run(ctx context.Context, tell func(dir string, signed *svidResponse) error) error {
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

// look renews the files when their time has come or when the mesh trusts others than before.
func (w *svidWatch) look(ctx context.Context, tell func(string, *svidResponse) error) error {
	if time.Now().Before(w.renewAt) {
		trusted, err := w.trust(ctx)
		if err != nil || trusted == w.trusted {
			return err
		}
	}
	return w.renew(ctx, tell)
}

func (w *svidWatch) renew(ctx context.Context, tell func(string, *svidResponse) error) error {
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

// trust is a digest of the mesh's MeshTrusts, which bundles are made from.
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

// note tells of a problem when it is another one than last time, and of its end.
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

// halfLife is the middle between a certificate's two dates.
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
