package archive

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/causeway-mesh/causeway/resources/store"
)

// Write writes a backup of a snapshot and of files. It sets h's Format and Revision. Errors: ErrClear, w's.
func Write(w io.Writer, h Header, s store.Snapshot, files []File) error {
	h.Format, h.Revision = formatVersion, s.Revision()
	compressed := gzip.NewWriter(w)
	sum := sha256.New()
	enc := json.NewEncoder(io.MultiWriter(compressed, sum))
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return err
	}
	end := trailer{}
	for r := range store.All(s) {
		if err := enc.Encode(line{Resource: entryOf(r)}); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		end.Resources++
	}
	for i := range files {
		// A PEM block with this label is an unsealed key.
		if bytes.Contains(files[i].Data, []byte("PRIVATE KEY-----")) {
			return fmt.Errorf("%s: %w", files[i].Path, ErrClear)
		}
		if err := enc.Encode(line{File: &files[i]}); err != nil {
			return fmt.Errorf("%s: %w", files[i].Path, err)
		}
		end.Files++
	}
	end.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := json.NewEncoder(compressed).Encode(line{Trailer: &end}); err != nil {
		return err
	}
	return compressed.Close()
}
