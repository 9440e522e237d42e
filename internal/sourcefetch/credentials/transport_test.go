// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// T26: Secrets that decide which server is the right one are part of what was approved, unless a digest or a signature
// identifies the content. Logins and client certificates may be rotated.
func TestT26TransportOfASource(t *testing.T) {
	ref := func(name string) *v1alpha1.LocalReference { return &v1alpha1.LocalReference{Name: name} }
	image := func(of v1alpha1.ImageSource) v1alpha1.Source { return v1alpha1.Source{Image: &of} }
	git := func(of v1alpha1.GitSource) v1alpha1.Source { return v1alpha1.Source{Git: &of} }
	http := func(of v1alpha1.HTTPSource) v1alpha1.Source { return v1alpha1.Source{HTTP: &of} }
	const pinnedImage = "registry.example.org/app:v1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	tests := map[string]struct {
		source v1alpha1.Source
		// key of the Secret "s" that changes, and whether that counts.
		key     string
		changes bool
	}{
		"authorities of a registry":        {image(v1alpha1.ImageSource{Reference: "r/app:v1", CertSecretRef: ref("s")}), "ca.crt", true},
		"client certificate of a registry": {image(v1alpha1.ImageSource{Reference: "r/app:v1", CertSecretRef: ref("s")}), "tls.crt", false},
		"login of a registry":              {image(v1alpha1.ImageSource{Reference: "r/app:v1", SecretRef: ref("s")}), ".dockerconfigjson", false},
		"proxy of a registry":              {image(v1alpha1.ImageSource{Reference: "r/app:v1", ProxySecretRef: ref("s")}), "address", true},
		"image by digest":                  {image(v1alpha1.ImageSource{Reference: pinnedImage, CertSecretRef: ref("s")}), "ca.crt", false},
		"signed image":                     {image(v1alpha1.ImageSource{Reference: "r/app:v1", CertSecretRef: ref("s"), Verify: &v1alpha1.ImageVerification{}}), "ca.crt", false},
		"range of versions":                {image(v1alpha1.ImageSource{Reference: "r/app", Version: "1.x", CertSecretRef: ref("s")}), "ca.crt", true},
		"authorities of a repository":      {git(v1alpha1.GitSource{URL: "https://g/r", SecretRef: ref("s")}), "ca.crt", true},
		"host keys of a repository":        {git(v1alpha1.GitSource{URL: "ssh://git@g/r", SecretRef: ref("s")}), "known_hosts", true},
		"key for a repository":             {git(v1alpha1.GitSource{URL: "ssh://git@g/r", SecretRef: ref("s")}), "identity", false},
		"password of a repository":         {git(v1alpha1.GitSource{URL: "https://g/r", SecretRef: ref("s")}), "password", false},
		"commit": {git(v1alpha1.GitSource{
			URL: "https://g/r", SecretRef: ref("s"), Ref: &v1alpha1.GitRef{Commit: strings.Repeat("a", 40)},
		}), "ca.crt", false},
		"authorities of a web server": {http(v1alpha1.HTTPSource{URL: "https://h/a", CertSecretRef: ref("s")}), "ca.crt", true},
		"proxy of a web server":       {http(v1alpha1.HTTPSource{URL: "https://h/a", ProxySecretRef: ref("s")}), "address", true},
		"archive by digest":           {http(v1alpha1.HTTPSource{URL: "https://h/a", CertSecretRef: ref("s"), Digest: "sha256:" + strings.Repeat("e", 64)}), "ca.crt", false},
		"no Secret":                   {http(v1alpha1.HTTPSource{URL: "https://h/a"}), "ca.crt", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			transport := func(version, value string) string {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", ResourceVersion: version}, Data: map[string][]byte{
					"ca.crt": []byte("authority"), "known_hosts": []byte("hosts"), "address": []byte("http://proxy"),
				}}
				secret.Data[tc.key] = []byte(value)
				secrets := credentials.NewSecrets(fake.NewClientBuilder().WithObjects(secret).Build(), "shop")
				if _, err := secrets.Get(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				return secrets.Transport(tc.source)
			}
			before, after := transport("1", "one"), transport("2", "two")
			if (before != after) != tc.changes {
				t.Errorf("before %q, after %q: want a change: %t", before, after, tc.changes)
			}
			if strings.Contains(before, "proxy") || strings.Contains(before, "one") {
				t.Errorf("it shows the content: %q", before)
			}
		})
	}
}
