package main

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // as the protocol of WebSockets has it
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
)

// longest is how long a stream may stay open.
const longest = 5 * time.Minute

// stream holds a stream of gRPC, ADDRESS COUNT, until the server has told its health so often, and prints each.
func stream(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want an address, and how often")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	conn, err := grpc.NewClient(args[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	watch, err := healthgrpc.NewHealthClient(conn).Watch(ctx, &healthgrpc.HealthCheckRequest{})
	if err != nil {
		return err
	}
	for range count {
		is, err := watch.Recv()
		if err != nil {
			return err
		}
		fmt.Println(is.GetStatus())
	}
	return nil
}

// upload sends so many MiB, URL COUNT, and prints what the server answers.
func upload(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want a URL, and MiB")
	}
	size, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, args[0], io.LimitReader(zeros{}, size<<20))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(text))
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// socketKey is what a client of WebSockets sends, and socketAnswer what the server makes of it. Source: RFC 6455.
const socketKey = "dGhlIHNhbXBsZSBub25jZQ=="

func socketAnswer(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as the protocol has it
	return base64.StdEncoding.EncodeToString(sum[:])
}

// socket opens a WebSocket, HOST:PORT SECONDS, and has the server say something again each second.
func socket(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want an address, and seconds")
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(longest))
	fmt.Fprintf(c, "GET /socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
		args[0], socketKey)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != socketAnswer(socketKey) {
		return fmt.Errorf("the server answers %s %v", resp.Status, resp.Header)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for i := range seconds {
		// A masked frame of text with a mask of zeros; the server sends it back without one.
		if _, err := c.Write([]byte{0x81, 0x81, 0, 0, 0, 0, 'a' + byte(i%26)}); err != nil {
			return err
		}
		frame := make([]byte, 3)
		if _, err := io.ReadFull(in, frame); err != nil || frame[2] != 'a'+byte(i%26) {
			return fmt.Errorf("after %d frames: %v, %w", i, frame, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Println("frames", seconds)
	return nil
}

// answerSocket is the server of socket: it sends each frame of one byte back.
func answerSocket(w http.ResponseWriter, r *http.Request) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		socketAnswer(r.Header.Get("Sec-WebSocket-Key")))
	frame := make([]byte, 7)
	for {
		if _, err := io.ReadFull(buffered, frame); err != nil {
			return
		}
		if _, err := c.Write([]byte{0x81, 0x01, frame[6]}); err != nil {
			return
		}
	}
}
