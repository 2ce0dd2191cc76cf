package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// packed is a file of an archive: its source, and its name below the archive's folder.
type packed struct{ source, name string }

// contents returns the files of an architecture's archive, sorted by name.
func (r *release) contents(arch string) ([]packed, error) {
	files := []packed{{"LICENSE", "LICENSE"}, {"README.md", "README.md"}, {"CHANGELOG.md", "CHANGELOG.md"}}
	for _, program := range programs {
		files = append(files, packed{filepath.Join(r.stage, arch, program), "bin/" + program})
	}
	for pattern, folder := range map[string]string{
		filepath.Join(r.stage, "share", "man", "*.1"):       "share/man/man1",
		filepath.Join(r.stage, "share", "completions", "*"): "share/completions",
		"deploy/systemd/*":    "deploy/systemd",
		"deploy/prometheus/*": "deploy/prometheus",
		"deploy/grafana/*":    "deploy/grafana",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("nothing is called %s (%w)", pattern, err)
		}
		for _, source := range found {
			files = append(files, packed{source, path.Join(folder, filepath.Base(source))})
		}
	}
	slices.SortFunc(files, func(a, b packed) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return files, nil
}

// archive writes causeway_VERSION_linux_ARCH.tar.gz. The folder inside has the same name.
func (r *release) archive(arch string) (err error) {
	files, err := r.contents(arch)
	if err != nil {
		return err
	}
	folder := fmt.Sprintf("causeway_%s_linux_%s", r.version, arch)
	out, err := os.Create(filepath.Join(r.out, folder+".tar.gz"))
	if err != nil {
		return err
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression) // without a name and a time
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		raw, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if path.Dir(f.name) == "bin" {
			mode = 0o755
		}
		header := &tar.Header{Name: folder + "/" + f.name, Mode: mode, Size: int64(len(raw)), ModTime: r.when,
			Format: tar.FormatPAX, Uname: "root", Gname: "root"}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(raw); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return out.Close()
}
