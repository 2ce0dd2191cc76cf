package xds_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

var saidTimes = []*timestamppb.Timestamp{
	nil, {}, {Seconds: 1 << 62}, {Seconds: -1 << 62, Nanos: -5}, {Seconds: 253402300800}, {Seconds: -62135596801},
	{Nanos: 1 << 30}, timestamppb.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
}

var saidPolicies = []string{"kri_mtp_default___p_", "default", "", "x", "kri_", "kri_mtp_default_zone-9__q_",
	strings.Repeat("p", 5000), "a\x1b[2J", "ü"}

// saidEntry is what a proxy could say of a request.
func saidEntry(a, b byte) *datav3.AccessLogCommon {
	said := func(text string) *structpb.Value { return structpb.NewStringValue(text) }
	fields := map[string]*structpb.Value{
		"enforced_effective_policy_id":        said(pick(saidPolicies, a)),
		"enforced_engine_result":              said(pick([]string{"allowed", "denied", ""}, b)),
		"enforced_shadow_effective_policy_id": said(pick(saidPolicies, b)),
		"enforced_shadow_engine_result":       structpb.NewNumberValue(1),
		"dryrun_shadow_engine_result":         said("denied"),
		"dryrun_shadow_effective_policy_id":   said(pick(saidPolicies, a)),
	}
	if a%7 == 0 {
		fields["enforced_engine_result"] = nil
	}
	out := &datav3.AccessLogCommon{StartTime: pick(saidTimes, b),
		Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.filters.http.rbac": {Fields: fields}, "envoy.filters.network.rbac": {Fields: fields},
		}}}
	switch b % 4 {
	case 0:
		out.Metadata.FilterMetadata["envoy.filters.http.rbac"] = nil
	case 1:
		out.TlsProperties = &datav3.TLSProperties{PeerCertificateProperties: &datav3.TLSProperties_CertificateProperties{SubjectAltName: []*datav3.TLSProperties_CertificateProperties_SubjectAltName{
			{San: &datav3.TLSProperties_CertificateProperties_SubjectAltName_Uri{Uri: pick(saidTexts, a)}},
		}}}
	case 2:
		out.TlsProperties = &datav3.TLSProperties{PeerCertificateProperties: &datav3.TLSProperties_CertificateProperties{SubjectAltName: []*datav3.TLSProperties_CertificateProperties_SubjectAltName{nil}}}
	}
	return out
}

// saidLog is one message of a log.
func saidLog(op, a, b byte) *alsv3.StreamAccessLogsMessage {
	m := &alsv3.StreamAccessLogsMessage{}
	switch op {
	case 0:
		m.Identifier = &alsv3.StreamAccessLogsMessage_Identifier{Node: saidNode(a),
			LogName: pick([]string{"main", "", "x", strings.Repeat("l", 2000), "a\x1b[2J"}, b)}
	case 1, 2:
		entry := &datav3.HTTPAccessLogEntry{CommonProperties: saidEntry(a, b), Request: &datav3.HTTPRequestProperties{
			RequestMethod: corev3.RequestMethod(int32(a) - 3),
			Path:          pick([]string{"/a/b?c", "", "x", "//", "/" + strings.Repeat("s", 5000), "/\x1b[2J"}, b),
		}}
		entries := []*datav3.HTTPAccessLogEntry{entry, nil, {}}
		if op == 2 {
			for len(entries) < 300 {
				entries = append(entries, entry)
			}
		}
		m.LogEntries = &alsv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: entries}}
	case 3:
		m.LogEntries = &alsv3.StreamAccessLogsMessage_TcpLogs{TcpLogs: &alsv3.StreamAccessLogsMessage_TCPAccessLogEntries{LogEntry: []*datav3.TCPAccessLogEntry{nil, {CommonProperties: saidEntry(a, b)}}}}
	case 4:
		m.LogEntries = &alsv3.StreamAccessLogsMessage_HttpLogs{}
	}
	return m
}

// FuzzAccessLogSession plays sequences of what a proxy can log on its streams to a real zone. Whatever that was,
// reports and metrics can be shown, and a proxy beside it can log.
func FuzzAccessLogSession(f *testing.F) {
	box := fuzzedBox(f)
	f.Add([]byte{0, 0, 0, 1, 0, 1, 1, 5, 7, 3, 0, 1})           // says who it is, and logs
	f.Add([]byte{0, 0, 0, 2, 3, 2, 4, 0, 0, 5, 0, 0})           // much, nothing, ends
	f.Add([]byte{1, 0, 0, 6, 0, 0, 0, 4, 1, 6, 0, 0, 0, 7, 0})  // does not say who it is, or badly
	f.Add([]byte{0, 0, 0, 1, 5, 2, 7, 1, 0, 1, 5, 3, 7, 0, 20}) // while its Dataplane goes and comes
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newToll()
		z := startFuzzed(t, box)
		conn := z.dial()
		client := alsv3.NewAccessLogServiceClient(conn)
		var stream alsv3.AccessLogService_StreamAccessLogsClient
		var cancel context.CancelFunc
		hangUp := func() {
			if stream != nil {
				cancel()
				stream = nil
			}
		}
		eachOp(raw, func(op, a, b byte) {
			if stream == nil {
				stream, cancel = openLog(t, client)
			}
			switch op % 8 {
			case 5:
				_, _ = stream.CloseAndRecv()
				hangUp()
			case 6:
				hangUp()
			case 7:
				z.write(a, b)
			default:
				if m := saidLog(op%8, a, b); sayable(m) {
					_ = stream.Send(m)
				}
			}
		})
		hangUp()
		z.logSoundly(client)
		z.checkReports()
		_ = conn.Close()
		z.stop()
		c.check(t)
	})
}

func sayable(m proto.Message) bool {
	_, err := proto.Marshal(m)
	return err == nil
}

func openLog(t *testing.T, client alsv3.AccessLogServiceClient) (alsv3.AccessLogService_StreamAccessLogsClient,
	context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	stream, err := client.StreamAccessLogs(ctx, grpc.WaitForReady(true))
	must(t, err)
	return stream, cancel
}

// logSoundly logs as the other proxy, and waits until that is taken.
func (z *fuzzedZone) logSoundly(client alsv3.AccessLogServiceClient) {
	stream, cancel := openLog(z.t, client)
	defer cancel()
	must(z.t, stream.Send(&alsv3.StreamAccessLogsMessage{Identifier: &alsv3.StreamAccessLogsMessage_Identifier{Node: nodeOf("sound", ""), LogName: "main"}}))
	if _, err := stream.CloseAndRecv(); err != nil {
		z.t.Errorf("the proxy beside it cannot log: %v", err)
	}
}

func (z *fuzzedZone) checkReports() {
	if _, err := z.registry.Gather(); err != nil {
		z.t.Errorf("metrics cannot be shown: %v", err)
	}
	server := api.New(api.Config{Store: z.server.store, Home: home})
	accesslog.Register(server, accesslog.Config{Store: z.server.store, Zone: home.Zone, Journal: z.journal, Collecting: true})
	for _, path := range []string{"/_report/shadow", "/_suggest/permissions?dataplane=sound"} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
			z.t.Errorf("%s: %d %.300s", path, w.Code, w.Body)
		}
	}
}
