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
)

// The floor is the least that a sync of this shape can cost: one process that writes given bytes to many bare gRPC streams,
// and one that reads them. Nothing is stored, chosen or acknowledged.

// floorServer hands what a writer sends to all readers.
type floorServer struct {
	mu      sync.Mutex
	readers map[chan []byte]bool // guarded by mu
}

func (f *floorServer) service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "floor", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "Read", Handler: func(_ any, s grpc.ServerStream) error { return f.read(s) }, ServerStreams: true, ClientStreams: true},
			{StreamName: "Write", Handler: func(_ any, s grpc.ServerStream) error { return f.write(s) }, ServerStreams: true, ClientStreams: true},
		},
	}
}

// serveFloor is the child process. It prints its address, and ends when its standard input does.
func serveFloor(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(frames{}))
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

// floorCost is what one write to all streams costs on the floor.
type floorCost struct{ wall, cpuBothEnds, cpuSender time.Duration }

// measureFloor writes so many messages of size bytes to so many streams.
func measureFloor(ctx context.Context, streams, size, writes int) (floorCost, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return floorCost{}, err
	}
	child := exec.CommandContext(ctx, self, "-floor")
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := child.StdinPipe()
	if err != nil {
		return floorCost{}, err
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return floorCost{}, err
	}
	if err := child.Start(); err != nil {
		return floorCost{}, err
	}
	defer func() { stdin.Close(); _ = child.Wait() }()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return floorCost{}, fmt.Errorf("the floor did not start: %w", err)
	}
	return runFloor(ctx, floorRun{address: strings.TrimSpace(address), pid: child.Process.Pid, streams: streams, size: size, writes: writes})
}

type floorRun struct {
	address               string
	pid                   int
	streams, size, writes int
}

func runFloor(ctx context.Context, r floorRun) (floorCost, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	m := newMarks()
	open := make(chan error, r.streams)
	for i := range r.streams {
		wait.Go(func() { readFloor(ctx, r.address, i, m, open) })
	}
	for range r.streams {
		if err := <-open; err != nil {
			return floorCost{}, err
		}
	}
	conn, err := dial(r.address)
	if err != nil {
		return floorCost{}, err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &streamDesc, "/floor/Write")
	if err != nil {
		return floorCost{}, err
	}
	before, err := usageOf(r.pid)
	if err != nil {
		return floorCost{}, err
	}
	own, start := ownCPU(), time.Now()
	for range r.writes {
		n := m.next(r.streams)
		b := append(fmt.Appendf(nil, "%s%d\"", markPrefix, n), bytes.Repeat([]byte{' '}, r.size)...)[:max(r.size, len(markPrefix)+8)]
		if err := stream.SendMsg(&b); err != nil {
			return floorCost{}, err
		}
		if err := m.wait(ctx, n); err != nil {
			return floorCost{}, err
		}
	}
	wall, own := time.Since(start), ownCPU()-own
	after, err := usageOf(r.pid)
	if err != nil {
		return floorCost{}, err
	}
	n := time.Duration(r.writes)
	return floorCost{wall / n, (after.cpu - before.cpu + own) / n, (after.cpu - before.cpu) / n}, nil
}

// readFloor reads one stream until ctx ends, and says when it is open.
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
