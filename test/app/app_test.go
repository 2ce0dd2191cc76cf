package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/test/app"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHTTPEchoesAndCounts(t *testing.T) {
	a, err := app.StartHTTP("backend")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) []byte {
		t.Helper()
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", a.Port(), path))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	get("/a")
	var got app.Answer
	if err := json.Unmarshal(get("/b"), &got); err != nil {
		t.Fatal(err)
	}
	if want := (app.Answer{Service: "backend", Method: "GET", Path: "/b", Count: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := string(get("/count")); got != "2\n" {
		t.Errorf("/count is %q, want 2: it must not count itself", got)
	}
}

func TestTCPEchoesAndEndsItsConnections(t *testing.T) {
	a, err := app.StartTCP()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", a.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
		t.Fatalf("got %q, %v", got, err)
	}
	if a.Count() != 1 {
		t.Errorf("count is %d, want 1", a.Count())
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(got); err == nil {
		t.Error("the connection outlived the application")
	}
}
