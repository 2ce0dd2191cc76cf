package e2e

import (
	"crypto/x509"
	"encoding/asn1"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
)

// openStore adds what a server keeps sealed: all secrets of its store, and the keys of its certificates. The named
// secrets hold a key.
func (l *leaks) openStore(s *cluster.Server, how secrets.Config, certificates string, named ...string) {
	l.t.Helper()
	box, err := secrets.OpenBox(how)
	l.must(err)
	opened, err := bolt.Open(l.t.Context(), bolt.Config{Path: filepath.Join(s.DataDir, "causeway.db"),
		Log: slog.New(slog.DiscardHandler)})
	l.must(err)
	keeper := secrets.NewKeeper(opened, box)
	for _, name := range keeper.Names() {
		plain, _, err := keeper.Get(l.t.Context(), name)
		l.must(err)
		l.must(l.loot.addDocument(s.Name()+" "+name, plain))
	}
	l.must(opened.Close())
	if how.Dir != "" {
		key, err := os.ReadFile(filepath.Join(how.Dir, secrets.KeyFileName))
		l.must(err)
		l.loot.addText(s.Name()+" key for secrets", strings.TrimSpace(string(key)))
	}
	for file, purpose := range map[string]string{"ca.key": "server-ca", "tls.key": "server-tls"} {
		l.openFile(s, box, filepath.Join(certificates, file), purpose)
		named = append(named, filepath.Join(certificates, file))
	}
	for _, name := range named {
		if l.loot.kinds[s.Name()+" "+name] == 0 {
			l.t.Errorf("no key was found in the secret %s of %s: what was looked for?", name, s.Name())
		}
	}
}

func (l *leaks) openFile(s *cluster.Server, box server.Sealer, file, purpose string) {
	l.t.Helper()
	sealed, err := os.ReadFile(filepath.Join(s.DataDir, file))
	l.must(err)
	plain, err := box.Open(sealed, purpose)
	l.must(err)
	l.must(l.loot.addDocument(s.Name()+" "+file, plain))
}

func (l *leaks) openMembership(zone *cluster.Server) {
	l.t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: zone.DataDir})
	l.must(err)
	l.openFile(zone, box, filepath.Join("membership", "credential.sealed"), "zone-membership")
	if l.loot.kinds["zone-1 membership/credential.sealed"] == 0 {
		l.t.Error("no key was found in the zone's credential")
	}
}

// openCheckpoint adds the key of the identity that the zone keeps for a Dataplane's proxy. No backup has it, sealed or
// not.
func (l *leaks) openCheckpoint(zone *cluster.Server, dataplane string) {
	l.t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: zone.DataDir})
	l.must(err)
	book := checkpoint.Open(checkpoint.Config{Path: filepath.Join(zone.DataDir, "holdings.sealed"), Box: box})
	kept, there := book.Get(checkpoint.ID{Kind: "svid", Mesh: "default", Name: dataplane})
	if !there || l.given["zone-1/holdings.sealed"] == nil {
		l.t.Fatalf("the zone keeps no identity for %s (%t), or its file was not looked at", dataplane, there)
	}
	var certificate asn1.RawValue
	der, err := asn1.Unmarshal(kept, &certificate)
	l.must(err)
	key, err := x509.ParsePKCS8PrivateKey(der)
	l.must(err)
	l.must(l.loot.addKey("zone-1 holdings.sealed", key))
	for where := range l.given {
		if strings.HasPrefix(where, "the backup of ") && strings.Contains(where, "holdings") {
			l.t.Errorf("%s: what proxies hold is in a backup", where)
		}
	}
}
