package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"time"
)

// The files that svid writes.
const (
	svidFile    = "svid.pem"
	svidKeyFile = "svid_key.pem"
	bundleFile  = "bundle.pem"
	// ownBundleFile and bundleMapFile are for gRPC, which would trust every CA in bundleFile for every trust domain.
	ownBundleFile = "own_bundle.pem"
	bundleMapFile = "bundle_map.json"
)

func newSVID(c *cli) *cobra.Command {
	scope, dir, watch, refresh := &scopeFlags{}, ".", false, defaultRefresh
	cmd := &cobra.Command{
		Use:   "svid NAME | svid KRI",
		Short: "Fetch the identity of a Dataplane as PEM files",
		Long: "Creates a key, has the zone sign it for the Dataplane's SPIFFE ID, and writes " + svidFile + ", " +
			svidKeyFile + "\n" +
			"(readable by its owner only) and " + bundleFile + " (the CAs of all trust domains), so that a program without a\n" +
			"proxy can call into the mesh. The key never leaves this machine. --address names the zone of the Dataplane.\n" +
			"For gRPC servers (causeway-zone bootstrap --grpc) it also writes " + ownBundleFile +
			", the CAs of its own trust\n" +
			"domain, and " + bundleMapFile + ", those of each trust domain as a SPIFFE bundle map.\n\n" +
			"With --watch it runs until it is interrupted. It replaces the key and certificate at half of the certificate's\n" +
			"lifetime, and the bundle when the trust of the mesh changes. While the zone does not answer it retries, and the\n" +
			"files do not change.",
		Example: "  causewayctl svid frontend-1 --out-dir ./frontend --address http://127.0.0.1:15681\n" +
			"  causewayctl svid frontend-1 --out-dir ./frontend --watch\n" +
			"  curl --cert frontend/svid.pem --key frontend/svid_key.pem --insecure https://127.0.0.1:8443/",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName(resources.TypeDataplane, scope),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch && refresh <= 0 {
				return usagef("--refresh %s: want more than 0, such as %s", refresh, defaultRefresh)
			}
			if watch {
				return c.endlessOperation(func(ctx context.Context, client *api.Client, _ []string) error {
					key, err := namedDataplane(ctx, client, scope, args[0])
					if err != nil {
						return err
					}
					w := &svidWatch{client: client, dataplane: key, dir: dir, refresh: refresh, timeout: c.timeout, log: c.errOut}
					return w.run(ctx, c.printIdentity)
				})(cmd, args)
			}
			return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
				key, err := namedDataplane(ctx, client, scope, args[0])
				if err != nil {
					return err
				}
				signed, err := fetchSVID(ctx, client, key, dir)
				if err != nil {
					return err
				}
				return c.printIdentity(dir, signed)
			})(cmd, args)
		},
	}
	scope.add(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep running, and keep the files fresh")
	cmd.Flags().DurationVar(&refresh, "refresh", refresh, "with --watch: how often to check that they are fresh")
	cmd.Flags().StringVar(&dir, "out-dir", dir, "`directory` for the files; created if it is missing")
	_ = cmd.MarkFlagDirname("out-dir")
	return cmd
}

// fetchSVID creates a new key, gets a certificate for it and writes the files.
func fetchSVID(ctx context.Context, client *api.Client, dataplane resources.Key, dir string) (*api.SVID, error) {
	keyPEM, csrPEM, err := newKeyAndRequest()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(api.SVIDRequest{CSR: string(csrPEM)})
	if err != nil {
		return nil, err
	}
	path, query, err := api.ItemPath(dataplane)
	if err != nil {
		return nil, err
	}
	signed := &api.SVID{}
	err = client.JSON(ctx, api.Request{Method: http.MethodPost, Path: path + "/_svid", Query: query, Body: body}, signed)
	if api.IsNotFound(err) {
		return nil, unknown(dataplane, &advised{fmt.Errorf("the server has no %s: %w", dataplane, err),
			"only the Dataplane's own zone issues its identity: --address must name that zone"})
	}
	if err != nil {
		return nil, aboutResource(dataplane, err)
	}
	if signed.Certificate == "" || len(signed.Bundles) == 0 {
		return nil, errors.New("the server's response has no certificate or no bundle: is it the zone of the Dataplane?")
	}
	return signed, writeIdentity(dir, keyPEM, signed)
}

// newKeyAndRequest creates an ECDSA P-256 key and a signing request without names. The zone decides the identity.
func newKeyAndRequest() (keyPEM, csrPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	csrDER, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return keyPEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csrDER}), nil
}

// writeIdentity replaces each file atomically, so that a reader never sees half of one. The certificate comes last: a
// program that watches it finds the key in place.
func writeIdentity(dir string, keyPEM []byte, signed *api.SVID) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	own, byDomain, err := bundlesForGRPC(signed)
	if err != nil {
		return err
	}
	files := []struct {
		name    string
		content []byte
	}{
		{bundleFile, bundlePEM(signed.Bundles)},
		{ownBundleFile, own},
		{bundleMapFile, byDomain},
		{svidKeyFile, keyPEM},
		{svidFile, []byte(signed.Certificate)},
	}
	for _, f := range files {
		if err := replaceFile(filepath.Join(dir, f.name), f.content); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a temporary file beside the file and renames it. Only the owner can read the file.
func replaceFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// identityFiles is the output of svid: the files that it wrote.
type identityFiles struct {
	SpiffeID    string `json:"spiffeId"`
	Expires     string `json:"expirationTime"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Bundle      string `json:"bundle"`
	// TrustDomains are the trust domains whose CAs are in the bundle.
	TrustDomains []string `json:"trustDomains"`
}

func (c *cli) printIdentity(dir string, signed *api.SVID) error {
	files := identityFiles{
		SpiffeID: signed.SpiffeID, Expires: signed.Expires.Format(time.RFC3339), Certificate: filepath.Join(dir, svidFile),
		Key: filepath.Join(dir, svidKeyFile), Bundle: filepath.Join(dir, bundleFile),
		TrustDomains: slices.Sorted(maps.Keys(signed.Bundles)),
	}
	switch c.output {
	case formatJSON:
		return printJSON(c.out, files)
	case formatYAML:
		return printYAML(c.out, files)
	}
	domains := "1 trust domain"
	if n := len(files.TrustDomains); n > 1 {
		domains = fmt.Sprintf("%d trust domains", n)
	}
	t := &table{}
	t.add("identity", files.SpiffeID)
	t.add("expires", files.Expires)
	t.add("certificate", files.Certificate)
	t.add("key", files.Key)
	t.add("bundle", files.Bundle, domains)
	return t.print(c.out)
}

// bundlePEM returns the CAs of all trust domains, sorted by trust domain.
func bundlePEM(bundles map[string]string) []byte {
	var all []byte
	for _, domain := range slices.Sorted(maps.Keys(bundles)) {
		all = append(all, bundles[domain]...)
		if len(all) > 0 && all[len(all)-1] != '\n' {
			all = append(all, '\n')
		}
	}
	return all
}
