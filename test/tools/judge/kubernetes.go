package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// kubernetes decodes every document strictly into the type of its kind, and counts them. The error names all invalid
// ones.
func kubernetes(r io.Reader) (objects int, err error) {
	raw, err := readAll(r)
	if err != nil {
		return 0, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme, networking.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, admission.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer documents.Close()
	buffer := make([]byte, limit)
	var wrong []error
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, errors.Join(wrong...)
		}
		if err != nil {
			return objects, err
		}
		document := buffer[:n]
		if blank(document) {
			continue
		}
		objects++
		if err := judge(decoder, document); err != nil {
			wrong = append(wrong, fmt.Errorf("document %d: %w", objects, err))
		}
	}
}

func blank(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// judge reads one object, and checks what the types do not: its name and labels.
func judge(decoder runtime.Decoder, document []byte) error {
	object, kind, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return err
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	var wrong []string
	wrong = append(wrong, validation.IsDNS1123Subdomain(about.GetName())...)
	for key, value := range about.GetLabels() {
		wrong = append(wrong, validation.IsQualifiedName(key)...)
		wrong = append(wrong, validation.IsValidLabelValue(value)...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s %s: %s", kind.Kind, about.GetName(), strings.Join(wrong, "; "))
	}
	return nil
}
