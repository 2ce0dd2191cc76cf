package kds

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// saveDelay is the time over which changes are collected into one write of a peer's file.
const saveDelay = 15 * time.Second

// VersionFiles persist each peer's CopyVersions, in a file for each peer, so that a restarted server says what it has
// instead of being sent everything. An entry holds a hash of the stored copy: a copy that was changed or removed by
// hand is not claimed, and so the peer sends it again. The files can be deleted at any time. Safe for concurrent use.
type VersionFiles struct {
	// Dir is created if it is missing; its parent must exist. Stores hold the copies: the durable store, and the one of
	// live types if there is one.
	Dir    string
	Stores []store.Reader
	Log    *slog.Logger

	wake  chan struct{}
	mu    sync.Mutex
	peers map[string]*CopyVersions // guarded by mu
}

// NewVersionFiles returns the files in dir. They are written while Run runs.
func NewVersionFiles(dir string, log *slog.Logger, stores ...store.Reader) *VersionFiles {
	return &VersionFiles{Dir: dir, Stores: stores, Log: log, wake: make(chan struct{}, 1), peers: map[string]*CopyVersions{}}
}

// of returns the CopyVersions of a peer, loaded from its file the first time. Names of peers are DNS labels.
func (f *VersionFiles) of(peer string) *CopyVersions {
	if f == nil {
		return newCopyVersions()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.peers[peer]
	if k == nil {
		k = newCopyVersions()
		if err := f.load(peer, k); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.Log.Warn("the record of a peer's copies is unreadable: comparing them in full", "peer", peer, "error", err)
			k = newCopyVersions()
		}
		k.changed = f.wake
		f.peers[peer] = k
	}
	return k
}

// drop removes a peer and its file.
func (f *VersionFiles) drop(peer string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, peer)
	_ = os.Remove(f.path(peer))
}

func (f *VersionFiles) path(peer string) string { return filepath.Join(f.Dir, peer+".jsonl") }

// Run writes changes until ctx ends, and then once more. It returns nil: a write that fails is logged and tried again.
// Without the file, everything is compared in full after a restart.
func (f *VersionFiles) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			f.save()
			return nil
		}
		timer.Reset(saveDelay)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		f.save()
	}
}

func (f *VersionFiles) save() {
	f.mu.Lock()
	peers := maps.Clone(f.peers)
	f.mu.Unlock()
	for peer, k := range peers {
		if !k.takeDirty() {
			continue
		}
		if err := f.saveOne(peer, k); err != nil {
			f.Log.Warn("cannot write the record of a peer's copies", "peer", peer, "error", err)
			k.touch()
		}
	}
}

// versionLine is one line of a file.
type versionLine struct {
	Type    resources.Type `json:"t"`
	Name    string         `json:"n"`
	Version string         `json:"v"`
	Key     resources.Key  `json:"k"`
	// Hash is that of the stored copy.
	Hash string `json:"h"`
}

// saveOne replaces a peer's file atomically.
func (f *VersionFiles) saveOne(peer string, k *CopyVersions) error {
	// Not MkdirAll: a data folder that was moved away must not be created again.
	if err := os.Mkdir(f.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	file, err := os.CreateTemp(f.Dir, "."+peer+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	out := bufio.NewWriter(file)
	err = f.write(out, k)
	if err == nil {
		err = out.Flush()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), f.path(peer))
}

func (f *VersionFiles) write(out io.Writer, k *CopyVersions) error {
	enc := json.NewEncoder(out)
	all := k.copy()
	for _, t := range slices.Sorted(maps.Keys(all)) {
		for name, c := range all[t] {
			held := f.get(c.key)
			if c.refused || held == nil || held.Revision != c.revision {
				continue
			}
			if err := enc.Encode(versionLine{Type: t, Name: name, Version: c.version, Key: c.key,
				Hash: contentHash(held)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// load adds the entries whose copies are unchanged.
func (f *VersionFiles) load(peer string, k *CopyVersions) error {
	file, err := os.Open(f.path(peer))
	if err != nil {
		return err
	}
	defer file.Close()
	dec := json.NewDecoder(bufio.NewReader(file))
	for {
		var one versionLine
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", f.path(peer), err)
		}
		if held := f.get(one.Key); held != nil && contentHash(held) == one.Hash {
			k.put(one.Type, one.Name, copyVersion{version: one.Version, key: one.Key, revision: held.Revision})
		}
	}
}

func (f *VersionFiles) get(key resources.Key) *resources.Resource {
	for _, s := range f.Stores {
		if r := s.Snapshot().Get(key); r != nil {
			return r
		}
	}
	return nil
}

// contentHash returns the hash of all that a peer decides about a copy.
func contentHash(r *resources.Resource) string {
	h := sha256.New()
	labels, _ := json.Marshal(r.Labels) // a map of strings: sorted, and without an error
	for _, part := range [][]byte{labels, r.Spec.JSON(), r.Status} {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
