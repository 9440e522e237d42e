// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Known reduces a live Secret of an authority to the authorities that objects on the cluster already trust: users who may write
// the Secret, also with the name of our field manager, may not write those objects. Nil when nothing is left.
func Known(live *unstructured.Unstructured, trusting []*unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		return nil
	}
	var trusted []*x509.Certificate
	for _, object := range trusting {
		for _, client := range serviceClients(object) {
			text, _ := client["caBundle"].(string)
			if bundle, err := base64.StdEncoding.DecodeString(text); err == nil {
				trusted = append(trusted, readCertificates(bundle)...)
			}
		}
	}
	kept := map[string]any{}
	content := contents(live)
	for _, part := range [][]string{{certFile, keyFile}, {nextCert, nextKey}} {
		certs := readCertificates(content[part[0]])
		if len(certs) == 1 && slices.ContainsFunc(trusted, certs[0].Equal) {
			for _, key := range part {
				kept[key] = base64.StdEncoding.EncodeToString(content[key])
			}
		}
	}
	earlier := slices.DeleteFunc(readCertificates(content[trustFile]), func(cert *x509.Certificate) bool {
		return !slices.ContainsFunc(trusted, cert.Equal)
	})
	if len(earlier) > 0 {
		kept[trustFile] = base64.StdEncoding.EncodeToString(writeCertificates(earlier...))
	}
	if len(kept) == 0 {
		return nil
	}
	known := live.DeepCopy()
	known.Object["data"] = kept
	return known
}
