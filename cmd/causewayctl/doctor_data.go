package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/server"
)

const (
	// fullPart and fullBytes are the thresholds of free disk space for a problem; tightPart is the one for a warning.
	fullPart  = 0.05
	fullBytes = 256 << 20
	tightPart = 0.15
	// slowWrite is how long a small durable write may take. Each change waits for one.
	slowWrite = 100 * time.Millisecond
	// probes is the number of attempts. The fastest counts.
	probes = 3
)

// auditFolder is the folder of the audit log inside a data folder.
const auditFolder = "audit"

// dataDir checks the data folder on the server's machine.
func (e *examination) dataDir() {
	dir := e.flags.dataDir
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		e.add(finding{
			findingProblem, "data folder", dir, "does not exist, or is not a folder",
			"the server keeps all its data in it", "give the --data-dir that the server was started with",
		})
		return
	}
	e.add(accessFinding(dir))
	if free, total, err := diskSpace(dir); err != nil {
		e.unknown("disk", dir, err, "")
	} else {
		e.add(spaceFinding(dir, free, total))
	}
	e.add(writeFinding("disk", dir), writeFinding("audit log", filepath.Join(dir, auditFolder)))
	// The trailing separator makes WalkDir follow a link: systemd gives a server with its own user a folder through a
	// link.
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			e.unknown("files", path, err, "run it as the server's user")
			return nil
		}
		if !entry.IsDir() {
			e.add(fileFindings(path, entry)...)
		}
		return nil
	})
	if err != nil {
		e.unknown("files", dir, err, "")
	}
}

// accessFinding reports who else can read or write the folder.
func accessFinding(dir string) finding {
	f := finding{Status: findingOK, Check: "data folder", About: dir, What: "only the owner may write it"}
	info, err := os.Stat(dir)
	if err == nil {
		err = server.CheckDataDir(dir, slog.New(slog.DiscardHandler))
	}
	switch {
	case err != nil:
		f.Status, f.What = findingProblem, err.Error()
	case info.Mode().Perm()&0o027 != 0:
		f.Status, f.What = findingWarning, fmt.Sprintf("others may read it, or its group may write it (mode %04o)",
			info.Mode().Perm())
	default:
		return f
	}
	f.Why, f.Do = "it holds keys, tokens and policies, and the server trusts what it reads there",
		"chmod 700 "+dir+", as the server's user"
	return f
}

func spaceFinding(dir string, free, total uint64) finding {
	part := float64(free) / float64(max(total, 1))
	f := finding{Status: findingOK, Check: "disk", About: dir,
		What: fmt.Sprintf("%d MiB free of %d MiB", free>>20, total>>20)}
	if part >= tightPart && free >= fullBytes {
		return f
	}
	f.Status, f.Why, f.Do = findingWarning, "a server whose disk is full accepts no writes",
		"make room, or move the data folder to a larger disk (stop the server, copy, start)"
	if part < fullPart || free < fullBytes {
		f.Status = findingProblem
	}
	return f
}

// writeFinding writes a small file in dir, as durably as the server does, and removes it.
func writeFinding(check, dir string) finding {
	fastest := time.Hour
	for range probes {
		began := time.Now()
		if err := writeDurably(dir); err != nil {
			f := finding{
				findingProblem, check, dir, "cannot be written: " + err.Error(),
				"the server stores nothing, and changes nothing that it cannot log",
				"repair the folder or the disk; the server then continues without a restart",
			}
			if errors.Is(err, fs.ErrPermission) {
				f.Status, f.Why, f.Do = findingUnknown, "", "run it as the server's user"
			}
			return f
		}
		fastest = min(fastest, time.Since(began))
	}
	f := finding{Status: findingOK, Check: check, About: dir,
		What: "a small durable write takes " + fastest.Round(100*time.Microsecond).String()}
	if fastest > slowWrite {
		f.Status, f.Why, f.Do = findingWarning, "each change waits for one such write",
			"use a faster disk, or find what else writes to it; causeway_store_apply_duration_seconds shows it over time"
	}
	return f
}

func writeDurably(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 4096))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// fileFindings judges one file: a certificate by its expiry, a secret by who can read it.
func fileFindings(path string, entry fs.DirEntry) []finding {
	switch name := entry.Name(); {
	case strings.HasSuffix(name, ".crt"):
		return certificatesIn(path)
	case strings.HasSuffix(name, ".key"), strings.HasSuffix(name, ".token"), strings.HasSuffix(name, ".db"):
		info, err := entry.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return nil
		}
		return []finding{{
			findingProblem, "files", path, fmt.Sprintf("others may read or write it: its mode is %03o", info.Mode().Perm()),
			"who can read it can act as the server, or as an admin", "chmod 600 " + path,
		}}
	}
	return nil
}

// certificatesIn judges the certificates of a PEM file.
func certificatesIn(path string) []finding {
	raw, err := credential.Public(filepath.Base(path), path)
	if err != nil {
		return []finding{{Status: findingUnknown, Check: "certificate", About: path, What: err.Error(),
			Do: "run it as the server's user"}}
	}
	var out []finding
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		out = append(out, certificateFinding(path, cert, time.Now()))
	}
	if len(out) == 0 {
		out = append(out, finding{
			findingProblem, "certificate", path, "holds no certificate", "the server does not start with it",
			"restore it from a backup (causewayctl restore)",
		})
	}
	return out
}
