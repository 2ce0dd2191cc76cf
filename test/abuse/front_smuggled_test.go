package abuse

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// smuggled returns the request that a proxy takes for a part of another: nothing that a proxy adds is in it. It is as long
// for each mesh.
func smuggled(mesh int) string {
	body := fmt.Sprintf(`{"type":"Mesh","name":"smuggled-%04d"}`, mesh)
	return fmt.Sprintf("PUT /meshes/smuggled-%04d HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", mesh, len(body), body)
}

var lengthOfSmuggled = len(smuggled(0))

// smugglers are requests about whose end a proxy and a server may disagree: the lines behind the first ones, and the body.
var smugglers = map[string]struct{ lines, body string }{
	"a length, and chunks in it":          {lengthOf(0, "0\r\n\r\n") + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"},
	"chunks, and a length of all":         {"Transfer-Encoding: chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks, and a short length":          {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n", lengthOfSmuggled)},
	"no length":                           {"", ""},
	"two lengths":                         {lengthOf(lengthOfSmuggled, "") + "Content-Length: 0\r\n", ""},
	"two lengths, the short one first":    {"Content-Length: 0\r\n" + lengthOf(lengthOfSmuggled, ""), ""},
	"two lengths in a line":               {fmt.Sprintf("Content-Length: 0, %d\r\n", lengthOfSmuggled), ""},
	"a length with a sign":                {fmt.Sprintf("Content-Length: +%d\r\n", lengthOfSmuggled), ""},
	"a length in hex":                     {fmt.Sprintf("Content-Length: 0x%x\r\n", lengthOfSmuggled), ""},
	"a length with zeros":                 {fmt.Sprintf("Content-Length: 000%d\r\n", lengthOfSmuggled), ""},
	"a length behind a space":             {fmt.Sprintf("Content-Length : %d\r\n", lengthOfSmuggled), ""},
	"a length in a folded line":           {fmt.Sprintf("Content-Length:\r\n %d\r\n", lengthOfSmuggled), ""},
	"a length with an underscore":         {fmt.Sprintf("Content_Length: %d\r\n", lengthOfSmuggled), ""},
	"a length of 2^64 and some":           {"Content-Length: 18446744073709551616\r\n", ""},
	"chunks behind a space":               {"Transfer-Encoding : chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks behind a tab":                 {"Transfer-Encoding:\tchunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks behind a vertical tab":        {"Transfer-Encoding: \vchunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks in a folded line":             {"Transfer-Encoding:\r\n chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks behind another coding":        {"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks before another coding":        {"Transfer-Encoding: chunked, identity\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks twice":                        {"Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"},
	"chunks by another name":              {"Transfer-Encoding: xchunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks in quotes":                    {"Transfer-Encoding: \"chunked\"\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks with an underscore":           {"Transfer_Encoding: chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks behind a bare line feed":      {"X-A: b\nTransfer-Encoding: chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks behind a bare return":         {"X-A: b\rTransfer-Encoding: chunked\r\n" + lengthOf(lengthOfSmuggled, "0\r\n\r\n"), "0\r\n\r\n"},
	"chunks that end in line feeds":       {"Transfer-Encoding: chunked\r\n", "0\n\n"},
	"a chunk's extension with a line end": {"Transfer-Encoding: chunked\r\n", "2;a=b\nxx\r\n0\r\n\r\n"},
	"a chunk longer than it says":         {"Transfer-Encoding: chunked\r\n", "1\r\nxx\r\n0\r\n\r\n"},
	"a chunk's size that overflows":       {"Transfer-Encoding: chunked\r\n", "10000000000000000\r\n0\r\n\r\n"},
	"trailers":                            {"Transfer-Encoding: chunked\r\n", "0\r\nX-Forwarded-For:\r\nContent-Length: 0\r\n\r\n"},
	"a body that is to wait":              {"Expect: 100-continue\r\n" + lengthOf(lengthOfSmuggled, ""), ""},
	"an upgrade to a WebSocket":           {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", ""},
	"an upgrade to HTTP/2":                {"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", ""},
}

// lengthOf returns the header that says the length of what there is before it.
func lengthOf(more int, body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n", more+len(body))
}

// TestNothingIsSmuggledThroughFronts has somebody with a token and no role send requests through real proxies on the
// server's machine, with a second one behind that would make a mesh: none is made, though whoever sends it without a proxy
// is admin.
func TestNothingIsSmuggledThroughFronts(t *testing.T) {
	t.Parallel()
	zone := startZone(t)
	address := strings.TrimPrefix(zone.url, "http://")
	fronts := startFronts(t, address)
	token := issue(t, zone, "nobody", nil, time.Hour)
	sendRaw(t, address, smuggled(0))
	meshes := map[int]string{}
	for front := range fronts {
		for _, first := range []string{"POST /_can-i", "GET http://localhost/who-am-i"} {
			for name := range smugglers {
				meshes[len(meshes)+1] = front + ", " + first + ", " + name
			}
		}
	}
	var sent sync.WaitGroup
	slots := make(chan struct{}, 16)
	for mesh, what := range meshes {
		parts := strings.Split(what, ", ")
		s := smugglers[strings.Join(parts[2:], ", ")]
		sent.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			sendRaw(t, fronts[parts[0]], parts[1]+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
				token+"\r\n"+s.lines+"\r\n"+s.body+smuggled(mesh))
		})
	}
	sent.Wait()
	var list struct{ Items []struct{ Name string } }
	if err := zone.admin.JSON(t.Context(), api.Request{Path: "/meshes", Query: url.Values{"size": {"1000"}}}, &list); err != nil {
		t.Fatal(err)
	}
	twin := false
	for _, m := range list.Items {
		number, found := strings.CutPrefix(m.Name, "smuggled-")
		if n, err := strconv.Atoi(number); found && err == nil && n > 0 {
			t.Errorf("%s: a mesh is made", meshes[n])
		} else if found {
			twin = true
		}
	}
	if !twin {
		t.Errorf("without a proxy, no mesh is made: the test shows nothing: %v", list.Items)
	}
}

// sendRaw sends bytes, and waits until the other side has closed the connection or is silent for a while.
func sendRaw(t *testing.T, address, request string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}
