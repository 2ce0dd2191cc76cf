package api

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/archive"
)

// BackupType is the content type of a backup.
const BackupType = "application/vnd.causeway.backup"

// ServeBackup serves POST /_backup: all data of the server at one revision, and the files that files returns. h
// describes the server.
func (s *Server) ServeBackup(h archive.Header, files func() ([]archive.File, error)) {
	s.Handle(RouteBackup, func(w http.ResponseWriter, _ *http.Request) error {
		beside, err := files()
		if err != nil {
			return err
		}
		var out bytes.Buffer
		h.Created, h.Version = s.config.Now().UTC().Truncate(time.Second), s.config.Version
		err = archive.Write(&out, h, s.config.Store.Snapshot(), beside)
		if errors.Is(err, archive.ErrClear) {
			return NewError(http.StatusConflict, "No backup was made", err.Error())
		}
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", BackupType)
		_, err = w.Write(out.Bytes())
		return err
	})
}
