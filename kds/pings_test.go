package kds

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/emptypb"
)

// TestPings checks which writes of gRPC reach the connection.
func TestPings(t *testing.T) {
	t.Parallel()
	const later = "later"
	flow := string(make([]byte, pingFlow))
	alive := string([]byte{0, 0, 8, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for name, c := range map[string]struct{ write, want []string }{
		"goes with a large one":  {[]string{estimate, flow, "one"}, []string{estimate + flow, "one"}},
		"not with small ones":    {[]string{estimate, "one", "two", flow}, []string{"one", "two", estimate + flow}},
		"until a while later":    {[]string{estimate, "one", later, "two"}, []string{"one", estimate + "two"}},
		"one at a time":          {[]string{estimate, estimate, flow}, []string{estimate, estimate + flow}},
		"does not wait for ever": {[]string{estimate}, []string{estimate}},
		"again": {[]string{estimate, flow, estimate, "two", flow},
			[]string{estimate + flow, "two", estimate + flow}},
		"those that keep alive": {[]string{alive, "one"}, []string{alive, "one"}},
		"in company already":    {[]string{estimate + "one", "two"}, []string{estimate + "one", "two"}},
		"what is longer than usual": {[]string{estimate, string(make([]byte, 3*writeBuffer))},
			[]string{estimate + string(make([]byte, 3*writeBuffer))}},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			defer here.Close()
			conn := JoinPings(here)
			go func() {
				for _, w := range c.write {
					if w == later {
						<-time.After(pingPause)
						continue
					}
					if n, err := conn.Write([]byte(w)); n != len(w) || err != nil {
						t.Errorf("wrote %d of %d: %v", n, len(w), err)
					}
				}
			}()
			buffer := make([]byte, 5*writeBuffer)
			for i, want := range c.want {
				n, err := there.Read(buffer)
				if err != nil || string(buffer[:n]) != want {
					t.Fatalf("read %d: %q, %v; want %q", i, buffer[:n], err, want)
				}
			}
		})
	}
	broken, other := net.Pipe()
	other.Close()
	conn := JoinPings(broken)
	if _, err := conn.Write([]byte(estimate)); err != nil {
		t.Error(err)
	}
	if n, err := conn.Write([]byte("one")); n != 0 || err == nil {
		t.Errorf("wrote %d to a connection that is closed", n)
	}
}

// TestQuestionsLeaveTogether: the pings by which a server looks after its connections leave at whole seconds, whenever they
// were due, or with a write before that, and none is lost or sent twice.
func TestQuestionsLeaveTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // a whole second
		var all []*timedConn
		write := func(conn net.Conn, b string) {
			if n, err := conn.Write([]byte(b)); n != len(b) || err != nil {
				t.Errorf("wrote %d of %d: %v", n, len(b), err)
			}
		}
		for i := range 10 {
			time.Sleep(90 * time.Millisecond)
			to := &timedConn{began: began}
			all = append(all, to)
			conn := JoinPings(to)
			write(conn, question)
			if i == 9 {
				write(conn, "one")
				write(conn, "two")
			}
		}
		time.Sleep(3 * pingBeat)
		synctest.Wait()
		for i, to := range all {
			want := []string{"1s " + question}
			if i == 9 {
				want = []string{"900ms " + question + "one", "900ms two"}
			}
			if !slices.Equal(to.wrote, want) {
				t.Errorf("connection %d wrote %q, want %q", i, to.wrote, want)
			}
		}
	})
}

// timedConn notes what is written, and when.
type timedConn struct {
	net.Conn
	began time.Time
	wrote []string
}

func (c *timedConn) Write(b []byte) (int, error) {
	c.wrote = append(c.wrote, time.Since(c.began).String()+" "+string(b))
	return len(b), nil
}

// TestQuestionIsThatOfGRPC shows that the frame is the one by which gRPC asks today.
func TestQuestionIsThatOfGRPC(t *testing.T) {
	t.Parallel()
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: time.Minute}))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(tcp) }()
	conn, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(http2.ClientPreface + string([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}))); err != nil { // and settings
		t.Fatal(err)
	}
	var came []byte
	eventually(t, "a keepalive ping", func() bool {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		buffer := make([]byte, 1024)
		n, _ := conn.Read(buffer) // also nothing within the deadline
		came = append(came, buffer[:n]...)
		return strings.Contains(string(came), question)
	})
	conn.Close()
	server.Stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// countingListener counts writes that begin with the answer to a ping, and those that contain nothing else.
type countingListener struct {
	net.Listener
	answers, alone *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l}, err
}

type countingConn struct {
	net.Conn
	counts countingListener
}

func (c countingConn) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), estimate) {
		c.counts.answers.Add(1)
	}
	if string(b) == estimate {
		c.counts.alone.Add(1)
	}
	return c.Conn.Write(b)
}

// TestPingsOfClients checks a client with gRPC's default options, which sends a ping for nearly each message that is
// answered at once: while messages flow, it sends one each second, and the answers cost no packets of their own. It also
// shows that the frame is the one that gRPC writes today.
func TestPingsOfClients(t *testing.T) {
	t.Parallel()
	const messages = 100
	exchange := func(listen func(net.Listener) net.Listener) (answers, alone int64) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		counting := countingListener{tcp, new(atomic.Int64), new(atomic.Int64)}
		server := grpc.NewServer(grpc.WriteBufferSize(writeBuffer), grpc.StaticStreamWindowSize(window),
			grpc.StaticConnWindowSize(window))
		stream := grpc.StreamDesc{StreamName: "Talk", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error {
				for range messages {
					if err := s.SendMsg(&emptypb.Empty{}); err != nil {
						return err
					}
					if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
						return err
					}
				}
				return nil
			}}
		server.RegisterService(&grpc.ServiceDesc{ServiceName: "test", HandlerType: (*any)(nil),
			Streams: []grpc.StreamDesc{stream}}, nil)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listen(counting)) }()
		talk(t, tcp.Addr().String(), &stream)
		server.Stop()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		return counting.answers.Load(), counting.alone.Load()
	}
	if _, alone := exchange(func(l net.Listener) net.Listener { return l }); alone < messages/4 {
		t.Fatalf("bare gRPC answers %d pings for %d messages: is the frame another one now?", alone, messages)
	}
	began := time.Now()
	answers, alone := exchange(Listener)
	if most := int64(time.Since(began)/pingPause) + 1; answers > most {
		t.Errorf("%d pings were answered in %s", answers, time.Since(began))
	}
	if most := int64(time.Since(began)/pingDelay) + 1; alone > most {
		t.Errorf("%d answers went alone in %s", alone, time.Since(began))
	}
}

// talk answers every message of a stream until it ends, each after a while, as a peer does that stores it first: so its
// pings come alone.
func talk(t *testing.T, address string, stream *grpc.StreamDesc) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := conn.NewStream(ctx, stream, "/test/Talk")
	if err != nil {
		t.Fatal(err)
	}
	for s.RecvMsg(&emptypb.Empty{}) == nil {
		<-time.After(time.Millisecond)
		if s.SendMsg(&emptypb.Empty{}) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
}
