package resources

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"unicode/utf8"
)

// errForm reports a certificate whose encoding violates the standard. crypto/x509 reads some of those, and Envoy does
// not.
var errForm = errors.New("the certificate is not DER as RFC 5280 defines it")

// ParseCertificate parses a certificate that proxies must be able to read, too. Envoy refuses a whole list of
// authorities for one that it cannot read, so one peer's certificate could keep all others from every proxy.
// ParseCertificate is stricter than x509.ParseCertificate: no element may have trailing data, and strings must have the
// types that the standard requires.
func ParseCertificate(der []byte) (*x509.Certificate, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	var form certificateForm
	if rest, err := asn1.Unmarshal(der, &form); err != nil || len(rest) > 0 {
		return nil, errForm
	}
	extensions := form.TBS.Extensions
	if again, err := asn1.Marshal(form); err != nil || !bytes.Equal(again, der) {
		return nil, errForm
	}
	if cert.PublicKey == nil {
		return nil, fmt.Errorf("%w: the key is of an unknown kind", errForm)
	}
	for _, a := range []algorithmForm{form.Algorithm, form.TBS.Algorithm, form.TBS.Key.Algorithm} {
		if !a.hasForm() {
			return nil, fmt.Errorf("%w: the parameters of an algorithm", errForm)
		}
	}
	for _, name := range []nameForm{form.TBS.Issuer, form.TBS.Subject} {
		if err := name.check(); err != nil {
			return nil, err
		}
	}
	for _, at := range []asn1.RawValue{form.TBS.Validity.NotBefore, form.TBS.Validity.NotAfter} {
		if n := len(at.Bytes); at.Bytes[n-1] != 'Z' || at.Tag == asn1.TagUTCTime && n != 13 ||
			at.Tag == asn1.TagGeneralizedTime && n != 15 {
			return nil, fmt.Errorf("%w: a time is %q", errForm, at.Bytes)
		}
	}
	for _, raw := range extensions {
		if !extensionHasForm(raw.FullBytes) {
			return nil, fmt.Errorf("%w: an extension", errForm)
		}
	}
	return cert, nil
}

// certificateForm is the ASN.1 of a certificate, as deep as Envoy reads it when it loads one.
type certificateForm struct {
	TBS       tbsForm
	Algorithm algorithmForm
	Signature asn1.BitString
}

type tbsForm struct {
	Version         int `asn1:"optional,explicit,default:0,tag:0"`
	Serial          *big.Int
	Algorithm       algorithmForm
	Issuer          nameForm
	Validity        struct{ NotBefore, NotAfter asn1.RawValue }
	Subject         nameForm
	Key             keyForm
	IssuerUniqueID  asn1.BitString  `asn1:"optional,tag:1"`
	SubjectUniqueID asn1.BitString  `asn1:"optional,tag:2"`
	Extensions      []asn1.RawValue `asn1:"omitempty,optional,explicit,tag:3"`
}

type keyForm struct {
	Algorithm algorithmForm
	Key       asn1.BitString
}

type algorithmForm struct {
	ID         asn1.ObjectIdentifier
	Parameters asn1.RawValue `asn1:"optional"`
}

// hasForm reports whether the parameters are absent or of a type that some algorithm uses.
func (a algorithmForm) hasForm() bool {
	p := a.Parameters
	switch {
	case len(p.FullBytes) == 0:
		return true
	case p.Class != asn1.ClassUniversal:
		return false
	case p.Tag == asn1.TagNull:
		return len(p.Bytes) == 0 && !p.IsCompound
	case p.Tag == asn1.TagOID:
		var id asn1.ObjectIdentifier
		rest, err := asn1.Unmarshal(p.FullBytes, &id)
		return err == nil && len(rest) == 0
	}
	return p.Tag == asn1.TagSequence && p.IsCompound
}

// nameForm is a list of sets. encoding/asn1 recognises sets by the name of the inner type.
type nameForm []attributesSET

type attributesSET []attributeForm

type attributeForm struct {
	ID    asn1.ObjectIdentifier
	Value asn1.RawValue
}

// check checks the strings of a name.
func (n nameForm) check() error {
	for _, set := range n {
		for _, a := range set {
			if !textHasForm(a.Value) {
				return fmt.Errorf("%w: %q in a name", errForm, shorten(string(a.Value.Bytes)))
			}
		}
	}
	return nil
}

// textHasForm reports whether a value in a name is a valid string of a type that names may use.
func textHasForm(v asn1.RawValue) bool {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return false
	}
	switch v.Tag {
	case asn1.TagUTF8String:
		return utf8.Valid(v.Bytes)
	case asn1.TagPrintableString, asn1.TagIA5String, asn1.TagNumericString:
		return !bytes.ContainsFunc(v.Bytes, func(c rune) bool { return c >= utf8.RuneSelf })
	case asn1.TagBMPString:
		return len(v.Bytes)%2 == 0
	case asn1.TagT61String:
		return true
	}
	return false
}

// extensionHasForm reports whether an extension has three parts and nothing more. Some authorities encode critical as
// false, which DER omits.
func extensionHasForm(raw []byte) bool {
	var e struct {
		ID       asn1.ObjectIdentifier
		Critical bool `asn1:"optional"`
		Value    []byte
	}
	if rest, err := asn1.Unmarshal(raw, &e); err != nil || len(rest) > 0 {
		return false
	}
	again, err := asn1.Marshal(e)
	const written = 3 // bytes of a boolean
	return err == nil && (bytes.Equal(again, raw) || !e.Critical && len(again)+written == len(raw))
}
