package server

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// fullDisk is the free space, in bytes, below which a data folder's disk counts as full. A write of the store and a
	// line of the audit log still fit, so that the report comes in time.
	fullDisk = 16 << 20
	// spareFiles is the number of file descriptors below which connections are about to be refused.
	spareFiles = 16
)

// Resources reports what a process can run out of: space on the disk of its data folder, and file descriptors. It is a
// prometheus.Collector, and safe for concurrent use.
type Resources struct {
	folder string
	// room and files ask the system, except in tests.
	room  func(folder string) (room, error)
	files func() (open, limit uint64, err error)
}

// NewResources watches the disk of a folder, which must exist, and the file descriptors of this process.
func NewResources(folder string) *Resources { return &Resources{folder, diskRoom, descriptors} }

// Disk returns nil while the folder's disk has room, or if the system does not report it. Its error names the free
// space.
func (r *Resources) Disk() error {
	room, err := r.room(r.folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return fmt.Errorf("%s: the free disk space is unknown: %w", r.folder, err)
	case room.free < fullDisk:
		return fmt.Errorf("%s: its disk is full, or nearly: %d bytes of %d are free, want %d; make room, and the server continues", r.folder, room.free, room.size, fullDisk)
	case room.files > 0 && room.freeFiles == 0:
		return fmt.Errorf("%s: its disk has no room for another file: all %d are used", r.folder, room.files)
	}
	return nil
}

// Files returns nil while file descriptors are left, or if the system does not report that.
func (r *Resources) Files() error {
	open, limit, err := r.files()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("no file descriptor is left: raise the limit (ulimit -n, LimitNOFILE), or find what holds so many connections")
	case err != nil:
		return fmt.Errorf("the number of open file descriptors is unknown: %w", err)
	case open+spareFiles > limit:
		return fmt.Errorf("%d of %d file descriptors are open: raise the limit (ulimit -n, LimitNOFILE), or find what holds so many connections", open, limit)
	}
	return nil
}

var (
	descFree = prometheus.NewDesc("causeway_data_free_bytes",
		"Free bytes on the disk of the data folder, for programs that are not root.", nil, nil)
	descSize = prometheus.NewDesc("causeway_data_size_bytes", "Size of the disk of the data folder.", nil, nil)
	descOpen = prometheus.NewDesc("causeway_open_files",
		"File descriptors that the process has open, connections among them.", nil, nil)
	descLimit = prometheus.NewDesc("causeway_open_files_limit", "Limit of open file descriptors of the process.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (r *Resources) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descFree, descSize, descOpen, descLimit} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It omits what is unknown.
func (r *Resources) Collect(out chan<- prometheus.Metric) {
	if room, err := r.room(r.folder); err == nil {
		out <- prometheus.MustNewConstMetric(descFree, prometheus.GaugeValue, float64(room.free))
		out <- prometheus.MustNewConstMetric(descSize, prometheus.GaugeValue, float64(room.size))
	}
	if open, limit, err := r.files(); err == nil {
		out <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(open))
		out <- prometheus.MustNewConstMetric(descLimit, prometheus.GaugeValue, float64(limit))
	}
}

// AddResources makes readiness depend on disk space in the data folder and on file descriptors, and adds both to the
// metrics.
func (d *Diagnostics) AddResources(folder string) {
	r := NewResources(folder)
	d.AddCheck("disk", r.Disk)
	d.AddCheck("file descriptors", r.Files)
	d.Registry.MustRegister(r)
}

// room is the space on a disk: in bytes, and in files. Zero files means that the file system does not count them.
type room struct{ free, size, freeFiles, files uint64 }
