// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// TestM2LinksAreNotFollowed: no manifest is read through a link, wherever the link is.
func TestM2LinksAreNotFollowed(t *testing.T) {
	const canary = "CANARY-5d1e"
	outside := t.TempDir()
	for name, content := range map[string]string{
		"secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + strings.ToLower(canary) + "}\n", "annotations.yaml": annotations,
	} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		reason       string
		link, target string
		o            convert.Options
	}{
		"file":            {"a linked manifest", "manifests/link.yaml", "secret.yaml", convert.Options{Format: convert.PlainV0}},
		"file, detected":  {"also when the format is detected", "link.yaml", "secret.yaml", convert.Options{}},
		"folder":          {"a linked folder of manifests", "manifests", ".", convert.Options{Format: convert.PlainV0}},
		"path":            {"a linked path", "deploy", ".", convert.Options{Path: "deploy"}},
		"registry file":   {"in a registry+v1 bundle", "manifests/link.yaml", "secret.yaml", convert.Options{Format: convert.RegistryV1}},
		"registry folder": {"its folder", "manifests", ".", convert.Options{Format: convert.RegistryV1}},
		"metadata":        {"its metadata", "metadata", ".", convert.Options{Format: convert.RegistryV1}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			link := filepath.Join(root, filepath.FromSlash(c.link))
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(outside, c.target), link); err != nil {
				t.Fatal(err)
			}
			c.o.InstallNamespace = "ns"
			c.o.RegistryV1 = registryv1.Options{CertificateProvider: registryv1.CertManager}
			result, err := convert.Convert(os.DirFS(root), c.o)
			if err == nil || len(result.Objects) > 0 || strings.Contains(err.Error(), strings.ToLower(canary)) {
				t.Errorf("%s: %d objects, %v", c.reason, len(result.Objects), err)
			}
		})
	}
}
