package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The floor is the minimal cost of a sync of this shape: one process that writes given bytes to many bare gRPC streams,
// and one that reads them. Nothing is stored, selected or acknowledged.

// floorServer forwards messages of a writer to all readers.
type floorServer struct {
	mu      sync.Mutex
	readers map[chan []byte]bool // guarded by mu
}

func (f *floorServer) service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "floor", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "Read", Handler: func(_ any, s grpc.ServerStream) error { return f.read(s) },
				ServerStreams: true, ClientStreams: true},
			{StreamName: "Write", Handler: func(_ any, s grpc.ServerStream) error { return f.write(s) },
				ServerStreams: true, ClientStreams: true},
			{StreamName: "Meet", Handler: func(_ any, s grpc.ServerStream) error { return meet(s) },
				ServerStreams: true, ClientStreams: true},
		},
	}
}

// serveFloor runs the child process, by mutual TLS if there is a proof. It prints its address, and ends when its standard
// input does.
func serveFloor(ctx context.Context, by string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server, err := serverOf(by)
	if err != nil {
		return err
	}
	f := &floorServer{readers: map[chan []byte]bool{}}
	server.RegisterService(f.service(), f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	server.Stop()
	return errors.Join(err, <-served)
}

func (f *floorServer) read(stream grpc.ServerStream) error {
	const ahead = 1024
	changes := make(chan []byte, ahead)
	f.mu.Lock()
	f.readers[changes] = true
	f.mu.Unlock()
	hello := []byte{}
	if err := stream.SendMsg(&hello); err != nil {
		return err
	}
	for {
		select {
		case b := <-changes:
			if err := stream.SendMsg(&b); err != nil {
				return err
			}
		case <-stream.Context().Done():
			f.mu.Lock()
			delete(f.readers, changes)
			f.mu.Unlock()
			return nil
		}
	}
}

func (f *floorServer) write(stream grpc.ServerStream) error {
	for {
		var b []byte
		if err := stream.RecvMsg(&b); err != nil {
			return err
		}
		f.mu.Lock()
		for c := range f.readers {
			c <- b
		}
		f.mu.Unlock()
	}
}

// floorCost is the average cost of one write to all streams on the floor. p99 is the slowest of a hundred, in milliseconds.
type floorCost struct {
	wall, cpuBothEnds, cpuSender time.Duration
	p99                          float64
}

// floor is a bare sender and its readers, and their cost so far.
type floor struct {
	child   *exec.Cmd
	stdin   io.Closer
	conn    *grpc.ClientConn
	stream  grpc.ClientStream
	marks   *marks
	streams int
	cancel  context.CancelFunc
	readers sync.WaitGroup

	writes            int
	took              []time.Duration // each write
	wall, own, sender time.Duration
}

// startFloor starts a sender and connects the given number of streams to it. The caller closes it.
func startFloor(ctx context.Context, streams int) (*floor, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &floor{marks: newMarks(), streams: streams, cancel: cancel}
	address, err := f.startChild(ctx, "")
	if err != nil {
		f.close()
		return nil, err
	}
	if err := f.connect(ctx, address); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// startChild starts the sender, by mutual TLS if there is a proof.
func (f *floor) startChild(ctx context.Context, by string) (address string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	child := exec.CommandContext(ctx, self, "-floor", "-floor-proof", by)
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := child.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := child.Start(); err != nil {
		return "", err
	}
	f.child, f.stdin = child, stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the floor did not start: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (f *floor) connect(ctx context.Context, address string) error {
	open := make(chan error, f.streams)
	for i := range f.streams {
		f.readers.Go(func() { readFloor(ctx, address, i, f.marks, open) })
	}
	for range f.streams {
		if err := <-open; err != nil {
			return err
		}
	}
	var err error
	if f.conn, err = dial(address); err != nil {
		return err
	}
	f.stream, err = f.conn.NewStream(ctx, &streamDesc, "/floor/Write")
	return err
}

// write sends n messages of size bytes to all streams, one after the other.
func (f *floor) write(ctx context.Context, n, size int) error {
	collect()
	before, err := cluster.UsageOf(f.child.Process.Pid)
	if err != nil {
		return err
	}
	own, start := ownCPU(), time.Now()
	for range n {
		began := time.Now()
		mark := f.marks.next(f.streams)
		b := append(fmt.Appendf(nil, "%s%d\"", markPrefix, mark),
			bytes.Repeat([]byte{' '}, size)...)[:max(size, len(markPrefix)+8)]
		if err := f.stream.SendMsg(&b); err != nil {
			return err
		}
		if err := f.marks.wait(ctx, mark); err != nil {
			return err
		}
		f.took = append(f.took, time.Since(began))
	}
	f.wall += time.Since(start)
	if err := sleep(ctx, afterTurn); err != nil {
		return err
	}
	f.own += ownCPU() - own
	after, err := cluster.UsageOf(f.child.Process.Pid)
	if err != nil {
		return err
	}
	f.sender += after.CPU - before.CPU
	f.writes += n
	return nil
}

// cost returns the average cost of a write so far.
func (f *floor) cost() floorCost {
	n := time.Duration(max(f.writes, 1))
	return floorCost{f.wall / n, (f.sender + f.own) / n, f.sender / n, percentile(f.took, 99)}
}

func (f *floor) close() {
	f.cancel()
	f.readers.Wait()
	if f.conn != nil {
		f.conn.Close()
	}
	if f.child != nil {
		f.stdin.Close()
		_ = f.child.Wait()
	}
}

// readFloor reads one stream until ctx ends. It sends on open when the stream is open.
func readFloor(ctx context.Context, address string, i int, m *marks, open chan<- error) {
	conn, err := dial(address)
	if err != nil {
		open <- err
		return
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &streamDesc, "/floor/Read")
	if err != nil {
		open <- err
		return
	}
	for first := true; ; first = false {
		var b []byte
		err := stream.RecvMsg(&b)
		if first {
			open <- err
		}
		if err != nil {
			return
		}
		m.saw(i, b)
	}
}

// floorOf returns the cost of the floor with so many streams and messages of size bytes.
func floorOf(ctx context.Context, streams, size int) (floorCost, error) {
	const writes = 20
	f, err := startFloor(ctx, streams)
	if err != nil {
		return floorCost{}, err
	}
	defer f.close()
	err = f.write(ctx, writes, size)
	return f.cost(), err
}

// The messages of paceOfMachine: enough for a second, of the size of a policy.
const paceWrites, paceBytes = 300, 900

// paceOfMachine returns the cost of the floor as a multiple of that on the machine of the goals.
func paceOfMachine(ctx context.Context) (float64, error) {
	f, err := startFloor(ctx, usualZones)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if err := f.write(ctx, paceWrites, paceBytes); err != nil {
		return 0, err
	}
	return ratio(f.cost().cpuBothEnds, goalsFloor), nil
}
