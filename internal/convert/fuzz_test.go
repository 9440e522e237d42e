// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// FuzzRegistryV1 renders bundles of three hostile files twice: nothing panics, both renders are the same, refusals are of the
// documented type, and each object says what it is, within the limits.
func FuzzRegistryV1(f *testing.F) {
	for bundle, files := range map[string][]string{
		"gadget":    {"gadget.clusterserviceversion.yaml", "gadgets.crd.yaml", "extras.yaml"},
		"converter": {"csv.json", "shapes.yaml", "shapes.yaml"},
		"legacy":    {"csv.yaml", "relics.yaml", "service.yaml"},
	} {
		tree := load(f, bundle)
		for _, mode := range []byte{0, 1, 2, 3, 32, 64} {
			f.Add(tree["manifests/"+files[0]].Data, tree["manifests/"+files[1]].Data, tree["manifests/"+files[2]].Data, []byte("properties: [{type: a, value: 1}]"), mode)
		}
	}
	watch := [][]string{nil, {"ns"}, {"team-a"}, {"team-a", "ns"}}
	providers := []registryv1.CertificateProvider{registryv1.CertManager, registryv1.SelfSigned, registryv1.ServiceCA}
	f.Fuzz(func(t *testing.T, csv, crd, other, properties []byte, mode byte) {
		files := tree("metadata/annotations.yaml", annotations, "metadata/properties.yaml", string(properties),
			"manifests/csv.yaml", string(csv), "manifests/crd.yaml", string(crd), "manifests/other.yaml", string(other))
		o := convert.Options{Format: convert.RegistryV1, InstallNamespace: "ns", Limits: convert.Limits{TotalBytes: 1 << 18}, RegistryV1: registryv1.Options{
			CertificateProvider: providers[mode>>5%3], WatchNamespaces: watch[mode%4],
			OperatorConditions: mode&4 != 0, APIClusterRoles: mode&8 != 0, IncludeCustomResources: mode&16 != 0,
		}}
		first, err := convert.Convert(files, o)
		second, again := convert.Convert(files, o)
		if err != nil {
			var refused *convert.Error
			if !errors.As(err, &refused) || len(refused.Problems) == 0 || again == nil || err.Error() != again.Error() {
				t.Fatalf("refused by %T: %v, then %v", err, err, again)
			}
			return
		}
		if !bytes.Equal(compact(t, first), compact(t, second)) {
			t.Fatal("two renders differ")
		}
		for _, object := range first.Objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Fatalf("an object without identity: %v", object.Object)
			}
		}
		checkCertificates(t, first)
	})
}

// checkCertificates asserts that the certificates to issue are in order, and that no object is in the place of their Secrets.
func checkCertificates(t *testing.T, r convert.Result) {
	t.Helper()
	secrets := map[string]bool{}
	for i, c := range r.Certificates {
		if c.Namespace != "ns" || c.Secret == "" || len(c.DNSNames) != 3 || i > 0 && r.Certificates[i-1].Secret >= c.Secret {
			t.Fatalf("certificates %v", r.Certificates)
		}
		secrets[c.Secret] = true
	}
	for _, object := range r.Objects {
		if object.GetKind() == "Secret" && object.GetAPIVersion() == "v1" && secrets[object.GetName()] {
			t.Fatalf("the Secret %s is rendered and issued", object.GetName())
		}
	}
}
