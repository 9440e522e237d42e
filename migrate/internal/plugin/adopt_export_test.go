// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/migrate/internal/adopt"
	"github.com/satchel-dev/satchel/tests/clirig"
)

// packedRelease is a release as Helm stores it.
func packedRelease(t *testing.T, values string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	text := `{"name":"web","namespace":"x","version":3,"info":{"status":"deployed"},"manifest":"kind: A","chart":{"metadata":{"name":"ingress","version":"4.1.0+b1"}},"config":` + values + `}`
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// release stores a revision of a Helm release in the cluster.
func (c testCluster) release(all client.Client, name, revision, status, values string) {
	c.T.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: "sh.helm.release.v1." + name + ".v" + revision,
			Labels: map[string]string{"owner": "helm", "name": name, "status": status, "version": revision},
		},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": packedRelease(c.T, values)},
	}
	if err := all.Create(c.T.Context(), secret); err != nil {
		c.T.Fatal(err)
	}
}

// The BundleDeployment of a release has its chart, version, name and values; those that look like secrets are in a Secret.
func TestAdoptExport(t *testing.T) {
	c := newAdoption(t)
	c.release(c.any, "web", "9", "superseded", `{}`)
	c.release(c.any, "web", "10", "deployed", `{"replicas":2,"image":{"tag":"1.0"}}`)
	c.release(c.any, "db", "1", "deployed", `{"auth":{"password":"CANARY-db"},"size":12345678901234567}`)
	c.release(c.any, "broken", "1", "failed", `{}`)
	const repository = "https://charts.example.org/stable"

	got := c.Satchel("adopt", "web-app", "--export", "--former", "helm/web", "--helm-repository", repository, "--service-account", "shop")
	c.Want(got, kit.ExitOK, "--former helm/web --dry-run")
	var d v1alpha1.BundleDeployment
	if err := yaml.UnmarshalStrict([]byte(got.Out), &d); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	chart := d.Spec.Source.Sources[0].Helm
	if d.Name != "web-app" || d.Spec.Format != v1alpha1.FormatHelm || d.Spec.Helm.ReleaseName != "web" || d.Spec.ServiceAccountName != "shop" ||
		chart.URL != repository || chart.Chart != "ingress" || chart.Version != "4.1.0+b1" || string(d.Spec.Helm.Values.Raw) != `{"image":{"tag":"1.0"},"replicas":2}` {
		t.Error(got)
	}
	admitted := func(got clirig.Outcome) {
		t.Helper()
		for document := range strings.SplitSeq(strings.TrimPrefix(got.Out, "---\n"), "---\n") {
			printed := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &printed.Object); err != nil {
				t.Fatal(err)
			}
			if err := c.any.Create(t.Context(), printed, client.DryRunAll); err != nil {
				t.Errorf("what is printed is refused: %v", err)
			}
		}
	}
	admitted(got)

	got = c.Satchel("adopt", "db", "--export", "--image", "oci://ghcr.io/org/charts/ingress")
	c.Want(got, kit.ExitOK, "kind: Secret", "name: db-values", "CANARY-db", "size: 12345678901234567", "reference: ghcr.io/org/charts/ingress:4.1.0_b1",
		"values look like secrets (auth.password)", "encrypt it")
	if deployment := got.Out[strings.LastIndex(got.Out, "---"):]; strings.Contains(got.Err, "CANARY") || strings.Contains(deployment, "CANARY") || !strings.Contains(deployment, "valuesFrom") {
		t.Error(got)
	}
	admitted(got)
	got = c.Satchel("adopt", "web-git", "--export", "--former", "helm/web", "--git", "https://git.example.org/a.git", "--path", "charts/web", "--values-secret")
	c.Want(got, kit.ExitOK, "path: charts/web", "url: https://git.example.org/a.git", "name: web-git-values", "the values are in the Secret web-git-values", "check that the branch main has it")
	admitted(got)

	for says, args := range map[string][]string{
		"a Helm release does not record where its chart came from: name it with --helm-repository URL": {"web", "--export"},
		"one of --helm-repository, --image and --git":                                                  {"web", "--export", "--image", "a/b", "--git", "https://a/b"},
		"there is no Helm release \"none\"":                                                            {"none", "--export", "--image", "a/b"},
		"the last revision 1 of the Helm release":                                                      {"broken", "--export", "--image", "a/b"},
		"--image has no effect without --export":                                                       {"web", "--dry-run", "--image", "a/b"},
		"--export only prints manifests, so --delete-former has no effect":                             {"web", "--export", "--image", "a/b", "--delete-former"},
		"--export is for Helm releases":                                                                {"web", "--export", "--image", "a/b", "--former", "csv/a"},
		"is a registry: write --image ghcr.io/org/CHART":                                               {"web", "--export", "--helm-repository", "oci://ghcr.io/org"},
		"have no effect without --git":                                                                 {"web", "--export", "--image", "a/b", "--branch", "x"},
	} {
		c.Want(c.Satchel(append([]string{"adopt"}, args...)...), kit.ExitError, says)
	}
}

// A release that is damaged or too large is refused.
func TestDecodeRelease(t *testing.T) {
	if r, err := adopt.DecodeRelease(packedRelease(t, "null")); err != nil || r.Chart.Metadata.Name != "ingress" {
		t.Errorf("%+v, %v", r, err)
	}
	encode := func(text string) []byte { return []byte(base64.StdEncoding.EncodeToString([]byte(text))) }
	if _, err := adopt.DecodeRelease(encode(`{"chart":{"metadata":{"name":"a","version":"1.0.0"}}}`)); err != nil {
		t.Errorf("not packed: %v", err)
	}
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 65 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	for says, data := range map[string][]byte{
		"not in base64": []byte("{}"), "names no chart": encode("{}"), "not the JSON": encode("x"), "damaged": encode("\x1f\x8b\x08"), "more than 67108864 bytes": encode(bomb.String()),
	} {
		if _, err := adopt.DecodeRelease(data); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Values that look like secrets are found by their names and by what they are; names of Secrets are none.
func TestSecretValues(t *testing.T) {
	var values map[string]any
	err := yaml.Unmarshal([]byte(`
auth: {username: a, password: x, existingSecret: b, secretName: c, enabled: true, rootPassword: ""}
apiKey: x
tls: {secretRef: a, key: "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----"}
extraEnv: [{name: DB_PASSWORD, value: x}, {name: LEVEL, value: debug}]
tokens: [x]
database: {url: "postgres://jane:x@db/shop"}
image: {tag: v1, pullPolicy: Always}
`), &values)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"apiKey", "auth.password", "database.url", "extraEnv[0]", "tls.key", "tokens[0]"}
	if got := adopt.SecretValues(values); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
