package resources_test

import (
	"errors"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// FuzzDecodeDocuments checks that the decoder reports every error by field, and that what it accepts survives encoding.
func FuzzDecodeDocuments(f *testing.F) {
	_, documents, _ := validDocuments(f)
	for _, body := range documents {
		f.Add(body)
	}
	broken, err := txtar.ParseFile("testdata/broken.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range broken.Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		docs, err := resources.DecodeDocuments(body, resources.DecodeOptions{})
		var bad *resources.DocumentsError
		if err != nil && (!errors.As(err, &bad) || len(bad.Invalid) == 0 || len(bad.Invalid[0].Problems) == 0 ||
			bad.Invalid[0].Problems[0].Field == "") {
			t.Fatalf("an error that names no field: %v", err)
		}
		for _, r := range docs {
			again, err := resources.NewSpec(r.Type, r.Spec.JSON())
			if err != nil || !again.Equal(r.Spec) {
				t.Fatalf("%q is not canonical: %v", r.Spec.JSON(), err)
			}
			if is, want := messageOf(r), messageOf(&resources.Resource{Key: r.Key, Spec: again}); !proto.Equal(is, want) {
				t.Fatalf("%q is decoded as %v, and after a restart as %v", r.Spec.JSON(), is, want)
			}
			if resources.Validate(r, aloneHome) == nil {
				checkEncodeDecode(t, aloneHome.Labelled(r))
			}
			_ = resources.ValidateSpec(r)
			_ = resources.Warnings(r)
		}
	})
}

// messageOf returns the typed form of a spec that users write as a message; nil for others.
func messageOf(r *resources.Resource) proto.Message {
	var m proto.Message
	switch r.Type {
	case resources.TypeMesh:
		m, _ = resources.SpecAs[meshpb.Mesh](r)
	case resources.TypeDataplane:
		m, _ = resources.SpecAs[meshpb.Dataplane](r)
	case resources.TypeZoneIngress:
		m, _ = resources.SpecAs[meshpb.ZoneIngress](r)
	case resources.TypeMeshGateway:
		m, _ = resources.SpecAs[meshpb.MeshGateway](r)
	case resources.TypeZone:
		m, _ = resources.SpecAs[systempb.Zone](r)
	}
	return m
}

// FuzzParseKRI checks that a parsed KRI formats to the original text.
func FuzzParseKRI(f *testing.F) {
	f.Add("kri_mtp_default_zone-1_team_p_http")
	f.Add("kri_m____default_")
	f.Add("kri_mtp__")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := resources.ParseKRI(s)
		if err == nil && k.String() != s {
			t.Errorf("%q parses as %+v, which is written %q", s, k, k)
		}
	})
}

// TestKRI checks that names without underscores survive formatting and parsing.
func TestKRI(t *testing.T) {
	var shorts []string
	for _, d := range resources.Descriptors() {
		if d.Short != "" {
			shorts = append(shorts, d.Short)
		}
	}
	part := rapid.StringMatching(`([a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?)?`)
	rapid.Check(t, func(t *rapid.T) {
		k := resources.KRI{
			Short: rapid.SampledFrom(shorts).Draw(t, "short"), Mesh: part.Draw(t, "mesh"), Zone: part.Draw(t, "zone"),
			Namespace: part.Draw(t, "namespace"), Name: "n" + part.Draw(t, "name"), Section: part.Draw(t, "section"),
		}
		got, err := resources.ParseKRI(k.String())
		if err != nil || got != k {
			t.Fatalf("%+v is written %q and read as %+v, %v", k, k, got, err)
		}
	})
}

func TestKRIOfCopies(t *testing.T) {
	spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, []byte(`{"default":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1"}
	key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Namespace: "team", Name: "p"}
	original := home.Labelled(&resources.Resource{Key: key, Spec: spec})
	copied := original.Clone()
	copied.Namespace, copied.Name = "", "p-fz47zxd2x86zfx87"
	for _, r := range []*resources.Resource{original, copied} {
		if got := resources.KRIOf(r).WithSection("http").String(); got != "kri_mtp_default_zone-1_team_p_http" {
			t.Errorf("got %s", got)
		}
	}
}
